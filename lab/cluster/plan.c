/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/plan.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "controller/ovsdb/database.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define HA_MEMBERS 3
#define HA_CONTROLLERS 2
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
    plan->daemons_cgroup = xasprintf("%s/daemons", plan->cgroup);
    plan->pins = xasprintf(BPF_ROOT "/stagecoach-lab-%s", name);
    plan->bin_dir = bin_dir ? abs_file_name(NULL, bin_dir) : NULL;
    for (int i = 0; i < SCENARIO_MAX_HOSTS; i++) {
        plan->hosts[i] = (struct plan_host){
            .name = xasprintf("h%d", i),
            .address = xasprintf("10.77.0.%d", i + 1),
            .port = xasprintf("p%d", i),
            .ns = xasprintf("scl-%s-h%d", name, i),
            .node_ns = xasprintf("scl-%s-n%d", name, i),
            .dir = xasprintf("%s/hosts/h%d", plan->rundir, i),
            .shim = xasprintf("%s/hosts/h%d/shim.sock", plan->rundir, i),
            .cgroup = xasprintf("%s/hosts/h%d", plan->cgroup, i),
            .pins = xasprintf("%s/h%d", plan->pins, i),
        };
    }
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
    for (int i = 0; i < s->n_hosts; i++) {
        plan->hosts[i].actuator = s->actuators[i];
    }
    plan->fabric = s->fabric;
    plan->leaf_spine = s->leaf_spine;
    plan->datapath = s->datapath;
    plan->queues = s->queues;
    if (plan_has_topology(plan) && s->fabric == FABRIC_OVS) {
        plan->leaf_spine = (struct leaf_spine) { .leaves = 1, .over = 1 };
    }
    free(plan->bridge);
    plan->bridge = xasprintf("unix:%s/ovs/%s.mgmt", plan->rundir,
                             plan_has_topology(plan) ? "leaf0" : "br0");
}

void
plan_destroy(struct plan *plan)
{
    if (plan) {
        free(plan->name);
        free(plan->rundir);
        free(plan->lock);
        free(plan->cgroup);
        free(plan->daemons_cgroup);
        free(plan->pins);
        free(plan->fabric_ns);
        free(plan->bridge);
        free(plan->bin_dir);
        for (int i = 0; i < SCENARIO_MAX_HOSTS; i++) {
            free(plan->hosts[i].name);
            free(plan->hosts[i].address);
            free(plan->hosts[i].port);
            free(plan->hosts[i].ns);
            free(plan->hosts[i].node_ns);
            free(plan->hosts[i].dir);
            free(plan->hosts[i].shim);
            free(plan->hosts[i].cgroup);
            free(plan->hosts[i].pins);
        }
        free(plan);
    }
}

char *
plan_log(const struct plan *plan, const char *program)
{
    return xasprintf("%s/log/%s.log", plan->rundir, program);
}

int
plan_n_agents(const struct plan *plan)
{
    int n = 0;

    for (int i = 0; i < plan->n_hosts; i++) {
        n += plan_has_agent(plan, i);
    }
    return n;
}

int
plan_n_members(const struct plan *plan)
{
    return plan->ha ? HA_MEMBERS : 1;
}

int
plan_n_controllers(const struct plan *plan)
{
    return plan->ha ? HA_CONTROLLERS : 1;
}

char *
plan_member_rundir(const struct plan *plan, int i)
{
    return i ? xasprintf("%s/m%d", plan->rundir, i) : xstrdup(plan->rundir);
}

char *
plan_member_daemon(const struct database *db, int i)
{
    return (i ? xasprintf("ovsdb-%s-%d", db->name, i)
            : xasprintf("ovsdb-%s", db->name));
}

char *
plan_remote(const struct plan *plan, const struct database *db)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    for (int i = 0; i < plan_n_members(plan); i++) {
        char *rundir = plan_member_rundir(plan, i);
        char *remote = database_remote(db, rundir);

        ds_put_format(&ds, "%s%s", i ? "," : "", remote);
        free(remote);
        free(rundir);
    }
    return ds_steal_cstr(&ds);
}

char *
plan_controller_file(const struct plan *plan, int i, const char *name,
                     const char *suffix)
{
    return (i ? xasprintf("%s/%s-%d.%s", plan->rundir, name, i, suffix)
            : xasprintf("%s/%s.%s", plan->rundir, name, suffix));
}

char *
plan_controller_daemon(int i)
{
    return i ? xasprintf("controller-%d", i) : xstrdup("controller");
}

bool
plan_owns_ns(const struct plan *plan, const char *ns)
{
    char *prefix = xasprintf("scl-%s-", plan->name);
    bool owns = !strncmp(ns, prefix, strlen(prefix));

    free(prefix);
    return owns;
}

char *
plan_program(const struct plan *plan, const char *name)
{
    /* Folders of programs in a build, relative to the folder of
     * "stagecoach". */
    const char *const folders[] = {
        plan->bin_dir ? plan->bin_dir : ".", ".", "../cli", "../controller",
        "../agent", "../shim", "../trainer", NULL,
    };
    char *path = directory_find(folders, name, X_OK);

    return path ? path : xstrdup(name);
}

char *
plan_write_text(const char *file, const char *text)
{
    FILE *stream = fopen(file, "we");
    bool failed = !stream || fputs(text, stream) < 0;

    failed = (stream && fclose(stream)) || failed;
    return failed ? xasprintf("%s: %s", file, ovs_strerror(errno)) : NULL;
}

char *
plan_write_cluster(const struct plan *plan, const char *file)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *hosts = cJSON_AddArrayToObject(top, "hosts");
    char *text, *error;

    for (int i = 0; i < plan->n_hosts; i++) {
        const struct plan_host *h = &plan->hosts[i];
        cJSON *host = cJSON_CreateObject();

        cJSON_AddStringToObject(host, "name", h->name);
        cJSON_AddStringToObject(host, "address", h->address);
        cJSON_AddStringToObject(host, "launch", "netns");
        cJSON_AddStringToObject(host, "netns", h->ns);
        cJSON_AddStringToObject(host, "rundir", h->dir);
        cJSON_AddStringToObject(host, "cgroup", h->cgroup);
        cJSON_AddNumberToObject(host, "slots", plan->slots);
        cJSON_AddItemToArray(hosts, host);
    }
    text = must(cJSON_Print(top));
    cJSON_Delete(top);
    error = plan_write_text(file, text);
    free(text);
    return error;
}
