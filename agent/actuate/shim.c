/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/actuator.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/bypass.h"
#include "agent/actuate/shim-tables.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"
#include "wire/shim-client.h"
#include "wire/shim-protocol.h"

VLOG_DEFINE_THIS_MODULE(shim_actuator);

#define CONNECT_MS 100          /* Between attempts to connect. */
#define LEASE_MS 3000           /* Longest lease that the agent gives. */
#define LEASE_RENEW_MS 1000     /* Between renewals of the lease. */
#define STATS_MS 200            /* Between requests for counters. */
/* New flows in that time beyond the share: fewer replace old ones of the
 * job. */
#define MANY_FLOWS 1000
/* Up to FEW_JOBS, bins are requested each time, so that iterations are counted
 * early; with more jobs one time of SELDOM: the shim keeps a little more than
 * a second. */
#define FEW_JOBS 50
#define SELDOM 4
#define RESYNC_MS 1000          /* From a refused change to new lists. */
#define RX_TIMEOUT_MS 3000      /* Without a message the shim counts as
                                 * dead. */
#define MAX_MESSAGES_PER_RUN 50

/* Requests that are sent along with some of the requests for counters. */
enum { N_POLLED = 3 };
static const struct {
    enum shim_msg_type type;
    int ms; /* Between two. */
} polled[N_POLLED] = { { SHIM_REFUSED, 1000 },
                       { SHIM_ABOUT, 60000 },
                       { SHIM_PEERS, 1000 } };

struct shim_actuator {
    struct actuator base;
    char *path; /* Of the shim's control socket. */

    struct shim_client *conn;   /* NULL while disconnected. */
    int last_error;             /* Why the shim is disconnected, so that each
                                 * reason is logged once; 0 while connected, -1
                                 * before the first attempt. */
    bool pending;               /* The replies to request_tables() are
                                 * missing. */
    struct bypass *bypass;
    struct shim_hello hello;    /* Last reply to SHIM_HELLO; the rate stays
                                 * valid while disconnected. */

    char *about;                /* Reply to SHIM_ABOUT, or NULL. */
    long long next_polls[N_POLLED]; /* time_msec() of the next requests. */
    uint64_t queued_bytes;      /* In the shim, from its last statistics. */
    struct shim_stats stats;    /* Last statistics of this connection. */
    struct traffic traffic;     /* Counters since the agent started. */
    unsigned int n_requests;    /* For bins of many jobs. */
    int n_pending_changes;      /* Changes of tables without a reply. */

    struct actuator_wanted wanted; /* 'until' is LLONG_MIN before the
                                    * first one. */
    struct actuator_wanted sent;   /* 'min_share', 'congestion' and 'control'
                                    * that were sent to the shim. */

    /* time_msec() of the next attempt to connect, request for counters,
     * renewal of the lease, and request for all tables. */
    long long next_connect, next_stats, next_lease, next_sync;
    long long last_rx;          /* time_msec() of the last message, or of the
                                 * connect. */

    struct slot_changes slot_changes;            /* Too large for the stack. */
    struct shim_refused refused[SHIM_MAX_SLOTS]; /* The last, by slot. */
    bool knows_refused; /* What was refused before the agent began. */
};

static const struct actuator_class shim_actuator_class;

static struct shim_actuator *
shim_actuator_cast(const struct actuator *a)
{
    return CONTAINER_OF(a, struct shim_actuator, base);
}

struct actuator *
shim_actuator_create(const char *path, const struct bypass_ports *bypass,
                     const struct actuator_events *events, void *aux)
{
    struct shim_actuator *s = xzalloc(sizeof *s);

    actuator_init(&s->base, &shim_actuator_class, events, aux);
    s->path = xstrdup(path);
    s->bypass = bypass_create(bypass, time_msec());
    s->wanted.until = LLONG_MIN;
    s->next_lease = s->next_sync = LLONG_MAX;
    s->last_error = -1;
    return &s->base;
}

