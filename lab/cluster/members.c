/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/members.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define HA_MEMBERS 3
#define HA_CONTROLLERS 2
#define JOIN_MS 10000

int
members_n(const struct plan *plan)
{
    return plan->ha ? HA_MEMBERS : 1;
}

int
members_n_controllers(const struct plan *plan)
{
    return plan->ha ? HA_CONTROLLERS : 1;
}

char *
members_rundir(const struct plan *plan, int i)
{
    return i ? xasprintf("%s/m%d", plan->rundir, i) : xstrdup(plan->rundir);
}

char *
members_daemon(const struct database *db, int i)
{
    return (i ? xasprintf("ovsdb-%s-%d", db->name, i)
            : xasprintf("ovsdb-%s", db->name));
}

char *
members_remote(const struct plan *plan, const struct database *db)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    for (int i = 0; i < members_n(plan); i++) {
        char *rundir = members_rundir(plan, i);
        char *remote = database_remote(db, rundir);

        ds_put_format(&ds, "%s%s", i ? "," : "", remote);
        free(remote);
        free(rundir);
    }
    return ds_steal_cstr(&ds);
}

int
members_leader(const struct plan *plan, const struct database *db)
{
    int leader = -1;

    for (int i = 0; leader < 0 && i < members_n(plan); i++) {
        char *rundir = members_rundir(plan, i);
        struct database_cluster dc;
        char *error = database_cluster_get(db, rundir, &dc);

        if (!error && !strcmp(dc.role, "leader")) {
            leader = i;
        }
        database_cluster_uninit(&dc);
        free(error);
        free(rundir);
    }
    return leader;
}

char *
members_init(const struct plan *plan, const struct database *db, int i,
             const char *file)
{
    char *own, *first, *error;

    if (!i) {
        return database_init(db, file, NULL);
    } else if (!access(file, F_OK)) {
        return NULL;
    }
    own = xasprintf("unix:%s.raft", file);
    first = xasprintf("unix:%s/db/%s.db.raft", plan->rundir, db->name);

    const char *const argv[] = { "ovsdb-tool", "join-cluster", file,
                                 db->schema, own, first, NULL };
    error = tool_run(NULL, argv, NULL, JOIN_MS, NULL);
    free(own);
    free(first);
    return error;
}

char *
members_controller_file(const struct plan *plan, int i, const char *name,
                        const char *suffix)
{
    return (i ? xasprintf("%s/%s-%d.%s", plan->rundir, name, i, suffix)
            : xasprintf("%s/%s.%s", plan->rundir, name, suffix));
}

char *
members_controller_daemon(int i)
{
    return i ? xasprintf("controller-%d", i) : xstrdup("controller");
}

char *
members_telemetry(const struct plan *plan)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    for (int i = 0; i < members_n_controllers(plan); i++) {
        char *file = members_controller_file(plan, i, "telemetry", "sock");

        ds_put_format(&ds, "%sunix:%s", i ? "," : "", file);
        free(file);
    }
    return ds_steal_cstr(&ds);
}
