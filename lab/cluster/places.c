/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/plan.h"
#include "util.h"

/* Makes 'dir' and what is above it. */
char *
places_make_dir(char *dir)
{
    char *error = NULL;

    for (char *p = dir + 1; !error; p++) {
        char c = *p;

        if (c == '/' || !c) {
            *p = '\0';
            if (mkdir(dir, 0755) && errno != EEXIST) {
                error = xasprintf("%s: %s", dir, ovs_strerror(errno));
            }
            *p = c;
        }
        if (!c) {
            break;
        }
    }
    free(dir);
    return error;
}

/* Commands look for all sockets in one directory, where they are on a machine
 * that has a controller and an agent.  So a host's directory leads to those
 * that the hosts of the lab share. */
static char *
link_shared_sockets(const struct plan *plan, int host)
{
    static const char *const names[] = {
        "controller.ctl", "hosts.sock", "intent.sock", "rest.sock",
        "telemetry.sock",
    };
    char *dir = plan_host_dir(plan, host);
    char *error = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(names) && !error; i++) {
        char *socket = xasprintf("%s/%s", plan->rundir, names[i]);
        char *path = xasprintf("%s/%s", dir, names[i]);

        if (symlink(socket, path) && errno != EEXIST) {
            error = xasprintf("%s: %s", path, ovs_strerror(errno));
        }
        free(path);
        free(socket);
    }
    free(dir);
    return error;
}

char *
places_make(const struct plan *plan)
{
    char *daemons = xasprintf("%s/daemons", plan->cgroup);
    char *error = places_make_dir(xasprintf("%s/log", plan->rundir));

    if (!error) {
        error = places_make_dir(xasprintf("%s/ovs", plan->rundir));
    }
    if (!error) {
        error = places_make_dir(xasprintf("%s/db", plan->rundir));
    }
    if (!error) {
        error = cgroup_tree_create(daemons);
    }
    for (int i = 0; !error && i < plan->n_hosts; i++) {
        char *cgroup = plan_host_cgroup(plan, i);

        error = places_make_dir(plan_host_dir(plan, i));
        error = error ? error : link_shared_sockets(plan, i);
        if (!error) {
            error = cgroup_tree_create(cgroup);
        }
        free(cgroup);
    }
    free(daemons);
    return error;
}
