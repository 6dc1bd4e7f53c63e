/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/ports-report.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/fabric.h"
#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

/* Adds to 'busy' the ports that traffic from 't''s host to others crosses. */
static void
add_crossings(const struct cluster *c, const struct job_traffic *t,
              double *busy)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &t->sent_to) {
        const struct host *to = shash_find_data(&c->hosts, node->name);
        const struct fabric_pair *pair;

        if (!to || to->leaf < 0 || t->host->leaf < 0) {
            continue;
        }
        pair = fabric_get_pair(c->fabric, t->host->leaf, to->leaf);
        for (size_t i = 0; i < pair->n; i++) {
            const struct fabric_crossing *crossing = &pair->crossings[i];

            busy[demand_link_port(c, crossing->port)]
                += *(const uint64_t *) node->data * 8.0
                   * crossing->seconds_per_bit;
        }
    }
}

static void
add_links(const struct cluster *c, double *busy)
{
    const struct shash_node *job_node, *node;

    SHASH_FOR_EACH (job_node, &c->jobs) {
        const struct job *job = job_node->data;

        if (job->live) {
            SHASH_FOR_EACH (node, &job->traffic) {
                add_crossings(c, node->data, busy);
            }
        }
    }
}

struct json *
ports_report(const struct cluster *c)
{
    int n = demand_n_ports(c);
    double *busy = xcalloc(n + 1, sizeof *busy);
    char **names = demand_port_names(c);
    struct json *ports = json_array_create_empty();
    struct json *json = json_object_create();
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            busy[demand_port(host, dir)]
                = host->moved[dir] * 8.0 / host_capacity(host);
        }
    }
    if (c->fabric) {
        add_links(c, busy);
    }
    for (int i = 0; i < n; i++) {
        struct json *port = json_object_create();

        json_object_put_string(port, "port", names[i]);
        json_put_real(port, "busy_s", busy[i]);
        json_array_add(ports, port);
        free(names[i]);
    }
    free(names);
    free(busy);
    json_object_put(json, "ports", ports);
    return json;
}
