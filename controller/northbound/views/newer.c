/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/newer.h"

#include <stdbool.h>

#include "controller/model/cluster.h"
#include "controller/southbound/switches.h"
#include "util.h"

struct newer *
newer_find(const struct cluster *c, const struct switches *switches, size_t *n)
{
    size_t n_hosts, n_switches = switches ? switches_count(switches) : 0;
    const struct host **hosts = cluster_known_hosts(c, &n_hosts);
    struct newer *newer = xcalloc(n_hosts + n_switches + 1, sizeof *newer);

    *n = 0;
    for (size_t i = 0; i < n_hosts; i++) {
        if (host_refuses(c, hosts[i])) {
            newer[(*n)++] =
                (struct newer){ hosts[i]->name, hosts[i]->generation };
        }
    }
    for (size_t i = 0; i < n_switches; i++) {
        struct newer *next = &newer[*n];

        next->generation = switches_newest(switches, i, &next->name);
        *n += c->generation && next->generation > c->generation;
    }
    free(hosts);
    return newer;
}

int64_t
newer_to_raise(const struct newer *newer, size_t n, int64_t generation)
{
    int64_t newest = generation;

    for (size_t i = 0; i < n; i++) {
        if (newer[i].generation - generation <= NEWER_MAX_RAISE) {
            newest = MAX(newest, newer[i].generation);
        }
    }
    return newest;
}
