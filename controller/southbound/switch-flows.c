/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/switch-flows.h"

#include "controller/southbound/drivers/flow-table.h"
#include "controller/southbound/topology/link-check.h"
#include "controller/southbound/topology/routes.h"
#include "flow.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofpbuf.h"
#include "packets.h"
#include "policies/policy.h"
#include "util.h"

#define CONTROL_QUEUE 0
#define DEFAULT_QUEUE 7

/* Tables and priorities. */
#define QUEUE_TABLE 0
#define ROUTE_TABLE 1
#define PROBE_PRIORITY 300
#define LEVEL_PRIORITY 100
#define NEXT_PRIORITY 1         /* Above a switch's own table-miss flow. */
#define PATH_PRIORITY 200
#define ROUTE_PRIORITY 100

static void
put_next(struct ofpbuf *ofpacts, bool alone)
{
    if (alone) {
        ofpact_put_OUTPUT(ofpacts)->port = OFPP_NORMAL;
    } else {
        ofpact_put_GOTO_TABLE(ofpacts)->table_id = ROUTE_TABLE;
    }
}

static void
add_level(struct flow_table *ft, uint8_t dscp, uint32_t queue, bool alone)
{
    struct ofpbuf ofpacts;
    struct match match;

    match_init_catchall(&match);
    match_set_dl_type(&match, htons(ETH_TYPE_IP));
    match_set_nw_dscp(&match, dscp << 2);
    ofpbuf_init(&ofpacts, 64);
    ofpact_put_SET_QUEUE(&ofpacts)->queue_id = queue;
    put_next(&ofpacts, alone);
    flow_table_add_flow(ft, QUEUE_TABLE, LEVEL_PRIORITY,
                        FLOW_COOKIE(FLOW_LEVEL, dscp), &match, &ofpacts);
    ofpbuf_uninit(&ofpacts);
}

static void
add_levels(struct flow_table *ft, const struct policy *policy, bool alone)
{
    add_level(ft, policy->control_dscp, CONTROL_QUEUE, alone);
    for (int i = 0; i < policy->n_levels; i++) {
        add_level(ft, policy->dscp[i], CONTROL_QUEUE + 1 + i, alone);
    }
    add_level(ft, policy->default_dscp, DEFAULT_QUEUE, alone);
}

struct flow_table *
switch_flows_alone(const struct policy *policy)
{
    struct flow_table *ft = flow_table_create();

    add_levels(ft, policy, true);
    return ft;
}

static void
add_next(struct flow_table *ft)
{
    struct ofpbuf ofpacts;
    struct match match;

    match_init_catchall(&match);
    ofpbuf_init(&ofpacts, 64);
    put_next(&ofpacts, false);
    flow_table_add_flow(ft, QUEUE_TABLE, NEXT_PRIORITY,
                        FLOW_COOKIE(FLOW_NEXT, 0), &match, &ofpacts);
    ofpbuf_uninit(&ofpacts);
}

/* Adds flows for the traffic to host 'h' with the actions 'ofpacts'. */
static void
add_route(struct flow_table *ft, const struct topology_host *host, size_t h,
          const struct ofpbuf *ofpacts)
{
    static const uint16_t types[] = { ETH_TYPE_IP, ETH_TYPE_ARP };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct match match;

        match_init_catchall(&match);
        match_set_dl_type(&match, htons(types[i]));
        match_set_nw_dst(&match, htonl(host->ip));
        flow_table_add_flow(ft, ROUTE_TABLE, ROUTE_PRIORITY,
                            FLOW_COOKIE(FLOW_ROUTE, h), &match, ofpacts);
    }
}

/* Appends the action that leads from 'sw' to switch 'to': an output, or a
 * group if there are several ports.  Returns false if there is no path. */
static bool
put_route(struct flow_table *ft, const struct routes *routes, int sw, int to,
        struct ofpbuf *ofpacts)
{
    uint32_t ports[FLOW_GROUP_MAX_PORTS];
    size_t n = routes_next(routes, sw, to, ports, ARRAY_SIZE(ports));

