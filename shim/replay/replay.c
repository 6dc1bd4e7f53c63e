/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/replay/replay.h"

#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_ring.h>

#include "base/memory.h"
#include "shim/capture/file.h"
#include "shim/classify/bursts.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/parse.h"
#include "shim/loop/egress.h"
#include "shim/loop/forward.h"
#include "shim/ports/eal.h"
#include "shim/ports/port.h"
#include "shim/replay/rules.h"

#define RING_SIZE 1024          /* More frames than leave in one poll. */
#define LEASE_MS 3600000        /* Renewed in each poll. */
#define STUCK_NS 1000           /* Step of time if a poll does nothing. */

/* Origin of the frame in a packet buffer. */
struct origin {
    uint64_t number;
    uint32_t captured;
};

struct end {
    struct rte_ring *in, *out;
    struct port *port;
};

struct replay {
    const struct replay_rules *rules;
    replay_leave_func *leave;
    void *aux;
    int origin_at;              /* Offset of struct origin in a buffer. */

    uint32_t mtu;               /* MTU of the pool and the ports. */
    struct rte_mempool *pool;
    struct end host, uplink;

    struct flow_cache *flows;
    struct job_slots *slots;
    struct bursts *bursts;
    struct forward *forward;

    uint64_t now;               /* Capture's time; 0 before its first frame. */
    uint64_t port_dropped;      /* Drops of earlier captures. */
    struct replay_counts counts;        /* Without the shim's counters. */
};

static uint32_t
packet_bytes(const struct replay_rules *rules)
{
    return port_frame_size(rules->mtu) + RTE_PKTMBUF_HEADROOM;
}

uint64_t
replay_memory(const struct replay_rules *rules)
{
    return eal_pool_bytes(egress_pool_packets(rules->rate_bps, rules->mtu),
                          packet_bytes(rules), false);
}

static char *
end_create(struct replay *r, const char *name, struct end *end)
{
    char in[32], out[32];

    snprintf(in, sizeof in, "%s-in", name);
    snprintf(out, sizeof out, "%s-out", name);
    end->in = rte_ring_create(in, RING_SIZE, SOCKET_ID_ANY,
                              RING_F_SP_ENQ | RING_F_SC_DEQ);
    end->out = rte_ring_create(out, RING_SIZE, SOCKET_ID_ANY,
                               RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!end->in || !end->out) {
        return duplicate("no memory for rings");
    }
    return port_create_rings(name, r->mtu, false, r->pool, end->in, end->out,
                             &end->port);
}

static void
end_destroy(struct end *end)
{
    port_destroy(end->port);
    rte_ring_free(end->in);
    rte_ring_free(end->out);
}

static char *
create_ends(struct replay *r)
{
    static const struct rte_mbuf_dynfield field = {
        .name = "stagecoach_replay_origin",
        .size = sizeof(struct origin),
        .align = __alignof__(struct origin),
    };
    char *error;

    r->origin_at = rte_mbuf_dynfield_register(&field);
    r->pool = rte_pktmbuf_pool_create(
        "replay", egress_pool_packets(r->rules->rate_bps, r->mtu), 0, 0,
        packet_bytes(r->rules), SOCKET_ID_ANY);
    if (r->origin_at < 0 || !r->pool) {
        return duplicate("no memory for packet buffers");
    }
    error = end_create(r, "host", &r->host);
    return error ? error : end_create(r, "uplink", &r->uplink);
}

static uint64_t
count_port_dropped(const struct replay *r)
{
    struct shim_stats stats = { .port_dropped = 0 };

    port_add_stats(r->host.port, &stats);
    port_add_stats(r->uplink.port, &stats);
    return stats.port_dropped;
}

static void
begin_capture(struct replay *r)
{
    struct forward_config config = { .host = r->host.port,
                                     .uplink = r->uplink.port,
                                     .slots = r->slots,
                                     .bursts = r->bursts,
                                     .rate_bps = r->rules->rate_bps,
                                     .mtu = r->mtu,
                                     .tag = r->rules->tag };

    /* Always the same seed: the result must be reproducible. */
    config.flows = r->flows = flow_cache_create(1);
    r->forward = forward_create(&config);
    r->port_dropped = count_port_dropped(r);
    egress_set_min_share(forward_egress(r->forward), r->rules->min_share);
    for (size_t i = 0; i < r->rules->n_jobs; i++) {
        bursts_reset(r->bursts, r->rules->jobs[i].slot);
        job_slots_set(r->slots, &r->rules->jobs[i]);
    }
}

/* Undoes begin_capture() and empties the tables. */
static void
end_capture(struct replay *r)
{
    for (size_t i = 0; i < r->rules->n_jobs; i++) {
        job_slots_clear(r->slots, r->rules->jobs[i].slot);
    }
    forward_destroy(r->forward);
    flow_cache_destroy(r->flows);
}

char *
replay_create(const struct replay_rules *rules, replay_leave_func *leave,
              void *aux, struct replay **replayp)
{
    struct replay *r = allocate(1, sizeof *r);
    char *error;

    *replayp = NULL;
    r->rules = rules;
    r->leave = leave;
    r->aux = aux;
    r->mtu = rules->mtu;
    r->slots = job_slots_create();
    r->bursts = bursts_create();
    error = create_ends(r);
    if (error) {
        replay_destroy(r);
    } else {
        begin_capture(r);
        *replayp = r;
    }
    return error;
}

void
replay_rewind(struct replay *r, const struct replay_rules *rules)
{
    end_capture(r);
    r->rules = rules;
    r->now = 0;
    memset(&r->counts, 0, sizeof r->counts);
    begin_capture(r);
}