static void
shim_destroy(struct actuator *a)
{
    struct shim_actuator *s = shim_actuator_cast(a);

    shim_client_close(s->conn);
    bypass_destroy(s->bypass);
    slot_table_uninit(&s->base.slots);
    free(s->about);
    free(s->path);
    free(s);
}

/* Sends a request.  A broken connection shows in receive_messages(). */
static void
send_request(struct shim_actuator *s, enum shim_msg_type type,
             const void *body, size_t size)
{
    shim_client_send(s->conn, type, body, size, NULL);
}

/* Requests the tables of the shim; changes are sent relative to them. */
static void
request_tables(struct shim_actuator *s)
{
    s->pending = true;
    s->n_pending_changes = 0;
    s->next_sync = LLONG_MAX;
    send_request(s, SHIM_HELLO, NULL, 0);
    send_request(s, SHIM_SLOT_LIST, NULL, 0);
}

/* Handle the reply to a request, 'n' items after its head. */

static int
handle_stats(struct shim_actuator *s, const void *body, size_t n)
{
    const struct shim_stats *stats = body;
    const struct shim_slot_stats *slots = (const void *) (stats + 1);

    /* Until the lists have arrived, slots may have other numbers. */
    if (!s->pending) {
        traffic_add_stats(&s->traffic, stats, slots, n,
                          actuator_report_traffic, &s->base);
        for (size_t i = 0; i < n; i++) {
            const char *job = slot_table_name(&s->base.slots, slots[i].slot);

            if (job) {
                s->base.events->bursts(job, &slots[i].tx_bursts,
                                       &slots[i].rx_bursts, s->base.aux);
            }
        }
        s->queued_bytes = stats->queued_bytes;
        s->stats = *stats;
    }
    return 0;
}

static int
handle_bins(struct shim_actuator *s, const void *body, size_t n)
{
    const struct shim_bins *head = body;
    const struct shim_bin *bins = (const void *) (head + 1);
    uint64_t *next = slot_table_next_bin(&s->base.slots, head->slot);

    if (next) {
        *next = head->first + n;
        s->base.events->bins(slot_table_name(&s->base.slots, head->slot),
                             head->first, bins, n, s->base.aux);
    }
    return 0;
}

static void
request_bins(struct shim_actuator *s)
{
    if (shash_count(&s->base.slots.jobs) > FEW_JOBS
        && s->n_requests++ % SELDOM) {
        return;
    }
    for (uint16_t slot = 1; slot < SHIM_MAX_SLOTS; slot++) {
        const uint64_t *next = slot_table_next_bin(&s->base.slots, slot);

        if (next) {
            const struct shim_bins_since request = { .slot = slot,
                                                     .since = *next };

            send_request(s, SHIM_BINS, &request, sizeof request);
        }
    }
}

static void
request_counters(struct shim_actuator *s, long long now)
{
    s->next_stats = now + STATS_MS;
    if (!shim_client_wants_write(s->conn)) {
        send_request(s, SHIM_STATS, NULL, 0);
        if (!s->pending) {
            request_bins(s);
        }
    }
    send_request(s, SHIM_PORTS, NULL, 0);
    bypass_requested(s->bypass, now);
    for (int i = 0; i < N_POLLED; i++) {
        if (now >= s->next_polls[i]) {
            s->next_polls[i] = now + polled[i].ms;
            send_request(s, polled[i].type, NULL, 0);
        }
    }
}

/* Handles the last reply to request_tables(): the tables of the shim are
 * known, and changes may be sent. */
static int
handle_list(struct shim_actuator *s, const void *body, size_t n)
{
    slot_table_adopt(&s->base.slots, body, n);
    s->base.has_numbers = true;
    if (s->pending) {
        s->pending = false;
        s->base.changed = true;
        if (s->last_error) {
            s->last_error = 0;
            VLOG_INFO("%s: connected to the shim, process %" PRIu32 ", "
                      "%" PRIu64 " bit/s",
                      s->path, s->hello.pid, s->hello.rate_bps);
        }
    }
    return 0;
}

