/* SPDX-License-Identifier: Apache-2.0 */

/* The actuator for a host with a shim. */

#include <config.h>

#include "agent/actuate/actuator.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/bypass.h"
#include "agent/actuate/flow-set.h"
#include "agent/actuate/slot-table.h"
#include "agent/actuate/traffic.h"
#include "agent/actuate/watched.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "shim/control/client.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(shim_actuator);

#define CONNECT_MS 100          /* Between attempts. */
#define STATS_MS 200
#define LEASE_MS 3000           /* Of the agent's own lease. */
#define LEASE_RENEW_MS 1000
#define RESYNC_MS 1000          /* After the shim refused something. */
#define SILENCE_MS 3000         /* A shim that owes an answer for so long is
                                 * taken for dead. */
#define MAX_MESSAGES_A_RUN 50

/* What the first replies of a connection are needed for. */
enum {
    NEED_HELLO = 1 << 0,
    NEED_SLOTS = 1 << 1,
    NEED_FLOWS = 1 << 2,
    NEED_ALL = NEED_HELLO | NEED_SLOTS | NEED_FLOWS,
};

struct shim_actuator {
    struct actuator up;
    char *path;
    const struct actuator_events *events;
    void *aux;

    struct shim_client *conn;    /* NULL while away. */
    int last_error;             /* Why it is away, so that each reason is
                                 * logged once; -1 before the first try. */
    unsigned int needs;         /* NEED_*: lists to come. */
    struct bypass *bypass;
    uint64_t page;              /* Of flows that is to come, 0: the first. */
    struct shim_hello hello;    /* Of this connection; the rate outlives it. */

    struct slot_table slots;
    struct flow_set flows;
    uint64_t queued_bytes;      /* In the shim, as it told last. */
    struct shim_stats stats;    /* The same. */
    struct traffic traffic;
    struct watched watched;
    bool slots_dirty;
    int n_unanswered;           /* Changes of tables without a reply yet. */

    long long lease_until;      /* LLONG_MIN before the first set_lease(). */
    uint8_t default_dscp;
    bool lease_dirty;           /* To be sent out of turn. */
    uint32_t guard;             /* As in struct shim_guard. */
    bool guard_dirty;
    struct shim_congestion congestion;
    bool congestion_dirty;

    long long next_connect, next_stats, next_lease, next_sync;
    long long heard;            /* Last message, or when none was owed. */

    /* Too large for the stack. */
    struct slot_changes slot_changes;
    struct flow_changes flow_changes;
};

static struct shim_actuator *
shim_cast(const struct actuator *a)
{
    return CONTAINER_OF(a, struct shim_actuator, up);
}

static int
shim_open(const char *target, const struct bypass_place *bypass,
          const struct actuator_events *events, void *aux,
          struct actuator **ap)
{
    struct shim_actuator *s = xzalloc(sizeof *s);

    s->up.class = &actuator_shim;
    s->path = xstrdup(target);
    s->bypass = bypass_create(bypass, time_msec());
    s->events = events;
    s->aux = aux;
    slot_table_init(&s->slots);
    flow_set_init(&s->flows);
    traffic_init(&s->traffic);
    watched_init(&s->watched);
    s->lease_until = LLONG_MIN;
    s->guard = SHIM_GUARD_UNTOLD;
    memset(&s->congestion, 0xff, sizeof s->congestion);
    s->next_lease = s->next_sync = LLONG_MAX;
    s->last_error = -1;
    *ap = &s->up;
    return 0;
}

static void
disconnect(struct shim_actuator *s, int error)
{
    if (s->conn) {
        if (!s->last_error) {
            VLOG_WARN("%s: the shim is away (%s)",
                      s->path, ovs_strerror(error));
        }
        shim_client_close(s->conn);
        s->conn = NULL;
        s->last_error = error;
        s->next_connect = LLONG_MIN;    /* A successor may be there. */
        bypass_lost(s->bypass, time_msec());
    }
}

static void
shim_close(struct actuator *a)
{
    struct shim_actuator *s = shim_cast(a);

    shim_client_close(s->conn);
    bypass_destroy(s->bypass);
    slot_table_uninit(&s->slots);
    flow_set_uninit(&s->flows);
    watched_uninit(&s->watched);
    free(s->path);
    free(s);
}

static void
send_request(struct shim_actuator *s, enum shim_msg_type type,
             const void *body, size_t size)
{
    /* A broken connection shows when receiving. */
    shim_client_send(s->conn, type, body, size, NULL);
}

