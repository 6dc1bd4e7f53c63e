/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/plan.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define RUN_ROOT "/run/stagecoach"
#define NAME_CHARS \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

char *
plan_create(const char *name, const char *rundir, const char *bin_dir,
            struct plan **planp)
{
    struct plan *plan;
    size_t n = strlen(name);

    *planp = NULL;
    if (!n || n > 8 || strspn(name, NAME_CHARS) != n) {
        return xasprintf("--name: \"%s\" is not 1 to 8 letters and digits",
                         name);
    }
    if (rundir && rundir[0] != '/') {
        return xasprintf("--rundir: \"%s\" is not an absolute path", rundir);
    }
    plan = xzalloc(sizeof *plan);
    plan->name = xstrdup(name);
    plan->rundir = rundir ? xstrdup(rundir)
                          : xasprintf(RUN_ROOT"/lab-%s", name);
    plan->lock = xasprintf(RUN_ROOT"/lab-%s.lock", name);
    plan->cgroup = xasprintf("stagecoach/lab-%s", name);
    plan->fabric_ns = xasprintf("scl-%s-fab", name);
    plan->bin_dir = nullable_xstrdup(bin_dir);
    *planp = plan;
    return NULL;
}

void
plan_set_scenario(struct plan *plan, const struct scenario *s)
{
    plan->n_hosts = s->n_hosts;
    plan->slots = s->slots;
    plan->rate_bps = s->rate_bps;
    plan->mtu = s->mtu;
    plan->cc = s->cc;
    plan->fabric = s->fabric;
}

void
plan_destroy(struct plan *plan)
{
    if (plan) {
        free(plan->name);
        free(plan->rundir);
        free(plan->lock);
        free(plan->cgroup);
        free(plan->fabric_ns);
        free(plan->bin_dir);
        free(plan);
    }
}

char *
plan_host_ns(const struct plan *plan, int host)
{
    return xasprintf("scl-%s-h%d", plan->name, host);
}

char *
plan_node_ns(const struct plan *plan, int host)
{
    return xasprintf("scl-%s-n%d", plan->name, host);
}

char *
plan_host_dir(const struct plan *plan, int host)
{
    return xasprintf("%s/hosts/h%d", plan->rundir, host);
}

char *
plan_host_cgroup(const struct plan *plan, int host)
{
    return xasprintf("%s/hosts/h%d", plan->cgroup, host);
}

char *
plan_log(const struct plan *plan, const char *program)
{
    return xasprintf("%s/log/%s.log", plan->rundir, program);
}

bool
plan_owns_ns(const struct plan *plan, const char *ns)
{
    char *prefix = xasprintf("scl-%s-", plan->name);
    bool owns = !strncmp(ns, prefix, strlen(prefix));

    free(prefix);
    return owns;
}

/* Returns the directory of the running program. */
static char *
own_dir(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    path[MAX(0, n)] = '\0';
    return dir_name(path);
}

static char *
if_there(char *path, int mode)
{
    if (access(path, mode)) {
        free(path);
        return NULL;
    }
    return path;
}

char *
plan_program(const struct plan *plan, const char *name)
{
    /* Folders of programs in a build, relative to that of "stagecoach". */
    static const char *const folders[] = {
        "", "../cli/", "../controller/", "../agent/", "../shim/",
        "../trainer/",
    };
    char *dir = own_dir();
    char *path = NULL;

    if (plan->bin_dir) {
        path = if_there(xasprintf("%s/%s", plan->bin_dir, name), X_OK);
    }
    for (size_t i = 0; !path && i < ARRAY_SIZE(folders); i++) {
        path = if_there(xasprintf("%s/%s%s", dir, folders[i], name), X_OK);
    }
    free(dir);
    return path ? path : xstrdup(name);
}

static void
add_string_and_free(cJSON *object, const char *name, char *value)
{
    cJSON_AddStringToObject(object, name, value);
    free(value);
}

char *
plan_write_cluster(const struct plan *plan, const char *file)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *hosts = cJSON_AddArrayToObject(top, "hosts");
    FILE *stream;
    char *text;
    bool failed;

    for (int i = 0; i < plan->n_hosts; i++) {
        cJSON *host = cJSON_CreateObject();

        add_string_and_free(host, "name", xasprintf("h%d", i));
        add_string_and_free(host, "address", xasprintf("10.77.0.%d", i + 1));
        cJSON_AddStringToObject(host, "launch", "netns");
        add_string_and_free(host, "netns", plan_host_ns(plan, i));
        add_string_and_free(host, "rundir", plan_host_dir(plan, i));
        add_string_and_free(host, "cgroup", plan_host_cgroup(plan, i));
        cJSON_AddNumberToObject(host, "slots", plan->slots);
        cJSON_AddItemToArray(hosts, host);
    }
    text = cJSON_Print(top);
    cJSON_Delete(top);

    stream = fopen(file, "we");
    failed = !stream || !text || fputs(text, stream) < 0;
    failed = (stream && fclose(stream)) || failed;
    free(text);
    return failed ? xasprintf("%s: %s", file, ovs_strerror(errno)) : NULL;
}
