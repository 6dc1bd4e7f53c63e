/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/lane.h"

#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "shim/capture/tap.h"
#include "shim/clock/counter.h"
#include "shim/classify/fetch.h"
#include "shim/classify/flow-table.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/tag.h"
#include "shim/ports/port.h"

#define MAX_LAST_TURNS 64

#define LOAD(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

/* A ring between two threads, for 'n' elements of 'size' bytes. */
static struct rte_ring *
new_ring(const char *name, unsigned int size, unsigned int n)
{
    const unsigned int flags = (RING_F_SP_ENQ | RING_F_SC_DEQ
                                | RING_F_EXACT_SZ);
    unsigned int count = rte_align32pow2(n + 1);
    ssize_t bytes = rte_ring_get_memsize_elem(size, count);
    struct rte_ring *r = bytes > 0 ? aligned_alloc(64, bytes) : NULL;

    if (r && rte_ring_init(r, name, n, flags)) {
        free(r);
        r = NULL;
    }
    return r;
}

/* Returns NULL without memory or file descriptors. */
struct lane *
lane_create(const struct lane_config *config)
{
    struct lane *l = aligned_alloc(64, (sizeof *l + 63) / 64 * 64);

    if (!l) {
        return NULL;
    }
    memset(l, 0, sizeof *l);
    l->config = *config;
    l->hands_over = !config->host || config->all_arrive;
    l->classifier = (struct classifier) {
        .flows = config->flows,
        .slots = config->slots,
        .misses = config->misses,
        .vxlan = config->vxlan,
    };
    l->from_host = new_ring("from-host", sizeof(void *), LANE_RING);
    l->from_uplink = new_ring("from-uplink", sizeof(void *), LANE_RING);
    l->sent = new_ring("sent", sizeof(struct lane_sent), LANE_BACK_RING);
    l->arrived = new_ring("arrived", sizeof(struct lane_arrived),
                          LANE_BACK_RING);
    if (wake_init(&l->wake) || !l->from_host || !l->from_uplink || !l->sent
        || !l->arrived) {
        lane_destroy(l);
        return NULL;
    }
    return l;
}

static void
free_ring(struct rte_ring *r)
{
    struct rte_mbuf *frame;

    while (r && !rte_ring_dequeue(r, (void **) &frame)) {
        rte_pktmbuf_free(frame);
    }
    free(r);
}

void
lane_destroy(struct lane *l)
{
    struct lane_arrived arrived;
    struct lane_sent sent;

    if (!l) {
        return;
    }
    while (l->sent
           && !rte_ring_dequeue_elem(l->sent, &sent, sizeof sent)) {
        rte_pktmbuf_free(sent.frame);
    }
    while (l->arrived && !rte_ring_dequeue_elem(l->arrived, &arrived,
                                                sizeof arrived)) {
        rte_pktmbuf_free(arrived.frame);
    }
    free(l->sent);
    free(l->arrived);
    free_ring(l->from_host);
    free_ring(l->from_uplink);
    wake_uninit(&l->wake);
    free(l);
}

/* Returns how many frames there are, 'max' at most, of the queue if the lane
 * has one and else of the ring. */
static uint16_t
get(struct lane *l, struct port *queue, struct rte_ring *ring,
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
    const struct lane_config *c = &l->config;
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    struct verdict verdicts[PORT_BURST];
    struct lane_sent sent[PORT_BURST];
    uint16_t n = get(l, c->host, l->from_host, frames,
                     rte_ring_free_count(l->sent));

    if (!n) {
        return false;
    }
    fetch(frames, n, packets);
    classify_burst_from_host(&l->classifier, packets, n, now,
                             job_slots_leased(c->slots, now), verdicts);
    if (c->tag) {
        tag_burst(packets, verdicts, n);
    }
    for (uint16_t i = 0; i < n; i++) {
        sent[i] = (struct lane_sent) { frames[i], verdicts[i] };
    }
    rte_ring_enqueue_burst_elem(l->sent, sent, sizeof *sent, n, NULL);
    wake_up(c->main_wake);
    return true;
}