/* Asks for everything that is needed to go on by difference. */
static void
ask_for_tables(struct shim_actuator *s)
{
    s->needs = NEED_ALL;
    s->n_unanswered = 0;
    s->next_sync = LLONG_MAX;
    send_request(s, SHIM_HELLO, NULL, 0);
    send_request(s, SHIM_SLOT_LIST, NULL, 0);
}

static void
try_to_connect(struct shim_actuator *s, long long now)
{
    int error = shim_client_open(s->path, &s->conn);

    s->next_connect = now + CONNECT_MS;
    if (error) {
        if (error != s->last_error) {
            VLOG_INFO("%s: no shim, trying again (%s)",
                      s->path, ovs_strerror(error));
            s->last_error = error;
        }
        return;
    }
    s->heard = now;
    s->lease_dirty = true;
    s->guard_dirty = s->guard != SHIM_GUARD_UNTOLD;
    s->congestion_dirty = s->congestion.gamma != SHIM_CONGESTION_UNTOLD;
    s->next_stats = now;
    bypass_met(s->bypass, shim_client_fd(s->conn), now);
    ask_for_tables(s);
    send_request(s, SHIM_SUBSCRIBE, NULL, 0);
}

/* Takes the reply that 'need' stands for.  After the last of them the tables
 * are known and changes may be sent. */
static void
have(struct shim_actuator *s, unsigned int need)
{
    if (s->needs && !(s->needs &= ~need)) {
        s->slots_dirty = true;
        flow_set_recheck(&s->flows);
        if (s->last_error) {
            s->last_error = 0;
            VLOG_INFO("%s: the shim is there, process %"PRIu32", "
                      "%"PRIu64" bit/s", s->path, s->hello.pid,
                      s->hello.rate_bps);
        }
    }
}

static void
slot_grew(uint16_t slot, uint64_t tx_bytes, uint64_t rx_bytes, void *s_)
{
    struct shim_actuator *s = s_;
    const char *job = slot_table_name(&s->slots, slot);

    if (job) {
        s->events->traffic(job, tx_bytes, rx_bytes, s->aux);
    }
}

static void
tell_bursts(struct shim_actuator *s, const struct shim_slot_stats *slots,
            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *job = (slots[i].slot < SHIM_MAX_SLOTS
                           ? slot_table_name(&s->slots, slots[i].slot)
                           : NULL);

        if (job) {
            s->events->bursts(job, &slots[i].tx_bursts, &slots[i].rx_bursts,
                              s->aux);
        }
    }
}

static int
take_stats(struct shim_actuator *s, const void *body, size_t size)
{
    const struct shim_stats *stats = body;
    const struct shim_slot_stats *slots = (const void *) (stats + 1);
    size_t n;

    if (size < sizeof *stats || (size - sizeof *stats) % sizeof *slots) {
        return EPROTO;
    }
    /* Before the lists are there, slots may have other numbers. */
    if (!s->needs) {
        n = (size - sizeof *stats) / sizeof *slots;
        traffic_take(&s->traffic, stats, slots, n, slot_grew, s);
        tell_bursts(s, slots, n);
        s->queued_bytes = stats->queued_bytes;
        s->stats = *stats;
    }
    return 0;
}

static int
take_bins(struct shim_actuator *s, const void *body, size_t size)
{
    const struct shim_bins *head = body;
    const struct shim_bin *bins = (const void *) (head + 1);
    const char *job;
    size_t n;

    if (size < sizeof *head || (size - sizeof *head) % sizeof *bins) {
        return EPROTO;
    }
    n = (size - sizeof *head) / sizeof *bins;
    job = slot_table_name(&s->slots, head->slot);
    if (job && watched_answered(&s->watched, job, head->first + n)) {
        s->events->bins(job, head->first, bins, n, s->aux);
    }
    return 0;
}

static void
ask_for_bins(const char *job, uint64_t since, void *s_)
{
    struct shim_actuator *s = s_;
    struct shim_bins_since request = {
        .slot = slot_table_number(&s->slots, job), .since = since,
    };

    if (request.slot) {
        send_request(s, SHIM_BINS, &request, sizeof request);
    }
}

static int
take_misses(struct shim_actuator *s, const void *body, size_t size)
{
    const struct shim_flow_key *keys = body;

    if (size % sizeof *keys) {
        return EPROTO;
    }
    for (size_t i = 0; i < size / sizeof *keys; i++) {
        if (!flow_set_missed(&s->flows, &keys[i])) {
            s->events->miss(&keys[i], s->aux);
        }
    }
    return 0;
}