static int
handle_refused(struct shim_actuator *s, const void *body, size_t n)
{
    const struct shim_refused *refused = body;

    for (size_t i = 0; i < n; i++) {
        uint16_t slot = refused[i].slot % SHIM_MAX_SLOTS;
        const char *job = slot_table_name(&s->base.slots, slot);
        int64_t flows = refused[i].count - s->refused[slot].count;
        int32_t records = refused[i].records - s->refused[slot].records;
        uint64_t new =
            (flows < MANY_FLOWS ? 0 : flows) + (records < 0 ? 0 : records);

        s->refused[slot] = refused[i];
        if (new && (job || (!slot && s->knows_refused))) {
            s->base.events->refused(job, new, s->base.aux);
        }
    }
    s->knows_refused = true;
    return 0;
}

static int
handle_peers(struct shim_actuator *s, const void *body, size_t n)
{
    s->base.events->peers(body, n, s->base.aux);
    return 0;
}

static int
handle_ports(struct shim_actuator *s, const void *body, size_t n OVS_UNUSED)
{
    const struct shim_ports *ports = body;

    if (!memchr(ports->host, '\0', sizeof ports->host)
        || !memchr(ports->uplink, '\0', sizeof ports->uplink)) {
        return EPROTO;
    }
    bypass_received(s->bypass, ports);
    return 0;
}

static int
handle_hello(struct shim_actuator *s, const void *body, size_t n OVS_UNUSED)
{
    memcpy(&s->hello, body, sizeof s->hello);
    return 0;
}

static int
handle_about(struct shim_actuator *s, const void *body, size_t n)
{
    free(s->about);
    s->about = xmemdup0(body, MIN(n, SHIM_MAX_ABOUT));
    return 0;
}

/* Replies, by the type of the message. */
static const struct reply {
    int (*handle)(struct shim_actuator *, const void *body, size_t n);
    size_t head, item; /* Bytes of its head, and of each item after that. */
    bool needed;       /* An error status ends the connection. */
} replies[] = {
    [SHIM_HELLO] = { handle_hello, sizeof(struct shim_hello), 1, true },
    [SHIM_SLOT_LIST] = { handle_list, 0, sizeof(struct shim_slot), true },
    [SHIM_STATS] = { handle_stats, sizeof(struct shim_stats),
                     sizeof(struct shim_slot_stats), false },
    [SHIM_BINS] = { handle_bins, sizeof(struct shim_bins),
                    sizeof(struct shim_bin), false },
    [SHIM_PORTS] = { handle_ports, sizeof(struct shim_ports), 1, false },
    [SHIM_REFUSED] = { handle_refused, 0, sizeof(struct shim_refused), false },
    [SHIM_ABOUT] = { handle_about, 0, 1, false },
    [SHIM_PEERS] = { handle_peers, 0, sizeof(struct shim_peer), false },
};

static int
handle_message(struct shim_actuator *s, const struct shim_msg *msg,
               const void *body, size_t size)
{
    const struct reply *r =
        msg->type < ARRAY_SIZE(replies) ? &replies[msg->type] : NULL;

    if (msg->type == SHIM_SLOT_SET || msg->type == SHIM_SLOT_CLEAR) {
        s->n_pending_changes = MAX(s->n_pending_changes - 1, 0);
        if (msg->status) { /* All tables are requested again. */
            static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

            VLOG_WARN_RL(
                &rl, "%s: the shim refused request %" PRIu16 ", retrying (%s)",
                s->path, msg->type, ovs_strerror(msg->status));
            s->next_sync = MIN(s->next_sync, time_msec() + RESYNC_MS);
        }
    } else if (r && r->handle && !msg->status) {
        return size < r->head || (size - r->head) % r->item
                   ? EPROTO
                   : r->handle(s, body, (size - r->head) / r->item);
    } else if (msg->type == SHIM_PORTS) {
        bypass_received(s->bypass, NULL);
    }
    return r && r->needed ? msg->status : 0;
}

