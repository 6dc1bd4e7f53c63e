/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/switches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/southbound/elephants.h"
#include "controller/southbound/flow-table.h"
#include "controller/southbound/link-check.h"
#include "controller/southbound/openflow.h"
#include "controller/southbound/ovsdb-qos.h"
#include "controller/southbound/queue-plan.h"
#include "controller/southbound/routes.h"
#include "controller/southbound/switch-flows.h"
#include "controller/southbound/switches-private.h"
#include "controller/southbound/topology.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "util.h"

struct switches *
switches_create(void)
{
    struct switches *ss = xzalloc(sizeof *ss);

    hmap_init(&ss->identities);
    return ss;
}

void
switches_destroy(struct switches *ss)
{
    if (ss) {
        struct identity *id;

        for (size_t i = 0; i < ss->n; i++) {
            ss->switches[i].driver->class->destroy(ss->switches[i].driver);
            free(ss->switches[i].name);
            free(ss->switches[i].target);
        }
        HMAP_FOR_EACH_POP (id, node, &ss->identities) {
            free(id->name);
            free(id);
        }
        hmap_destroy(&ss->identities);
        free(ss->switches);
        link_check_destroy(ss->links);
        routes_destroy(ss->routes);
        topology_destroy(ss->topology);
        free(ss);
    }
}

static const struct identity *
find_identity(const struct switches *ss, uint64_t datapath)
{
    const struct identity *id;

    HMAP_FOR_EACH_WITH_HASH (id, node, hash_uint64(datapath),
                             &ss->identities) {
        if (id->datapath == datapath) {
            return id;
        }
    }
    return NULL;
}

/* Whose certificate the switch 'sw', that says it is 'datapath', must have:
 * NULL if nobody's in particular, "" if there is none that would do. */
static const char *
right_identity(const struct switches *ss, const struct sw *sw,
               uint64_t datapath)
{
    const struct identity *id;

    if (strncmp(sw->target, "ssl:", 4)) {
        return NULL;
    } else if (sw->index >= 0) {
        return ss->topology->switches[sw->index].identity;
    } else if (hmap_is_empty(&ss->identities)) {
        return NULL;
    }
    id = find_identity(ss, datapath);
    return id ? id->name : "";
}

/* Does 'sw' have the certificate of the switch that it says it is? */
static char *
check_identity(const struct switches *ss, const struct sw *sw,
               uint64_t datapath, const char *peer)
{
    const char *right = right_identity(ss, sw, datapath);

    if (!right || (peer && *right && !strcmp(peer, right))) {
        return NULL;
    } else if (!*right) {
        return xasprintf("datapath id %016"PRIx64", which no "
                         "--switch-identity has", datapath);
    }
    return xasprintf("the certificate of \"%s\" with datapath id %016"PRIx64
                     ", which is that of \"%s\"", peer ? peer : "", datapath,
                     right);
}

/* Is the switch behind 'driver' one that we may have, by its datapath id and
 * its certificate? */
static char *
admit(const struct driver *driver, uint64_t datapath, const char *peer,
      void *ss_)
{
    const struct switches *ss = ss_;
    const struct sw *self = NULL;

    for (size_t i = 0; i < ss->n; i++) {
        const struct sw *sw = &ss->switches[i];

        self = sw->driver == driver ? sw : self;
        if (sw->driver != driver) {
            if (sw_status(sw).datapath == datapath) {
                return xasprintf("datapath id %016"PRIx64" is that of \"%s\" "
                                 "too, which is connected", datapath,
                                 sw->name);
            }
        } else if (sw->index >= 0) {
            uint64_t right = ss->topology->switches[sw->index].datapath;

            if (datapath != right) {
                return xasprintf("datapath id %016"PRIx64", \"%s\" has "
                                 "%016"PRIx64" in the topology", datapath,
                                 sw->name, right);
            }
        }
    }
    return check_identity(ss, self, datapath, peer);
}

/* What came by a link. */
static void
take_packet(const struct driver *driver, uint32_t port, const void *packet,
            size_t size, void *ss_)
{
    struct switches *ss = ss_;

    for (size_t i = 0; i < ss->n && ss->links; i++) {
        if (ss->switches[i].driver == driver && ss->switches[i].index >= 0) {
            link_check_heard(ss->links, ss->switches[i].index, port, packet,
                             size);
        }
    }
}

static const struct driver_events looking_events = {
    .admit = admit,
    .packet = take_packet,
};
static const struct driver_events driver_events = {
    .admit = admit,
};

static void
add_switch(struct switches *ss, const char *name, const char *target,
           int index, struct driver *driver)
{
    if (ss->n == ss->allocated) {
        ss->switches = x2nrealloc(ss->switches, &ss->allocated,
                                  sizeof *ss->switches);
    }
    ss->switches[ss->n++] = (struct sw) {
        .name = xstrdup(name),
        .target = xstrdup(target),
        .index = index,
        .driver = driver,
    };
}

static void
add_openflow(struct switches *ss, const char *name, const char *target,
             int index)
{
    add_switch(ss, name, target, index,
               openflow_create(target, index >= 0 && ss->links
                               ? &looking_events : &driver_events, ss));
}

/* Adds the switch whose OpenFlow listener is 'target', such as
 * "unix:/run/openvswitch/br0.mgmt" or "tcp:192.0.2.1:6653". */
void
switches_add(struct switches *ss, const char *target)
{
    add_openflow(ss, target, target, -1);
}

/* Says that the switch with the datapath id before the colon in 'text' has a
 * certificate for the name after it; once that is said of any, the others of
 * --switch with TLS are refused.  Returns NULL, or a message. */
