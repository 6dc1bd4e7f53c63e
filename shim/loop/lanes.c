/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/lanes.h"

#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "shim/classify/fetch.h"
#include "shim/classify/job-slot.h"
#include "shim/loop/lane.h"
#include "shim/classify/miss.h"
#include "shim/classify/parse.h"
#include "shim/ports/port.h"

_Static_assert(LANES_MAX <= JOB_SLOTS_MAX_LANES, "each lane counts");
_Static_assert(LANES_MAX <= PORT_MAX_QUEUES, "and may have a queue");

struct lanes {
    struct wake main_wake;
    unsigned int n;
    bool share_host, share_uplink;      /* Lane 0 receives for all. */
    struct lane *lanes[LANES_MAX];      /* From 1 on. */
};

/* Returns the queue of lane 'i', NULL if each lane does not have its own. */
static struct port *
queue_of(struct port *port, unsigned int i, unsigned int n)
{
    return port_n_queues(port) == n ? port_queue(port, i) : NULL;
}

static struct lane *
create_lane(struct lanes *ls, const struct lanes_config *config,
            unsigned int i)
{
    struct lane_config lane = {
        .number = i,
        .host = queue_of(config->host, i, config->n),
        .uplink = queue_of(config->uplink, i, config->n),
        .flows = config->flows,
        .slots = config->slots,
        .misses = miss_add(config->misses),
        .tap = config->tap,
        .all_arrive = config->all_arrive,
        .tag = config->tag,
        .vxlan = config->vxlan,
        .main_wake = &ls->main_wake,
        .ending = config->ending,
        .main_ended = config->ended,
    };

    return lane.misses ? lane_create(&lane) : NULL;
}

/* Returns NULL without memory or file descriptors. */
struct lanes *
lanes_create(const struct lanes_config *config)
{
    struct lanes *ls = calloc(1, sizeof *ls);

    if (!ls) {
        return NULL;
    }
    ls->n = config->n;
    ls->share_host = !queue_of(config->host, 1, ls->n);
    ls->share_uplink = !queue_of(config->uplink, 1, ls->n);
    if (wake_init(&ls->main_wake)
        || !job_slots_add_lanes(config->slots, ls->n)) {
        lanes_destroy(ls);
        return NULL;
    }
    for (unsigned int i = 1; i < ls->n; i++) {
        ls->lanes[i] = create_lane(ls, config, i);
        if (!ls->lanes[i]) {
            lanes_destroy(ls);
            return NULL;
        }
    }
    return ls;
}

void
lanes_destroy(struct lanes *ls)
{
    if (ls) {
        for (unsigned int i = 1; i < ls->n; i++) {
            lane_destroy(ls->lanes[i]);
        }
        wake_uninit(&ls->main_wake);
        free(ls);
    }
}

/* Returns lane 'number', from 1 on. */
struct lane *
lanes_get(struct lanes *ls, unsigned int number)
{
    return ls->lanes[number];
}

struct wake *
lanes_main_wake(struct lanes *ls)
{
    return &ls->main_wake;
}

/* IPv6's addresses are folded into the size of IPv4's: that some flows share a
 * lane is no matter. */
static struct flow_id
id_of(const struct shim_flow_key *key)
{
    const size_t half = key->family == 4 ? 4 : 8;
    uint64_t local = 0, remote = 0;
    uint32_t ports;

    memcpy(&local, key->local + (key->family == 4 ? 0 : 8), half);
    memcpy(&remote, key->remote + (key->family == 4 ? 0 : 8), half);
    memcpy(&ports, &key->local_port, sizeof ports);
    return flow_id_init(key->family == 4 ? local | remote << 32
                        : local ^ (remote << 1 | remote >> 63), ports,
                        key->protocol);
}

static unsigned int
lane_of_id(const struct lanes *ls, struct flow_id id)
{
    uint64_t mixed = (id.addresses ^ id.rest * UINT64_C(0x9e3779b97f4a7c15))
                     * UINT64_C(0xd1342543de82ef95);

    return (mixed >> 32) * ls->n >> 32;
}

/* Returns the lane of a frame: the same for all of a flow, in both directions.
 * What has no flow stays in lane 0. */
static unsigned int
lane_of(const struct lanes *ls, const struct packet *packet, bool from_host)
{
    struct flow_id id;
    struct parsed p;

    if (parse_common(packet->data, packet->length, from_host, &id)) {
        return lane_of_id(ls, id);
    }
    parse_frame(packet->data, packet->length, from_host, &p);
    return p.kind == PARSED_FLOW ? lane_of_id(ls, id_of(&p.key)) : 0;
}

/* Hands over those of the 'n' frames, at most PORT_BURST, that are other
 * lanes', unless these receive themselves.  Returns how many are left in
 * 'frames', in their order. */
uint16_t
lanes_share(struct lanes *ls, bool from_host, struct rte_mbuf **frames,
            uint16_t n)
{
    struct rte_mbuf *theirs[LANES_MAX][PORT_BURST];
    uint16_t n_theirs[LANES_MAX] = { 0 }, left;
    struct packet packets[PORT_BURST];

    if (!(from_host ? ls->share_host : ls->share_uplink)) {
        return n;
    }
    fetch(frames, n, packets);
    for (uint16_t i = 0; i < n; i++) {
        unsigned int lane = lane_of(ls, &packets[i], from_host);

        theirs[lane][n_theirs[lane]++] = frames[i];
    }
    left = n_theirs[0];
    for (uint16_t i = 0; i < left; i++) {
        frames[i] = theirs[0][i];
    }
    for (unsigned int i = 1; i < ls->n; i++) {
        if (n_theirs[i]) {
            lane_put(ls->lanes[i], from_host, theirs[i], n_theirs[i]);
        }
    }
    return left;
}

void
lanes_wake_up(struct lanes *ls)
{
    for (unsigned int i = 1; i < ls->n; i++) {
        wake_up(&ls->lanes[i]->wake);
    }
}

bool
lanes_have_ended(const struct lanes *ls)
{
    for (unsigned int i = 1; i < ls->n; i++) {
        if (!lane_has_ended(ls->lanes[i])) {
            return false;
        }
    }
    return true;
}

void
lanes_add_stats(const struct lanes *ls, struct shim_stats *stats)
{
    for (unsigned int i = 1; i < ls->n; i++) {
        lane_add_stats(ls->lanes[i], stats);
    }
}
