/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/switches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/southbound/drivers/driver.h"
#include "controller/southbound/drivers/flow-table.h"
#include "controller/southbound/drivers/openflow.h"
#include "controller/southbound/drivers/ovsdb-qos.h"
#include "controller/southbound/topology/link-ports.h"
#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "flow.h"
#include "openvswitch/json.h"
#include "openvswitch/match.h"
#include "openvswitch/ofp-actions.h"
#include "openvswitch/ofpbuf.h"
#include "packets.h"
#include "policies/policy.h"
#include "smap.h"
#include "util.h"
#include "wire/alarm.h"
#include "wire/json-put.h"

#define CONTROL_QUEUE 0
#define DEFAULT_QUEUE 7

/* Tables and priorities. */
#define QUEUE_TABLE 0
#define ROUTE_TABLE 1
#define LEVEL_PRIORITY 100
#define NEXT_PRIORITY 1 /* Above a switch's own table-miss flow. */
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
    struct route_next next;

    BUILD_ASSERT_DECL(FLOW_GROUP_MAX_PORTS == ROUTES_MAX_NEXT);
    routes_next(routes, sw, to, &next);
    for (size_t i = 0; i < next.n; i++) {
        ports[i] = next.hops[i].out.port;
    }
    if (next.n == 1) {
        ofpact_put_OUTPUT(ofpacts)->port = u16_to_ofp(ports[0]);
    } else if (next.n) {
        flow_table_add_group(ft, FLOW_GROUP(to), ports, next.n);
        ofpact_put_GROUP(ofpacts)->group_id = FLOW_GROUP(to);
    }
    return next.n > 0;
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

struct flow_table *
switch_flows(const struct policy *policy, const struct topology *t,
             const struct routes *routes, int sw)
{
    struct flow_table *ft = flow_table_create();

    add_levels(ft, policy, false);
    add_next(ft);
    add_routes(ft, t, routes, sw);
    return ft;
}

/* A switch that OpenFlow programs, or the queues of a switch, which OVSDB
 * programs. */
struct sw {
    char *name;                 /* From the topology, or 'target'. */
    char *target;               /* Address of the switch or its database. */
    int index;                  /* In the topology, or -1. */
    struct driver *driver;      /* Owned. */
};

/* Inputs of the desired state.  It is computed again if they change. */
struct basis {
    char hash[17];              /* Hash of the policy. */
    int64_t generation;         /* Leader's; 0: nothing is desired. */
    unsigned int links;         /* Sum of 'links' of all drivers' status. */
};

struct switches {
    struct topology *topology;  /* Owned, or NULL. */
    struct routes *routes;      /* NULL if there is no topology. */
    bool rerouted;              /* The routes have changed since the last
                                 * switches_take_fabric(). */
    struct sw *switches;        /* In the order in which they were added. */
    size_t n, allocated;
    size_t forwarding;          /* Index in 'switches' of the first OpenFlow
                                 * driver of the topology. */
    struct smap identities;     /* Datapath id, 16 hexadecimal digits, ->
                                 * certificate name that a switch outside the
                                 * topology must have. */
    struct basis basis;
};

struct switches *
switches_create(void)
{
    struct switches *ss = xzalloc(sizeof *ss);

    smap_init(&ss->identities);
    return ss;
}

void
switches_destroy(struct switches *ss)
{
    if (ss) {
        for (size_t i = 0; i < ss->n; i++) {
            ss->switches[i].driver->class->destroy(ss->switches[i].driver);
            free(ss->switches[i].name);
            free(ss->switches[i].target);
        }
        smap_destroy(&ss->identities);
        free(ss->switches);
        routes_destroy(ss->routes);
        topology_destroy(ss->topology);
        free(ss);
    }
}

/* Returns the certificate name that 'sw', which reports the id 'datapath',
 * must have: NULL if any is accepted, "" if none is. */
static const char *
required_identity(const struct switches *ss, const struct sw *sw,
                  uint64_t datapath)
{
    char id[17];

    if (strncmp(sw->target, "ssl:", 4)) {
        return NULL;
    } else if (sw->index >= 0) {
        return ss->topology->switches[sw->index].identity;
    } else if (smap_is_empty(&ss->identities)) {
        return NULL;
    }
    snprintf(id, sizeof id, "%016"PRIx64, datapath);
    return smap_get_def(&ss->identities, id, "");
}

/* Returns NULL if 'peer', the name in the certificate of 'sw', matches
 * 'datapath', otherwise an error message that the caller frees. */
static char *
check_identity(const struct switches *ss, const struct sw *sw,
               uint64_t datapath, const char *peer)
{
    const char *required = required_identity(ss, sw, datapath);

    if (!required || (peer && *required && !strcmp(peer, required))) {
        return NULL;
    } else if (!*required) {
        return xasprintf("datapath id %016"PRIx64", which no "
                         "--switch-identity has", datapath);
    }
    return xasprintf("the certificate of \"%s\" with datapath id %016"PRIx64
                     ", which is that of \"%s\"", peer ? peer : "", datapath,
                     required);
}