    if (n == 1) {
        ofpact_put_OUTPUT(ofpacts)->port = u16_to_ofp(ports[0]);
    } else if (n) {
        flow_table_add_group(ft, FLOW_GROUP(to), ports, n);
        ofpact_put_GROUP(ofpacts)->group_id = FLOW_GROUP(to);
    }
    return n > 0;
}

static void
add_routes(struct flow_table *ft, const struct topology *t,
           const struct routes *routes, int sw)
{
    for (size_t i = 0; i < t->n_hosts; i++) {
        const struct topology_host *host = &t->hosts[i];
        bool there = true;
        struct ofpbuf ofpacts;

        ofpbuf_init(&ofpacts, 64);
        if (host->at.sw == sw) {
            ofpact_put_OUTPUT(&ofpacts)->port = u16_to_ofp(host->at.port);
        } else {
            there = put_route(ft, routes, sw, host->at.sw, &ofpacts);
        }
        if (there) {
            add_route(ft, host, i, &ofpacts);
        }
        ofpbuf_uninit(&ofpacts);
    }
}

static void
add_paths(struct flow_table *ft, const struct topology *t,
          const struct routes *routes, int sw)
{
    size_t n;
    const struct route_path *paths = routes_paths(routes, &n);

    for (size_t i = 0; i < n; i++) {
        const struct route_demand *d = &paths[i].demand;

        for (size_t j = 0; j < paths[i].n_hops; j++) {
            struct ofpbuf ofpacts;
            struct match match;

            if (paths[i].hops[j].out.sw != sw) {
                continue;
            }
            match_init_catchall(&match);
            match_set_dl_type(&match, htons(ETH_TYPE_IP));
            match_set_nw_src(&match, htonl(t->hosts[d->src].ip));
            match_set_nw_dst(&match, htonl(t->hosts[d->dst].ip));
            match_set_nw_dscp(&match, d->dscp << 2);
            ofpbuf_init(&ofpacts, 64);
            ofpact_put_OUTPUT(&ofpacts)->port
                = u16_to_ofp(paths[i].hops[j].out.port);
            flow_table_add_flow(ft, ROUTE_TABLE, PATH_PRIORITY,
                                FLOW_COOKIE(FLOW_PATH, d->dscp), &match,
                                &ofpacts);
            ofpbuf_uninit(&ofpacts);
        }
    }
}

static void
add_probes(struct flow_table *ft, const struct topology *t, int sw)
{
    static const struct eth_addr dst = { .ea = LLDP_ETH_DST };

    for (size_t i = 0; i < 2 * t->n_links; i++) {
        const struct topology_port *at = &t->links[i / 2].ends[i % 2];
        struct ofpact_output *output;
        struct ofpbuf ofpacts;
        struct match match;

        if (at->sw != sw) {
            continue;
        }
        match_init_catchall(&match);
        match_set_in_port(&match, u16_to_ofp(at->port));
        match_set_dl_type(&match, htons(LLDP_ETH_TYPE));
        match_set_dl_dst(&match, dst);
        ofpbuf_init(&ofpacts, 64);
        output = ofpact_put_OUTPUT(&ofpacts);
        output->port = OFPP_CONTROLLER;
        output->max_len = OFPCML12_NO_BUFFER;
        flow_table_add_flow(ft, QUEUE_TABLE, PROBE_PRIORITY,
                            FLOW_COOKIE(FLOW_PROBE, at->port), &match,
                            &ofpacts);
        ofpbuf_uninit(&ofpacts);
    }
}

struct flow_table *
switch_flows(const struct policy *policy, const struct topology *t,
             const struct routes *routes, int sw, bool probes)
{
    struct flow_table *ft = flow_table_create();

    if (probes) {
        add_probes(ft, t, sw);
    }
    add_levels(ft, policy, false);
    add_next(ft);
    add_routes(ft, t, routes, sw);
    add_paths(ft, t, routes, sw);
    return ft;
}
