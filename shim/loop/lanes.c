/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/lanes.h"

#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/memory.h"
#include "shim/classify/fetch.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/parse.h"
#include "shim/classify/tag.h"
#include "shim/clock/counter.h"
#include "shim/loop/forward.h"
#include "shim/ports/port.h"

#define RING 512                /* Packets from lane 0, for each direction. */
#define BACK_RING 256           /* Elements to lane 0, for each direction. */

_Static_assert(LANE_PACKETS == 2 * RING + 2 * BACK_RING, "all rings full");
_Static_assert(LANES_MAX <= JOB_SLOTS_MAX_LANES, "each lane counts");
_Static_assert(LANES_MAX <= PORT_MAX_QUEUES, "a lane may have a queue");

/* From a lane to lane 0: a frame from the host, to be queued. */
struct lane_sent {
    struct rte_mbuf *frame;
    struct verdict verdict;
};

struct lane {
    struct forward_config config;       /* 'host' and 'uplink' are this lane's
                                         * queues, NULL if lane 0 receives for
                                         * all lanes. */
    const bool *ending, *main_ended;    /* Lane 0's, see forward_end(). */
    unsigned int number;        /* From 1 on. */
    struct wake *main_wake;     /* Wakes lane 0. */
    struct wake wake;           /* Wakes this lane. */
    struct rte_ring *from_host, *from_uplink;   /* struct rte_mbuf *, written
                                                 * by lane 0. */
    struct rte_ring *sent;      /* struct lane_sent, read by lane 0. */
    struct rte_ring *arrived;   /* struct lane_arrived, read by lane 0. */
    uint64_t lost;              /* Frames dropped by lane 0 because a ring to
                                 * this lane was full. */

    struct classifier classifier __attribute__((aligned(64)));
    uint32_t last_polls;        /* Polls since the end was requested. */
    bool hands_over;            /* Frames for the host go to 'arrived'. */
    bool blocked;               /* The last poll had no space for frames. */

    /* Written by the lane's thread, read by others. */
    bool ended;
    uint64_t rx_packets, rx_bytes;
};

struct lanes {
    struct wake main_wake;
    unsigned int n;
    bool share_host, share_uplink;      /* Lane 0 receives for all lanes. */
    struct lane *lanes[LANES_MAX];      /* From 1 on. */
};

/* Makes a ring between two threads, for 'n' elements of 'size' bytes. */
static struct rte_ring *
new_ring(const char *name, unsigned int size, unsigned int n)
{
    const unsigned int flags = (RING_F_SP_ENQ | RING_F_SC_DEQ
                                | RING_F_EXACT_SZ);
    unsigned int count = rte_align32pow2(n + 1);
    struct rte_ring *r = allocate_lines(rte_ring_get_memsize_elem(size,
                                                                  count));

    rte_ring_init(r, name, n, flags);
    return r;
}

/* Frees a ring and its frames.  An element has 'size' bytes and begins with a
 * pointer to a frame, or NULL. */
static void
free_ring(struct rte_ring *r, unsigned int size)
{
    union {
        struct rte_mbuf *frame;
        struct lane_sent sent;
        struct lane_arrived arrived;
    } element;

    while (!rte_ring_dequeue_elem(r, &element, size)) {
        rte_pktmbuf_free(element.frame);
    }
    free(r);
}

static void
destroy_lane(struct lane *l)
{
    if (l) {
        free_ring(l->sent, sizeof(struct lane_sent));
        free_ring(l->arrived, sizeof(struct lane_arrived));
        free_ring(l->from_host, sizeof(void *));
        free_ring(l->from_uplink, sizeof(void *));
        wake_uninit(&l->wake);
        free(l);
    }
}

/* Returns the queue of lane 'i' of 'n', NULL if the port has fewer. */
struct port *
lane_queue(struct port *port, unsigned int i, unsigned int n)
{
    return port_n_queues(port) == n ? port_queue(port, i) : NULL;
}

/* Returns NULL without file descriptors. */
static struct lane *
create_lane(struct lanes *ls, const struct forward_config *config,
            unsigned int i, const bool *ending, const bool *ended)
{
    struct lane *l = allocate_lines(sizeof *l);

    memset(l, 0, sizeof *l);
    l->config = *config;
    l->config.host = lane_queue(config->host, i, ls->n);
    l->config.uplink = lane_queue(config->uplink, i, ls->n);
    l->ending = ending;
    l->main_ended = ended;
    l->number = i;
    l->main_wake = &ls->main_wake;
    l->hands_over = !l->config.host || config->cc;
    l->classifier = (struct classifier){ .flows = config->flows,
                                         .slots = config->slots,
                                         .tunnels = config->tunnels };
    l->from_host = new_ring("from-host", sizeof(void *), RING);
    l->from_uplink = new_ring("from-uplink", sizeof(void *), RING);
    l->sent = new_ring("sent", sizeof(struct lane_sent), BACK_RING);
    l->arrived = new_ring("arrived", sizeof(struct lane_arrived), BACK_RING);
    if (wake_init(&l->wake)) {
        destroy_lane(l);
        return NULL;
    }
    return l;
}