static void
ask_for_page(struct shim_actuator *s, uint64_t next)
{
    struct shim_cursor cursor = { .next = next };

    s->page = next;
    send_request(s, SHIM_FLOW_PAGE, &cursor, sizeof cursor);
}

/* Only large tables come in pages, which old shims do not know. */
static void
ask_for_flows(struct shim_actuator *s)
{
    if (s->hello.max_flows > SHIM_DEFAULT_FLOWS) {
        ask_for_page(s, 0);
    } else {
        send_request(s, SHIM_FLOW_LIST, NULL, 0);
    }
}

static int
take_page(struct shim_actuator *s, const void *body, size_t size)
{
    const struct shim_flow *flows = (const void *) ((const char *) body
                                            + sizeof(struct shim_cursor));
    struct shim_cursor cursor;
    size_t n;

    if (size < sizeof cursor || (size - sizeof cursor) % sizeof *flows) {
        return EPROTO;
    }
    memcpy(&cursor, body, sizeof cursor);
    n = (size - sizeof cursor) / sizeof *flows;
    (s->page ? flow_set_adopt_more : flow_set_adopt)(&s->flows, flows, n);
    if (cursor.next) {
        ask_for_page(s, cursor.next);
    } else {
        have(s, NEED_FLOWS);
    }
    return 0;
}

static int
take_list(struct shim_actuator *s, uint16_t type, const void *body,
          size_t size)
{
    switch (type) {
    case SHIM_HELLO:
        if (size < sizeof s->hello) {
            return EPROTO;
        }
        memcpy(&s->hello, body, sizeof s->hello);
        have(s, NEED_HELLO);
        ask_for_flows(s);
        return 0;

    case SHIM_SLOT_LIST:
        if (size % sizeof(struct shim_slot)) {
            return EPROTO;
        }
        slot_table_adopt(&s->slots, body, size / sizeof(struct shim_slot));
        have(s, NEED_SLOTS);
        return 0;

    case SHIM_FLOW_LIST:
        if (size % sizeof(struct shim_flow)) {
            return EPROTO;
        }
        flow_set_adopt(&s->flows, body, size / sizeof(struct shim_flow));
        have(s, NEED_FLOWS);
        return 0;

    case SHIM_FLOW_PAGE:
        return take_page(s, body, size);
    }
    return EPROTO;
}

static int
take_ports(struct shim_actuator *s, const void *body, size_t size)
{
    const struct shim_ports *ports = body;

    if (size < sizeof *ports
        || !memchr(ports->host, '\0', sizeof ports->host)
        || !memchr(ports->uplink, '\0', sizeof ports->uplink)) {
        return EPROTO;
    }
    bypass_answered(s->bypass, ports);
    return 0;
}

/* A change of a table was refused: its reason may be gone in a second, and the
 * lists will show what has become of it. */
static void
refused(struct shim_actuator *s, uint16_t type, int status)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

    VLOG_WARN_RL(&rl, "%s: the shim refused request %"PRIu16", trying again "
                 "(%s)", s->path, type, ovs_strerror(status));
    s->next_sync = MIN(s->next_sync, time_msec() + RESYNC_MS);
}

static int
take_message(struct shim_actuator *s, const struct shim_msg *msg,
             const void *body, size_t size)
{
    switch (msg->type) {
    case SHIM_MISS:
        return take_misses(s, body, size);

    case SHIM_STATS:
        return msg->status ? 0 : take_stats(s, body, size);

    case SHIM_BINS:
        return msg->status ? 0 : take_bins(s, body, size);

    case SHIM_PORTS:
        if (msg->status) {
            bypass_answered(s->bypass, NULL);
            return 0;
        }
        return take_ports(s, body, size);

    case SHIM_HELLO:
    case SHIM_SLOT_LIST:
    case SHIM_FLOW_LIST:
    case SHIM_FLOW_PAGE:
        return msg->status ? msg->status
               : take_list(s, msg->type, body, size);

    case SHIM_SLOT_SET:
    case SHIM_SLOT_CLEAR:
    case SHIM_FLOW_ADD:
    case SHIM_FLOW_DELETE:
        s->n_unanswered = MAX(s->n_unanswered - 1, 0);
        if (msg->status && (msg->type != SHIM_FLOW_DELETE
                            || msg->status != ENOENT)) {
            refused(s, msg->type, msg->status);
        }
        return 0;

    default:
        return 0;
    }
}