/* Lane 0 gets what is for the host where it must, and while somebody captures.
 * Later not before it has sent all of that. */
static void
choose_way(struct lane *l)
{
    const struct lane_config *c = &l->config;

    if (!c->host || c->all_arrive || tap_is_on(c->tap)) {
        l->hands_over = true;
    } else if (l->hands_over && rte_ring_empty(l->arrived)) {
        l->hands_over = false;
    }
}

/* Sends the frames to the host, and counts those that the port took.  Returns
 * how many elements there are in 'arrived' afterwards: one for each run of
 * frames of the same job. */
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
    job_slots_count_rx_of(l->config.slots, l->config.number, sent_slots,
                          lengths, n_sent);
    return n_arrived;
}

static uint32_t
room_for_host(const struct lane *l)
{
    uint32_t room = rte_ring_free_count(l->arrived);
    uint32_t room_at_port = l->hands_over ? room : port_room(l->config.host);

    return room < room_at_port ? room : room_at_port;
}

static bool
receive_from_uplink(struct lane *l)
{
    struct lane_arrived arrived[PORT_BURST];
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    uint16_t slots[PORT_BURST], n, n_arrived;

    choose_way(l);
    n = n_arrived = get(l, l->config.uplink, l->from_uplink, frames,
                        room_for_host(l));
    if (!n) {
        return false;
    }
    fetch(frames, n, packets);
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
        wake_up(l->config.main_wake);
    }
    return true;
}

/* Ends with the first turn that finds nothing after lane 0 has put its last
 * frame into the rings, which 'main_ended' said before the turn. */
static void
follow_end(struct lane *l, bool main_ended, bool received)
{
    if (!LOAD(l->config.ending)) {
        l->last_turns = 0;
        STORE(&l->ended, false);
    } else if (main_ended && (!received
                              || ++l->last_turns >= MAX_LAST_TURNS)) {
        STORE(&l->ended, true);
    }
}

/* Moves what there is to move at 'now'.  Returns false if there was nothing,
 * or no room for it. */
bool
lane_turn(struct lane *l, uint64_t now)
{
    bool main_ended = LOAD(l->config.main_ended);
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

/* Hands frames over; what has no room is lost, and counted. */
void
lane_put(struct lane *l, bool from_host, struct rte_mbuf **frames, uint16_t n)
{
    struct rte_ring *ring = from_host ? l->from_host : l->from_uplink;
    uint16_t put = rte_ring_enqueue_burst(ring, (void **) frames, n, NULL);

    if (put < n) {
        rte_pktmbuf_free_bulk(frames + put, n - put);
        counter_add(&l->lost, n - put);
    }
    wake_up(&l->wake);
}

/* Takes up to 'max', at most PORT_BURST, frames that the lane has
 * classified. */
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

uint16_t
lane_take_arrived(struct lane *l, struct lane_arrived *arrived, uint16_t max)
{
    return rte_ring_dequeue_burst_elem(l->arrived, arrived, sizeof *arrived,
                                       max, NULL);
}

bool
lane_is_ending(const struct lane *l)
{
    return LOAD(l->config.ending);
}

/* Has it ended, and has lane 0 taken all that it had? */
bool
lane_has_ended(const struct lane *l)
{
    return (LOAD(&l->ended) && rte_ring_empty(l->sent)
            && rte_ring_empty(l->arrived));
}

void
lane_add_stats(const struct lane *l, struct shim_stats *stats)
{
    stats->rx_packets += counter_get(&l->rx_packets);
    stats->rx_bytes += counter_get(&l->rx_bytes);
    stats->misses += counter_get(&l->classifier.n_misses);
    stats->malformed += counter_get(&l->classifier.n_malformed);
    stats->lane_lost += counter_get(&l->lost);
}