struct lanes *
lanes_create(const struct forward_config *config, const bool *ending,
             const bool *ended)
{
    struct lanes *ls = allocate(1, sizeof *ls);

    ls->n = config->n_lanes;
    ls->share_host = !lane_queue(config->host, 1, ls->n);
    ls->share_uplink = !lane_queue(config->uplink, 1, ls->n);
    job_slots_add_lanes(config->slots, ls->n);
    if (wake_init(&ls->main_wake)) {
        lanes_destroy(ls);
        return NULL;
    }
    for (unsigned int i = 1; i < ls->n; i++) {
        ls->lanes[i] = create_lane(ls, config, i, ending, ended);
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
            destroy_lane(ls->lanes[i]);
        }
        wake_uninit(&ls->main_wake);
        free(ls);
    }
}

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

/* Receives up to 'max' frames from 'queue', or from 'ring' if the lane has no
 * queue.  Returns their number. */
static uint16_t
receive_frames(struct lane *l, struct port *queue, struct rte_ring *ring,
               struct rte_mbuf **frames, uint32_t max)
{
    max = max < PORT_BURST ? max : PORT_BURST;
    if (!max) {
        l->blocked = true;
        return 0;
    }
    return (queue ? l->ended ? 0 : port_receive(queue, frames, max)
            : rte_ring_dequeue_burst(ring, (void **) frames, max, NULL));
}

static bool
receive_from_host(struct lane *l, uint64_t now)
{
    const struct forward_config *c = &l->config;
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    struct verdict verdicts[PORT_BURST];
    struct lane_sent sent[PORT_BURST];
    uint16_t n = receive_frames(l, c->host, l->from_host, frames,
                                rte_ring_free_count(l->sent));

    if (!n) {
        return false;
    }
    classify_frames(&l->classifier, frames, n, job_slots_leased(c->slots, now),
                    packets, verdicts);
    if (c->tag && !c->cc) {
        tag_burst(packets, verdicts, n, job_slots_level_dscps(c->slots));
    }
    for (uint16_t i = 0; i < n; i++) {
        sent[i] = (struct lane_sent) { frames[i], verdicts[i] };
    }
    rte_ring_enqueue_burst_elem(l->sent, sent, sizeof *sent, n, NULL);
    wake_up(l->main_wake);
    return true;
}

/* Sends 'frames' to the host and counts those that the port accepted.  Stores
 * one element in 'arrived' for each run of frames of the same job, and returns
 * the number of elements. */
static uint16_t
send_to_host(struct lane *l, struct rte_mbuf **frames, const uint16_t *slots,
             uint16_t n, struct lane_arrived *arrived)
{
    uint32_t lengths[PORT_BURST], n_sent = 0;
    uint16_t sent_slots[PORT_BURST], n_arrived = 0;
    uint64_t bytes = 0;

    for (uint16_t i = 0; i < n; i++) {
        uint32_t length = rte_pktmbuf_pkt_len(frames[i]);

        if (!port_send(l->config.host, frames[i])) {
            continue;
        }
        sent_slots[n_sent] = slots[i];
        lengths[n_sent++] = length;
        bytes += length;
        if (!n_arrived || arrived[n_arrived - 1].slot != slots[i]) {
            arrived[n_arrived++] = (struct lane_arrived) { .slot = slots[i] };
        }
        arrived[n_arrived - 1].bytes += length;
    }
    counter_add(&l->rx_packets, n_sent);
    counter_add(&l->rx_bytes, bytes);
    job_slots_count_rx(l->config.slots, l->number, sent_slots, lengths,
                       n_sent);
    return n_arrived;
}

static uint32_t
space_for_host(const struct lane *l)
{
    uint32_t ring = rte_ring_free_count(l->arrived);
    uint32_t port = l->hands_over ? ring : port_tx_space(l->config.host);

    return ring < port ? ring : port;
}

static bool
receive_from_uplink(struct lane *l)
{
    struct lane_arrived arrived[PORT_BURST];
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    uint16_t slots[PORT_BURST], n, n_arrived;

    n = n_arrived = receive_frames(l, l->config.uplink, l->from_uplink,
                                   frames, space_for_host(l));
    if (!n) {
        return false;
    }
    fetch_packets(frames, n, packets);
    classify_burst_to_host(&l->classifier, packets, n, slots);
    for (uint16_t i = 0; l->hands_over && i < n; i++) {
        arrived[i] = (struct lane_arrived) {
            frames[i], rte_pktmbuf_pkt_len(frames[i]), slots[i],
        };
    }
    if (!l->hands_over) {
        n_arrived = send_to_host(l, frames, slots, n, arrived);
    }
    rte_ring_enqueue_burst_elem(l->arrived, arrived, sizeof *arrived,
                                n_arrived, NULL);
    if (l->hands_over) {
        wake_up(l->main_wake);
    }
    return true;
}

