/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"

#define MAX_HOSTS 4096
#define MAX_SLOTS 1024
#define DEFAULT_SLOTS 8

static const char *const launch_names[] = { "local", "netns", "ssh", NULL };

static void
read_host(struct search_hosts *sh, const struct json_at *at)
{
    struct search_host *host = &sh->hosts[sh->n];

    host->name = json_name(at, "name");
    if (host->name && search_hosts_find(sh, host->name)) {
        json_fail(at, "name", "\"%s\" is the name of another host",
                  host->name);
    }
    host->address = json_string(at, "address");
    host->launch = json_enum(at, "launch", launch_names);
    host->netns = json_string_or(at, "netns", NULL);
    if (host->launch == LAUNCH_NETNS && !host->netns) {
        json_fail(at, "netns", "missing, \"launch\": \"netns\" needs one");
    }
    host->rundir = json_string_or(at, "rundir", NULL);
    host->cgroup = json_string_or(at, "cgroup", NULL);
    if (host->launch == LAUNCH_SSH && (host->rundir || host->cgroup)) {
        json_fail(at, host->rundir ? "rundir" : "cgroup",
                  "not with \"launch\": \"ssh\"; expected only \"local\" or "
                  "\"netns\"");
    }
    host->slots = json_integer_or(at, "slots", 1, MAX_SLOTS, DEFAULT_SLOTS);
    sh->n++;
}

char *
search_hosts_from_file(const char *file, struct search_hosts **shp)
{
    char *text, *error = json_read_file(file, &text);
    const struct json_at *top, *hosts;
    struct search_hosts *sh;
    struct json_check *jc;

    *shp = NULL;
    if (error) {
        return error;
    }
    jc = json_check_open(file, text);
    top = json_check_top(jc);
    sh = allocate(1, sizeof *sh);
    json_ignore(top, "$schema");
    hosts = json_array(top, "hosts", 1, MAX_HOSTS);
    sh->hosts = allocate(json_n(hosts), sizeof *sh->hosts);
    for (size_t i = 0; i < json_n(hosts); i++) {
        read_host(sh, json_element_object(hosts, i));
    }
    error = json_check_close(jc);
    free(text);
    if (error) {
        search_hosts_destroy(sh);
    } else {
        *shp = sh;
    }
    return error;
}

void
search_hosts_destroy(struct search_hosts *sh)
{
    if (sh) {
        for (size_t i = 0; i < sh->n; i++) {
            free(sh->hosts[i].name);
            free(sh->hosts[i].address);
            free(sh->hosts[i].netns);
            free(sh->hosts[i].rundir);
            free(sh->hosts[i].cgroup);
        }
        free(sh->hosts);
        free(sh);
    }
}

const struct search_host *
search_hosts_find(const struct search_hosts *sh, const char *name)
{
    for (size_t i = 0; i < sh->n; i++) {
        if (sh->hosts[i].name && !strcmp(sh->hosts[i].name, name)) {
            return &sh->hosts[i];
        }
    }
    return NULL;
}