/* Implements driver_admit_func: checks the switch's datapath id and
 * certificate. */
static char *
admit_switch(const struct driver *driver, uint64_t datapath,
             const char *peer, void *ss_)
{
    const struct switches *ss = ss_;
    const struct sw *self = NULL;

    for (size_t i = 0; i < ss->n; i++) {
        const struct sw *sw = &ss->switches[i];

        if (sw->driver == driver) {
            self = sw;
        } else if (sw->driver->class->get_status(sw->driver).datapath
                   == datapath) {
            return xasprintf("datapath id %016"PRIx64" is that of \"%s\" "
                             "too, which is connected", datapath, sw->name);
        }
    }
    if (self->index >= 0) {
        uint64_t expected = ss->topology->switches[self->index].datapath;

        if (datapath != expected) {
            return xasprintf("datapath id %016"PRIx64", \"%s\" has "
                             "%016"PRIx64" in the topology", datapath,
                             self->name, expected);
        }
    }
    return check_identity(ss, self, datapath, peer);
}

static void
add_switch(struct switches *ss, const char *name, const char *target,
           int index, struct driver *driver)
{
    if (ss->n == ss->allocated) {
        ss->switches = x2nrealloc(ss->switches, &ss->allocated,
                                  sizeof *ss->switches);
    }
    ss->switches[ss->n++] = (struct sw){ .name = xstrdup(name),
                                         .target = xstrdup(target),
                                         .index = index,
                                         .driver = driver };
}

static void
add_openflow(struct switches *ss, const char *name, const char *target,
             int index)
{
    add_switch(ss, name, target, index,
               openflow_create(target, admit_switch, ss));
}

/* Adds a switch with the OpenFlow listener 'target', such as
 * "unix:/run/openvswitch/br0.mgmt" or "tcp:192.0.2.1:6653". */
void
switches_add(struct switches *ss, const char *target)
{
    add_openflow(ss, target, target, -1);
}

/* Parses 'text', "DATAPATH_ID:NAME": the switch with this datapath id must
 * have a certificate for NAME.  After the first call, a TLS switch of --switch
 * without an identity is refused.  Returns NULL, or an error message that the
 * caller frees. */
char *
switches_add_identity(struct switches *ss, const char *text)
{
    uint64_t datapath = 0;
    char id[17];

    if (strspn(text, "0123456789abcdef") == 16 && text[16] == ':') {
        datapath = strtoull(text, NULL, 16);
    }
    if (!datapath || !text[17] || strlen(text + 17) > TOPOLOGY_MAX_IDENTITY) {
        return xasprintf(
            "--switch-identity: \"%s\"; expected a datapath id of 16 "
            "digits 0-9 and a-f, a colon, and a name of 1 to %d "
            "characters",
            text, TOPOLOGY_MAX_IDENTITY);
    }
    ovs_strlcpy(id, text, sizeof id);
    return (
        smap_add_once(&ss->identities, id, text + 17)
            ? NULL
            : xasprintf(
                "--switch-identity: datapath id %s is there twice; expected "
                "once",
                id));
}

/* Adds the switches of 't' and takes ownership of 't'.  Must be called at most
 * once. */
void
switches_set_topology(struct switches *ss, struct topology *t)
{
    ss->topology = t;
    ss->routes = routes_create(t);
    ss->rerouted = true;
    ss->forwarding = ss->n;
    for (size_t i = 0; i < t->n_switches; i++) {
        add_openflow(ss, t->switches[i].name, t->switches[i].target, i);
    }
    for (size_t i = 0; i < t->n_switches; i++) {
        const struct topology_switch *tsw = &t->switches[i];

        if (tsw->database) {
            add_switch(ss, tsw->name, tsw->database, i,
                       ovsdb_qos_create(tsw->database, tsw->datapath));
        }
    }
}

/* Returns the OpenFlow driver of switch 'index' of the topology. */
static struct driver *
forwarding_driver(const struct switches *ss, int index)
{
    return ss->switches[ss->forwarding + index].driver;
}

static bool
is_up(const struct switches *ss, const struct topology_link *link)
{
    for (int end = 0; end < 2; end++) {
        const struct driver *d = forwarding_driver(ss, link->ends[end].sw);

        if (d->class->is_down(d, link->ends[end].port)) {
            return false;
        }
    }
    return true;
}

static struct basis
get_basis(const struct switches *ss, const struct policy *policy,
          int64_t generation)
{
    struct basis basis;

    memset(&basis, 0, sizeof basis);    /* Including padding, for memcmp(). */
    ovs_strlcpy(basis.hash, policy->hash, sizeof basis.hash);
    basis.generation = generation;
    for (size_t i = 0; i < ss->n; i++) {
        const struct driver *d = ss->switches[i].driver;

        basis.links += d->class->get_status(d).links;
    }
    return basis;
}