/* Stops receiving after the first poll without frames, once lane 0 has put its
 * last frame into the rings.  'main_ended' was read before this poll. */
static void
follow_end(struct lane *l, bool main_ended, bool received)
{
    if (!LOAD(l->ending)) {
        l->last_polls = 0;
        STORE(&l->ended, false);
    } else if (main_ended && (!received
                              || ++l->last_polls >= LANE_LAST_POLLS)) {
        STORE(&l->ended, true);
    }
}

/* Receives and classifies one burst in each direction.  Returns false if there
 * was none, or no space in the rings to lane 0. */
bool
lane_poll(struct lane *l, uint64_t now)
{
    bool main_ended = LOAD(l->main_ended);
    bool received;

    l->blocked = false;
    received = receive_from_host(l, now);
    received |= receive_from_uplink(l);
    if (l->config.host) {
        received |= port_flush(l->config.host, now);
    }
    follow_end(l, main_ended, received);
    return received;
}

bool
lane_is_blocked(const struct lane *l)
{
    return l->blocked;
}

struct wake *
lane_wake(struct lane *l)
{
    return &l->wake;
}

/* Passes 'frames' to a lane.  Frees and counts those that do not fit. */
static void
put_frames(struct lane *l, bool from_host, struct rte_mbuf **frames,
           uint16_t n)
{
    struct rte_ring *ring = from_host ? l->from_host : l->from_uplink;
    uint16_t put = rte_ring_enqueue_burst(ring, (void **) frames, n, NULL);

    if (put < n) {
        rte_pktmbuf_free_bulk(frames + put, n - put);
        counter_add(&l->lost, n - put);
    }
    wake_up(&l->wake);
}

/* Takes up to 'max' frames, at most PORT_BURST, that the lane has received
 * from the host and classified.  Returns their number. */
uint16_t
lane_take_sent(struct lane *l, struct rte_mbuf **frames,
               struct verdict *verdicts, uint16_t max)
{
    struct lane_sent sent[PORT_BURST];
    uint16_t n = rte_ring_dequeue_burst_elem(l->sent, sent, sizeof *sent, max,
                                             NULL);

    for (uint16_t i = 0; i < n; i++) {
        frames[i] = sent[i].frame;
        verdicts[i] = sent[i].verdict;
    }
    return n;
}

/* Takes up to 'max' elements for the host.  Returns their number. */
uint16_t
lane_take_arrived(struct lane *l, struct lane_arrived *arrived, uint16_t max)
{
    return rte_ring_dequeue_burst_elem(l->arrived, arrived, sizeof *arrived,
                                       max, NULL);
}

bool
lane_is_ending(const struct lane *l)
{
    return LOAD(l->ending);
}

/* Folds IPv6 addresses to the size of IPv4's: two flows with the same id share
 * a lane, which is harmless. */
static struct flow_id
folded_id(const struct shim_flow_key *key)
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

/* Returns the lane of a frame: the same for all packets of a flow, in both
 * directions, and 0 for a frame without a flow. */
static unsigned int
lane_of(const struct lanes *ls, const struct packet *packet, bool from_host)
{
    struct flow_id id;
    struct parsed p;

    if (parse_common(packet->data, packet->length, from_host, &id)) {
        return lane_of_id(ls, id);
    }
    parse_frame(packet->data, packet->length, from_host, &p);
    return p.kind == PARSED_FLOW ? lane_of_id(ls, folded_id(&p.key)) : 0;
}

/* Passes frames of other lanes to them, unless each lane receives from its own
 * queue.  'n' is at most PORT_BURST.  Returns how many frames of lane 0 are
 * left in 'frames', in their order. */
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
    fetch_packets(frames, n, packets);
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
            put_frames(ls->lanes[i], from_host, theirs[i], n_theirs[i]);
        }
    }
    return left;
}

/* Wakes all other lanes, after lane 0 has stopped receiving. */
void
lanes_wake_up(struct lanes *ls)
{
    for (unsigned int i = 1; i < ls->n; i++) {
        wake_up(&ls->lanes[i]->wake);
    }
}

/* Returns true if no lane receives and lane 0 has taken all their frames. */
bool
lanes_have_ended(const struct lanes *ls)
{
    for (unsigned int i = 1; i < ls->n; i++) {
        const struct lane *l = ls->lanes[i];

        if (!LOAD(&l->ended) || !rte_ring_empty(l->sent)
            || !rte_ring_empty(l->arrived)) {
            return false;
        }
    }
    return true;
}

void
lane_add_stats(const struct lane *l, struct shim_stats *stats)
{
    stats->rx_packets += counter_get(&l->rx_packets);
    stats->rx_bytes += counter_get(&l->rx_bytes);
    stats->malformed += counter_get(&l->classifier.n_malformed);
    stats->untagged += counter_get(&l->classifier.n_untagged);
    stats->lane_lost += counter_get(&l->lost);
}