void
replay_destroy(struct replay *r)
{
    if (r) {
        forward_destroy(r->forward);
        bursts_destroy(r->bursts);
        job_slots_destroy(r->slots);
        flow_cache_destroy(r->flows);
        end_destroy(&r->uplink);
        end_destroy(&r->host);
        rte_mempool_free(r->pool);
        free(r);
    }
}

static struct origin *
origin_of(const struct replay *r, struct rte_mbuf *m)
{
    return RTE_MBUF_DYNFIELD(m, r->origin_at, struct origin *);
}

/* Passes on the frames that leave at 'end'.  Returns their number. */
static unsigned int
collect_frames(struct replay *r, struct end *end, bool to_host)
{
    unsigned int n = 0;
    void *m;

    while (!rte_ring_dequeue(end->out, &m)) {
        struct capture_frame frame = {
            .number = origin_of(r, m)->number, .time = r->now,
            .data = rte_pktmbuf_mtod((struct rte_mbuf *) m, uint8_t *),
            .captured = origin_of(r, m)->captured,
            .length = rte_pktmbuf_pkt_len((struct rte_mbuf *) m)
        };

        r->leave(&frame, to_host, r->aux);
        rte_pktmbuf_free(m);
        n++;
    }
    return n;
}

static bool
poll_pipeline(struct replay *r)
{
    bool worked;
    unsigned int n;

    job_slots_lease(r->slots, r->now, LEASE_MS, r->rules->default_dscp);
    worked = forward_poll(r->forward, r->now);
    n = collect_frames(r, &r->uplink, false);
    r->counts.sent += n;
    worked |= n > 0;
    n = collect_frames(r, &r->host, true);
    r->counts.delivered += n;
    return worked || n;
}

/* Sends all frames that are due up to 'time'. */
static void
run_until(struct replay *r, uint64_t time)
{
    for (;;) {
        uint64_t wait = egress_until_due(forward_egress(r->forward), r->now);

        if (wait > time - r->now) {
            break;
        }
        r->now += wait;
        if (!poll_pipeline(r)) {
            if (time - r->now < STUCK_NS) {
                break;
            }
            r->now += STUCK_NS;
        }
    }
    r->now = time;
}

/* Does the part of the agent's programs: tags a frame of a job that the host
 * sends.  The flow of a received one is known from its first packet on. */
static void
mark_job(struct replay *r, struct rte_mbuf *m, bool from_host)
{
    struct parsed p;
    uint64_t hash;
    uint16_t slot;

    parse_frame(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m),
                from_host, &p);
    slot = p.kind == PARSED_FLOW ? replay_rules_slot(r->rules, &p.key) : 0;
    if (slot && from_host) {
        m->vlan_tci = slot;
        m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    } else if (slot) {
        hash = flow_cache_hash(r->flows, &p.key);
        flow_cache_learn(r->flows, hash, slot, r->counts.in);
    }
}

/* Returns a packet buffer with the frame, with zeros for the part that was not
 * captured; NULL if it is too long. */
static struct rte_mbuf *
make_packet(struct replay *r, const struct capture_frame *frame)
{
    struct rte_mbuf *m = NULL;
    char *data;

    if (frame->length <= port_frame_size(r->mtu)) {
        m = rte_pktmbuf_alloc(r->pool);
    }
    data = m ? rte_pktmbuf_append(m, frame->length) : NULL;
    if (!data) {
        rte_pktmbuf_free(m);
        return NULL;
    }
    memcpy(data, frame->data, frame->captured);
    memset(data + frame->captured, 0, frame->length - frame->captured);
    *origin_of(r, m) = (struct origin){ .number = frame->number,
                                        .captured = frame->captured };
    return m;
}

void
replay_frame(struct replay *r, const struct capture_frame *frame)
{
    enum replay_direction direction = replay_rules_direction(
        r->rules, frame->data, frame->captured);
    struct rte_mbuf *m;

    r->counts.in++;
    if (!r->now) {
        r->now = frame->time;
    }
    r->counts.reordered += frame->time < r->now;
    if (frame->time > r->now) {
        run_until(r, frame->time);
    }
    if (direction == REPLAY_SKIP) {
        r->counts.skipped++;
        return;
    }
    m = make_packet(r, frame);
    if (!m) {
        r->counts.too_long++;
        return;
    }
    mark_job(r, m, direction == REPLAY_FROM_HOST);
    rte_ring_enqueue(direction == REPLAY_FROM_HOST ? r->host.in
                     : r->uplink.in, m);
    poll_pipeline(r);
}

void
replay_finish(struct replay *r)
{
    uint64_t wait;

    while ((wait = egress_until_due(forward_egress(r->forward), r->now))
           != UINT64_MAX) {
        run_until(r, r->now + wait + STUCK_NS);
    }
}

void
replay_counts(const struct replay *r, struct replay_counts *counts)
{
    struct replay_counts *c = counts;

    *c = r->counts;
    forward_stats(r->forward, &c->shim);
    c->queue_dropped = c->shim.queue_dropped;
    c->port_dropped = count_port_dropped(r) - r->port_dropped;
    c->queued = rte_mempool_in_use_count(r->pool);
    c->shim.port_dropped = c->port_dropped;
}

bool
replay_job(const struct replay *r, uint16_t slot,
           struct shim_slot_stats *stats)
{
    if (!job_slots_stats(r->slots, slot, r->now, stats)) {
        return false;
    }
    bursts_get(r->bursts, slot, BURSTS_TX, r->now, &stats->tx_bursts);
    bursts_get(r->bursts, slot, BURSTS_RX, r->now, &stats->rx_bursts);
    return true;
}
