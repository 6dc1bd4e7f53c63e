/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/edge/print-env.h"

#include <cjson/cJSON.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cgroup-path.h"
#include "wire/agent-call.h"
#include "cli/command.h"

#define AGENT_MS 1000
#define MAX_LEVEL 5

/* The DSCP of job 'name' in what "agent/jobs" answered, if the controller has
 * given it a place. */
static bool
find_dscp(const cJSON *jobs, const char *name, int *dscp)
{
    const cJSON *job;

    cJSON_ArrayForEach (job, jobs) {
        const cJSON *n = cJSON_GetObjectItemCaseSensitive(job, "job");
        const cJSON *d = cJSON_GetObjectItemCaseSensitive(job, "dscp");

        if (cJSON_IsString(n) && !strcmp(n->valuestring, name)
            && cJSON_GetObjectItemCaseSensitive(job, "rank")
            && cJSON_IsNumber(d) && d->valuedouble >= 0
            && d->valuedouble <= 63) {
            *dscp = d->valueint;
            return true;
        }
    }
    return false;
}

/* Asks the agent.  An agent's result is a string that is JSON again. */
static bool
ask_agent(const struct print_env *e, int *dscp)
{
    const char *words[] = { "agent/jobs" };
    char name[2 * 32];
    cJSON *reply, *result;
    char *text = NULL;
    bool found;

    if (agent_call(e->rundir, agent_call_until(AGENT_MS), words, 1, &text)) {
        return false;
    }
    snprintf(name, sizeof name, "%s/%s", e->cojob, e->job);
    reply = cJSON_Parse(text);
    result = cJSON_Parse(cJSON_GetStringValue(
                             cJSON_GetObjectItemCaseSensitive(reply,
                                                              "result")));
    found = find_dscp(cJSON_GetObjectItemCaseSensitive(result, "jobs"), name,
                      dscp);
    cJSON_Delete(result);
    cJSON_Delete(reply);
    free(text);
    return found;
}

/* The interface of the IPv4 default route with the least metric. */
static bool
find_default_route(char name[IF_NAMESIZE])
{
    FILE *stream = fopen("/proc/net/route", "re");
    unsigned int best = 0;
    bool found = false;
    char line[256];

    while (stream && fgets(line, sizeof line, stream)) {
        char iface[IF_NAMESIZE];
        unsigned int destination, mask, metric;

        if (sscanf(line, "%15s %x %*x %*x %*d %*d %u %x", iface,
                   &destination, &metric, &mask) == 4
            && !destination && !mask && (!found || metric < best)) {
            strcpy(name, iface);
            best = metric;
            found = true;
        }
    }
    if (stream) {
        fclose(stream);
    }
    return found;
}

/* The interface with an address, if there is one and no other. */
static bool
find_only_interface(char name[IF_NAMESIZE])
{
    struct ifaddrs *list;
    bool found = false, several = false;

    if (getifaddrs(&list)) {
        return false;
    }
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET
            || i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_UP)) {
            continue;
        }
        several |= found && strcmp(name, i->ifa_name);
        snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
        found = true;
    }
    freeifaddrs(list);
    return found && !several;
}

/* A name that a shell does not take for more than a name. */
static bool
is_plain(const char *name)
{
    size_t n = strlen(name);

    return n && n < IF_NAMESIZE
           && n == strspn(name, "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

/* Returns false after a message if an argument is not valid. */
static bool
check(const struct print_env *e)
{
    const char *const names[] = { e->cojob, e->job };

    for (int i = 0; i < 2; i++) {
        if (!cgroup_name_is_valid(names[i])) {
            fprintf(stderr, "stagecoach run: \"%s\" is not a name, "
                    CGROUP_NAME_RULE"\n", names[i]);
            return false;
        }
    }
    if (e->level && (strlen(e->level) != 1 || e->level[0] < '0'
                     || e->level[0] > '0' + MAX_LEVEL)) {
        fprintf(stderr, "stagecoach run: --level: \"%s\" is not a level, 0 "
                "(served first) to %d are allowed\n", e->level, MAX_LEVEL);
        return false;
    }
    if (e->interface && !is_plain(e->interface)) {
        fprintf(stderr, "stagecoach run: --interface: \"%s\" is not an "
                "interface, 1 to %d letters, digits, '.', '_' and '-' are "
                "allowed\n", e->interface, IF_NAMESIZE - 1);
        return false;
    }
    return true;
}

static void
print_class(const struct print_env *e)
{
    int dscp;

    if (!ask_agent(e, &dscp)) {
        if (!e->level) {
            fprintf(stderr, "stagecoach run: the agent of %s knows no level "
                    "of %s/%s and there is no --level, going on without "
                    "NCCL_IB_TC\n", e->rundir, e->cojob, e->job);
            return;
        }
        dscp = 48 - 8 * (e->level[0] - '0');
    }
    printf("NCCL_IB_TC=%d\nNCCL_IB_SL=%d\n", dscp << 2, dscp >> 3);
}

static void
print_interface(const struct print_env *e)
{
    char found[IF_NAMESIZE] = "";
    const char *name = e->interface;

    if (!name && (find_default_route(found) || find_only_interface(found))
        && is_plain(found)) {
        name = found;
    }
    if (name) {
        printf("NCCL_SOCKET_IFNAME==%s\nGLOO_SOCKET_IFNAME=%s\n", name, name);
    } else {
        fprintf(stderr, "stagecoach run: no interface is the default route's "
                "or the only one and there is no --interface, going on "
                "without NCCL_SOCKET_IFNAME\n");
    }
}

/* Prints the variables, one a line.  Returns an exit status. */
int
print_env(const struct print_env *e)
{
    if (!check(e)) {
        return EXIT_USAGE;
    }
    print_class(e);
    print_interface(e);
    return EXIT_OK;
}