/* Handles received messages, MAX_MESSAGES_PER_RUN at most.  Returns 0, or a
 * positive errno value if the connection is of no more use. */
static int
receive_messages(struct shim_actuator *s, long long now)
{
    const struct shim_msg *msg;
    const void *body;
    int error = 0;

    shim_client_run(s->conn);
    for (int i = 0; i < MAX_MESSAGES_PER_RUN && !error; i++) {
        error = shim_client_receive(s->conn, &msg, &body);
        if (!error) {
            s->last_rx = now;
            error = handle_message(s, msg, body, msg->length - sizeof *msg);
        }
    }
    if (!error) {
        poll_immediate_wake();
        return 0;
    }
    if (error != EAGAIN) {
        return error;
    }
    return now - s->last_rx > RX_TIMEOUT_MS ? ETIMEDOUT : 0;
}

static void
disconnect(struct shim_actuator *s, int error)
{
    if (!s->last_error) {
        VLOG_WARN("%s: shim disconnected (%s)", s->path, ovs_strerror(error));
    }
    shim_client_close(s->conn);
    s->conn = NULL;
    s->last_error = error;
    s->next_connect = LLONG_MIN;        /* A new shim may be running. */
    free(s->about);
    s->about = NULL;
    bypass_disconnected(s->bypass, time_msec());
}

static void
try_to_connect(struct shim_actuator *s, long long now)
{
    int error = shim_client_open(s->path, &s->conn);

    s->next_connect = now + CONNECT_MS;
    if (error) {
        if (error != s->last_error) {
            VLOG_INFO("%s: cannot connect to the shim, retrying (%s)",
                      s->path, ovs_strerror(error));
            s->last_error = error;
        }
        return;
    }
    s->last_rx = now;
    s->next_lease = 0;
    memset(&s->sent, 0xff, sizeof s->sent); /* Defaults, and no DSCPs. */
    s->next_stats = now;
    memset(s->next_polls, 0, sizeof s->next_polls);
    s->base.has_keys = false;
    bypass_connected(s->bypass, shim_client_fd(s->conn), now);
    request_tables(s);
}

static void
send_change(struct shim_actuator *s, enum shim_msg_type type,
            const void *body, size_t size)
{
    if (size) {
        s->n_pending_changes++;
        send_request(s, type, body, size);
    }
}

/* Sends the differences.  Requests the counters with new rows, so that they
 * are the slots' starting values. */
static void
send_changes(struct shim_actuator *s)
{
    struct slot_changes *c = &s->slot_changes;

    s->base.changed = false;
    slot_table_changes(&s->base.slots, c);
    if (c->n_set) {
        send_change(s, SHIM_SLOT_SET, c->set, c->n_set * sizeof *c->set);
        send_request(s, SHIM_STATS, NULL, 0);
    }
    send_change(s, SHIM_SLOT_CLEAR, c->clear, c->n_clear * sizeof *c->clear);
}

static void
send_lease(struct shim_actuator *s, long long now)
{
    struct shim_lease lease = { .default_dscp = s->wanted.default_dscp };

    s->next_lease = LLONG_MAX;
    if (s->wanted.until > now) {
        lease.ms = MIN(s->wanted.until - now, LEASE_MS);
        s->next_lease = MIN(now + LEASE_RENEW_MS, s->wanted.until);
    }
    send_request(s, SHIM_LEASE, &lease, sizeof lease);
}

/* Sends a part of 'wanted' if it differs from 'sent', the part that was sent
 * last. */
static void
send_changed(struct shim_actuator *s, enum shim_msg_type type,
             const void *wanted, void *sent, size_t size)
{
    if (memcmp(sent, wanted, size)) {
        memcpy(sent, wanted, size);
        send_request(s, type, wanted, size);
    }
}