static void
receive(struct shim_actuator *s, long long now)
{
    const struct shim_msg *msg;
    const void *body;
    int error = 0;

    shim_client_run(s->conn);
    for (int i = 0; i < MAX_MESSAGES_A_RUN && !error; i++) {
        error = shim_client_receive(s->conn, &msg, &body);
        if (!error) {
            s->heard = now;
            error = take_message(s, msg, body, msg->length - sizeof *msg);
        }
    }
    if (!error) {
        poll_immediate_wake();
    } else if (error != EAGAIN) {
        disconnect(s, error);
    } else if (now - s->heard > SILENCE_MS) {
        disconnect(s, ETIMEDOUT);
    }
}

static void
send_change(struct shim_actuator *s, enum shim_msg_type type,
            const void *body, size_t size)
{
    if (size) {
        s->n_unanswered++;
        send_request(s, type, body, size);
    }
}

/* The counters of a new slot are marked before its first flow is there. */
static void
send_slot_sets(struct shim_actuator *s)
{
    struct slot_changes *c = &s->slot_changes;

    slot_table_changes(&s->slots, c);
    if (c->n_set) {
        send_change(s, SHIM_SLOT_SET, c->set, c->n_set * sizeof *c->set);
        send_request(s, SHIM_STATS, NULL, 0);
    }
}

/* Sends what has changed: rows before the flows that refer to them, and gone
 * flows before gone rows. */
static void
send_changes(struct shim_actuator *s)
{
    struct slot_changes *c = &s->slot_changes;
    struct flow_changes *f = &s->flow_changes;

    c->n_clear = 0;
    if (s->slots_dirty) {
        send_slot_sets(s);
        s->slots_dirty = false;
    }
    while (!shim_client_wants_write(s->conn)
           && flow_set_changes(&s->flows, &s->slots, f)) {
        send_change(s, SHIM_FLOW_DELETE, f->delete,
                    f->n_delete * sizeof *f->delete);
        send_change(s, SHIM_FLOW_ADD, f->add, f->n_add * sizeof *f->add);
    }
    send_change(s, SHIM_SLOT_CLEAR, c->clear, c->n_clear * sizeof *c->clear);
}

static void
send_lease(struct shim_actuator *s, long long now)
{
    struct shim_lease lease = { .default_dscp = s->default_dscp };

    s->lease_dirty = false;
    s->next_lease = LLONG_MAX;
    if (s->lease_until == LLONG_MIN) {
        return;
    }
    if (s->lease_until > now) {
        lease.ms = MIN(s->lease_until - now, LEASE_MS);
        s->next_lease = MIN(now + LEASE_RENEW_MS, s->lease_until);
    }
    send_request(s, SHIM_LEASE, &lease, sizeof lease);
}

static void
send_guard(struct shim_actuator *s)
{
    struct shim_guard guard = { .share = s->guard };

    s->guard_dirty = false;
    send_request(s, SHIM_GUARD, &guard, sizeof guard);
}

static void
send_congestion(struct shim_actuator *s)
{
    s->congestion_dirty = false;
    send_request(s, SHIM_CONGESTION, &s->congestion, sizeof s->congestion);
}

static void
shim_run(struct actuator *a)
{
    struct shim_actuator *s = shim_cast(a);
    long long now = time_msec();

    if (!s->conn && now >= s->next_connect) {
        try_to_connect(s, now);
    }
    if (s->conn) {
        receive(s, now);
        if (!s->conn) {
            try_to_connect(s, now);
        }
    }
    bypass_run(s->bypass, now);
    if (!s->conn) {
        return;
    }
    if (now >= s->next_sync) {
        ask_for_tables(s);
    }
    if (!s->needs) {
        send_changes(s);
        if (s->lease_dirty || now >= s->next_lease) {
            send_lease(s, now);
        }
        if (s->guard_dirty) {
            send_guard(s);
        }
        if (s->congestion_dirty) {
            send_congestion(s);
        }
    }
    if (now >= s->next_stats) {
        s->next_stats = now + STATS_MS;
        if (!shim_client_wants_write(s->conn)) {
            send_request(s, SHIM_STATS, NULL, 0);
            if (!s->needs) {
                watched_ask(&s->watched, now, ask_for_bins, s);
            }
        }
        send_request(s, SHIM_PORTS, NULL, 0);
        bypass_asked(s->bypass, now);
    }
}