char *
switches_add_identity(struct switches *ss, const char *text)
{
    struct identity *id;
    uint64_t datapath = 0;

    if (strspn(text, "0123456789abcdef") == 16 && text[16] == ':') {
        datapath = strtoull(text, NULL, 16);
    }
    if (!datapath || !text[17]
        || strlen(text + 17) > TOPOLOGY_MAX_IDENTITY) {
        return xasprintf("--switch-identity: \"%s\", a datapath id of 16 "
                         "digits 0-9 and a-f, a colon, and a name of 1 to %d "
                         "characters are allowed", text,
                         TOPOLOGY_MAX_IDENTITY);
    } else if (find_identity(ss, datapath)) {
        return xasprintf("--switch-identity: datapath id %016"PRIx64" is "
                         "there twice, once is allowed", datapath);
    }
    id = xmalloc(sizeof *id);
    id->datapath = datapath;
    id->name = xstrdup(text + 17);
    hmap_insert(&ss->identities, &id->node, hash_uint64(datapath));
    return NULL;
}

/* Adds the switches of 't', and looks where its links go if there is a 'key',
 * which is copied.  To be called once. */
void
switches_set_topology(struct switches *ss, struct topology *t,
                      const struct lldp_key *key)
{
    ss->topology = t;
    ss->routes = routes_create(t);
    ss->links = key ? link_check_create(t, key) : NULL;
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

/* The switch with 'index' in the topology, that is, what forwards in it: the
 * drivers of queues come after all of these. */
static const struct sw *
find_switch(const struct switches *ss, int index)
{
    for (size_t i = 0; i < ss->n; i++) {
        if (ss->switches[i].index == index) {
            return &ss->switches[i];
        }
    }
    OVS_NOT_REACHED();
}

static bool
is_up(const struct switches *ss, const struct topology_link *link)
{
    for (int end = 0; end < 2; end++) {
        const struct driver *d = find_switch(ss, link->ends[end].sw)->driver;

        if (d->class->is_down(d, link->ends[end].port)) {
            return false;
        }
    }
    return true;
}

static struct basis
get_basis(const struct switches *ss, const struct policy *policy,
          int64_t generation, int64_t version)
{
    struct basis basis;

    memset(&basis, 0, sizeof basis);    /* Padding too: it is compared. */
    ovs_strlcpy(basis.hash, policy->hash, sizeof basis.hash);
    basis.generation = generation;
    basis.version = version;
    for (size_t i = 0; i < ss->n; i++) {
        basis.links += sw_status(&ss->switches[i]).links;
    }
    return basis;
}

static void
update_routes(struct switches *ss, const struct policy *policy,
              const struct cluster *cluster)
{
    struct route_demand *demands;
    size_t n;

    for (size_t i = 0; i < ss->topology->n_links; i++) {
        routes_set_up(ss->routes, i, is_up(ss, &ss->topology->links[i]));
    }
    n = elephants_find(cluster, ss->topology, policy, &demands);
    routes_place(ss->routes, demands, n);
    free(demands);
}

/* Wants 'policy', and paths for the order 'version' of the jobs of 'cluster',
 * in all switches, as the leader of 'generation'.  Until the first call none
 * is connected to. */
void
switches_set(struct switches *ss, const struct policy *policy,
             int64_t generation, const struct cluster *cluster,
             int64_t version)
{
    struct basis basis = get_basis(ss, policy, generation, version);

    if (!memcmp(&basis, &ss->basis, sizeof basis)) {
        return;
    }
    ss->basis = basis;
    if (ss->topology) {
        update_routes(ss, policy, cluster);
    }
    for (size_t i = 0; i < ss->n; i++) {
        const struct sw *sw = &ss->switches[i];
        struct flow_table *flows
            = (sw->index < 0 ? switch_flows_alone(policy)
               : switch_flows(policy, ss->topology, ss->routes, sw->index,
                              ss->links != NULL));
        struct queue_plan *queues
            = (sw->index < 0 ? NULL
               : queue_plan_create(policy, ss->topology, sw->index));
        struct driver_want want = {
            .generation = generation,
            .flows = flows,
            .queues = queues,
        };

        sw->driver->class->want(sw->driver, &want);
        queue_plan_destroy(queues);
        flow_table_destroy(flows);
    }
}

/* This controller no longer leads: no switch is connected to until the next
 * switches_set(). */
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

/* Sends a frame that finds out where a link goes, if both of its ends are up
 * and the switch at the other one would tell. */
static bool
send_probe(const struct topology_port *from, const struct topology_port *to,
           const void *frame, size_t size, void *ss_)
{
    const struct switches *ss = ss_;
    struct driver *d = find_switch(ss, from->sw)->driver;
    const struct sw *far = find_switch(ss, to->sw);

    return (sw_status(far).state == DRIVER_IN_SYNC
            && !d->class->is_down(d, from->port)
            && !far->driver->class->is_down(far->driver, to->port)
            && d->class->send(d, from->port, frame, size));
}

void
switches_run(struct switches *ss)
{
    if (switches_look(ss)) {
        link_check_run(ss->links, send_probe, ss);
    }
    for (size_t i = 0; i < ss->n; i++) {
        ss->switches[i].driver->class->run(ss->switches[i].driver);
    }
}

void
switches_wait(struct switches *ss)
{
    if (switches_look(ss)) {
        link_check_wait(ss->links);
    }
    for (size_t i = 0; i < ss->n; i++) {
        ss->switches[i].driver->class->wait(ss->switches[i].driver);
    }
}