/* Until the policy is known, the shim keeps what it has. */
static void
send_wanted(struct shim_actuator *s, long long now)
{
    const struct actuator_wanted *wanted = &s->wanted;
    struct actuator_wanted *sent = &s->sent;

    if (wanted->until == LLONG_MIN) {
        return;
    }
    send_changed(s, SHIM_CONTROL, &wanted->control, &sent->control,
                 sizeof sent->control);
    if (now >= s->next_lease) {
        send_lease(s, now);
    }
    BUILD_ASSERT(sizeof wanted->min_share == sizeof(struct shim_min_share));
    send_changed(s, SHIM_MIN_SHARE, &wanted->min_share, &sent->min_share,
                 sizeof(struct shim_min_share));
    send_changed(s, SHIM_CONGESTION, &wanted->congestion, &sent->congestion,
                 sizeof sent->congestion);
}

static void
shim_run(struct actuator *a)
{
    struct shim_actuator *s = shim_actuator_cast(a);
    long long now = time_msec();

    if (!s->conn && now >= s->next_connect) {
        try_to_connect(s, now);
    }
    if (s->conn) {
        int error = receive_messages(s, now);

        if (error) {
            disconnect(s, error);
            try_to_connect(s, now);
        }
    }
    bypass_run(s->bypass, now);
    if (!s->conn) {
        return;
    }
    if (now >= s->next_sync) {
        request_tables(s);
    }
    if (s->base.keys && !s->base.has_keys) {
        s->base.has_keys = true;
        send_request(s, SHIM_KEYS, s->base.keys,
                     s->base.n_keys * sizeof *s->base.keys);
    }
    if (!s->pending) {
        if (s->base.changed) {
            send_changes(s);
        }
        send_wanted(s, now);
    }
    if (now >= s->next_stats) {
        request_counters(s, now);
    }
}

static void
shim_wait(const struct actuator *a)
{
    const struct shim_actuator *s = shim_actuator_cast(a);
    bypass_wait(s->bypass, time_msec());
    if (!s->conn) {
        poll_timer_wait_until(s->next_connect);
        return;
    }
    poll_fd_wait(shim_client_fd(s->conn),
                 POLLIN | (shim_client_wants_write(s->conn) ? POLLOUT : 0));
    poll_timer_wait_until(MIN(s->next_stats, s->next_sync));
    if (!s->pending && s->wanted.until != LLONG_MIN) {
        poll_timer_wait_until(s->next_lease);
    }
    if (!s->pending && s->base.changed && !shim_client_wants_write(s->conn)) {
        poll_immediate_wake();
    }
}

/* A renewal of the lease can wait for 'next_lease'; a begin, an end or another
 * DSCP is sent at once. */
static void
shim_set(struct actuator *a, const struct actuator_wanted *wanted)
{
    struct shim_actuator *s = shim_actuator_cast(a);
    const struct actuator_wanted *old = &s->wanted;
    long long now = time_msec();

    if ((wanted->until > now) != (old->until > now) || old->until == LLONG_MIN
        || old->default_dscp != wanted->default_dscp) {
        s->next_lease = 0;
    }
    s->wanted = *wanted;
}

static void
shim_get_status(const struct actuator *a, struct actuator_status *status)
{
    const struct shim_actuator *s = shim_actuator_cast(a);

    status->connected = s->conn && !s->pending;
    status->in_sync = status->connected && !s->base.changed
                      && !s->n_pending_changes && s->next_sync == LLONG_MAX;
    status->bypass = bypass_is_active(s->bypass);
    status->rate_bps = s->hello.rate_bps;
    status->queued_bytes = status->connected ? s->queued_bytes : 0;
    status->stats = status->connected && s->stats.boot_id ? &s->stats : NULL;
    status->about = s->about ? s->about : "";
    status->totals = &s->traffic.total;
}

static const struct actuator_class shim_actuator_class = {
    .destroy = shim_destroy,
    .run = shim_run,
    .wait = shim_wait,
    .set = shim_set,
    .get_status = shim_get_status,
};