static void
update_routes(struct switches *ss)
{
    for (size_t i = 0; i < ss->topology->n_links; i++) {
        ss->rerouted |= routes_set_up(ss->routes, i,
                                      is_up(ss, &ss->topology->links[i]));
    }
}

/* Desires, in all switches, the levels of 'policy' and the routes.
 * 'generation' is this leader's.  Before the first call no switch is connected
 * to. */
void
switches_set(struct switches *ss, const struct policy *policy,
             int64_t generation)
{
    struct basis basis = get_basis(ss, policy, generation);

    if (!memcmp(&basis, &ss->basis, sizeof basis)) {
        return;
    }
    ss->basis = basis;
    if (ss->topology) {
        update_routes(ss);
    }
    for (size_t i = 0; i < ss->n; i++) {
        const struct sw *sw = &ss->switches[i];
        struct driver_want want = { .generation = generation };

        if (sw->index < 0) {
            want.flows = switch_flows_alone(policy);
        } else {
            want.flows =
                switch_flows(policy, ss->topology, ss->routes, sw->index);
            want.queues = queue_plan_create(policy, ss->topology, sw->index);
        }
        sw->driver->class->want(sw->driver, &want);
        queue_plan_destroy(want.queues);
        flow_table_destroy(want.flows);
    }
}

/* Returns the links between switches as ports of the order, which the caller
 * owns, if the routes have changed since the last call; else NULL. */
struct fabric *
switches_take_fabric(struct switches *ss)
{
    if (!ss->rerouted) {
        return NULL;
    }
    ss->rerouted = false;
    return link_ports_create(ss->topology, ss->routes);
}

/* Disconnects all switches until the next switches_set(), because this
 * controller no longer leads. */
void
switches_leave(struct switches *ss)
{
    if (ss->basis.generation) {
        memset(&ss->basis, 0, sizeof ss->basis);
        for (size_t i = 0; i < ss->n; i++) {
            ss->switches[i].driver->class->leave(ss->switches[i].driver);
        }
    }
}

void
switches_run(struct switches *ss)
{
    for (size_t i = 0; i < ss->n; i++) {
        ss->switches[i].driver->class->run(ss->switches[i].driver);
    }
}

void
switches_wait(struct switches *ss)
{
    for (size_t i = 0; i < ss->n; i++) {
        ss->switches[i].driver->class->wait(ss->switches[i].driver);
    }
}

/* Returns the share of 'n_wanted' entries that are applied, 0 to 1. */
static double
applied_share(size_t n_applied, size_t n_wanted)
{
    return n_wanted ? n_applied / (double) n_wanted : 1;
}

double
switches_applied(const struct switches *ss)
{
    size_t n_wanted = 0, n_applied = 0;

    for (size_t i = 0; i < ss->n; i++) {
        const struct driver *d = ss->switches[i].driver;
        struct driver_status status = d->class->get_status(d);

        n_wanted += status.n_wanted;
        n_applied += status.n_applied;
    }
    return applied_share(n_applied, n_wanted);
}

static struct json *
switch_to_json(const struct sw *sw)
{
    static const char *const states[] = {
        [DRIVER_DISCONNECTED] = "disconnected",
        [DRIVER_REFUSED] = "refused",
        [DRIVER_WRITING] = "writing",
        [DRIVER_IN_SYNC] = "in sync",
    };
    const struct driver *d = sw->driver;
    struct driver_status status = d->class->get_status(d);
    struct json *json = d->class->to_json(d);

    json_object_put_string(json, "name", sw->name);
    json_object_put_string(json, "driver", d->class->name);
    json_object_put_string(json, "reason", status.reason);
    json_object_put_string(json, "state", states[status.state]);
    json_put_real(json, "applied",
                  applied_share(status.n_applied, status.n_wanted));
    return json;
}

size_t
switches_count(const struct switches *ss)
{
    return ss->n;
}

int64_t
switches_newest(const struct switches *ss, size_t i, const char **name)
{
    const struct driver *d = ss->switches[i].driver;

    *name = ss->switches[i].name;
    return MIN(d->class->get_status(d).newest, INT64_MAX);
}

void
switches_alarms(const struct switches *ss, struct json *alarms)
{
    for (size_t i = 0; i < ss->n; i++) {
        const struct driver *d = ss->switches[i].driver;
        struct driver_status status = d->class->get_status(d);

        if (*status.reason && !status.newest) {
            alarm_add(alarms, ALARM_SWITCH, "switch %s (%s): %s",
                      ss->switches[i].name, d->class->name, status.reason);
        }
    }
}

/* Returns {"switches": [...], "applied"}, with a topology also
 * "links_down". */
struct json *
switches_status(const struct switches *ss)
{
    struct json *status = json_object_create();
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < ss->n; i++) {
        json_array_add(array, switch_to_json(&ss->switches[i]));
    }
    json_object_put(status, "switches", array);
    json_put_real(status, "applied", switches_applied(ss));
    if (ss->topology) {
        json_put_integer(status, "links_down", routes_n_down(ss->routes));
    }
    return status;
}