static void
shim_wait(struct actuator *a)
{
    struct shim_actuator *s = shim_cast(a);

    bypass_wait(s->bypass, time_msec());
    if (!s->conn) {
        poll_timer_wait_until(s->next_connect);
        return;
    }
    poll_fd_wait(shim_client_fd(s->conn),
                 POLLIN | (shim_client_wants_write(s->conn) ? POLLOUT : 0));
    poll_timer_wait_until(MIN(s->next_stats, s->next_sync));
    if (!s->needs) {
        bool dirty = s->slots_dirty || s->lease_dirty
                     || s->guard_dirty || s->congestion_dirty
                     || flow_set_is_dirty(&s->flows);

        poll_timer_wait_until(s->next_lease);
        if (dirty && !shim_client_wants_write(s->conn)) {
            poll_immediate_wake();
        }
    }
}

static void
shim_set_job(struct actuator *a, const struct shim_slot *row, bool decided)
{
    struct shim_actuator *s = shim_cast(a);

    slot_table_want(&s->slots, row, decided);
    s->slots_dirty = true;
    flow_set_recheck(&s->flows);
}

static void
shim_remove_job(struct actuator *a, const char *name)
{
    struct shim_actuator *s = shim_cast(a);

    slot_table_unwant(&s->slots, name);
    s->slots_dirty = true;
}

static void
shim_watch_job(struct actuator *a, const char *name, bool watch)
{
    watched_set(&shim_cast(a)->watched, name, watch);
}

static void
shim_set_flow(struct actuator *a, const struct shim_flow_key *key,
              const char *job)
{
    flow_set_want(&shim_cast(a)->flows, key, job);
}

static void
shim_remove_flow(struct actuator *a, const struct shim_flow_key *key)
{
    flow_set_unwant(&shim_cast(a)->flows, key);
}

static void
shim_set_lease(struct actuator *a, long long until, uint8_t default_dscp)
{
    struct shim_actuator *s = shim_cast(a);
    long long now = time_msec();

    /* A renewal waits for its turn; a begin, an end or another DSCP does
     * not. */
    if ((until > now) != (s->lease_until > now)
        || s->lease_until == LLONG_MIN || default_dscp != s->default_dscp) {
        s->lease_dirty = true;
    }
    s->lease_until = until;
    s->default_dscp = default_dscp;
}

static void
shim_set_guard(struct actuator *a, uint32_t share)
{
    struct shim_actuator *s = shim_cast(a);

    if (share != s->guard) {
        s->guard = share;
        s->guard_dirty = true;
    }
}

static void
shim_set_congestion(struct actuator *a, const struct shim_congestion *told)
{
    struct shim_actuator *s = shim_cast(a);

    if (memcmp(&s->congestion, told, sizeof *told)) {
        s->congestion = *told;
        s->congestion_dirty = true;
    }
}

static void
shim_get_status(const struct actuator *a, struct actuator_status *status)
{
    const struct shim_actuator *s = shim_cast(a);

    status->connected = s->conn && !s->needs;
    status->in_sync = status->connected && !s->slots_dirty
                      && !flow_set_is_dirty(&s->flows)
                      && !s->n_unanswered && s->next_sync == LLONG_MAX;
    status->bypass = bypass_is_up(s->bypass);
    status->rate_bps = s->hello.rate_bps;
    status->tx_bytes = s->traffic.total.tx_bytes;
    status->rx_bytes = s->traffic.total.rx_bytes;
    status->ip_bytes = s->traffic.total.ip_bytes;
    status->default_bytes = s->traffic.total.default_bytes;
    status->queued_bytes = status->connected ? s->queued_bytes : 0;
    status->stats = status->connected && s->stats.boot_id ? &s->stats : NULL;
    status->totals = &s->traffic.total;
}

const struct actuator_class actuator_shim = {
    .name = "shim",
    .open = shim_open,
    .close = shim_close,
    .run = shim_run,
    .wait = shim_wait,
    .set_job = shim_set_job,
    .remove_job = shim_remove_job,
    .watch_job = shim_watch_job,
    .set_flow = shim_set_flow,
    .remove_flow = shim_remove_flow,
    .set_lease = shim_set_lease,
    .set_guard = shim_set_guard,
    .set_congestion = shim_set_congestion,
    .get_status = shim_get_status,
};
