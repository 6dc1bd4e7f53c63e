/* SPDX-License-Identifier: Apache-2.0 */

/* The actuator for a host with a shim: its connection, and what it tells the
 * shim. */

#include <config.h>

#include "agent/actuate/shim-private.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/bypass.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "wire/shim-client.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(shim_actuator);

#define CONNECT_MS 100          /* Between attempts. */
#define LEASE_MS 3000           /* Of the agent's own lease. */
#define LEASE_RENEW_MS 1000

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

void
shim_request(struct shim_actuator *s, enum shim_msg_type type,
             const void *body, size_t size)
{
    /* A broken connection shows when receiving. */
    shim_client_send(s->conn, type, body, size, NULL);
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
    shim_ask_for_tables(s);
    shim_request(s, SHIM_SUBSCRIBE, NULL, 0);
}

static void
send_change(struct shim_actuator *s, enum shim_msg_type type,
            const void *body, size_t size)
{
    if (size) {
        s->n_unanswered++;
        shim_request(s, type, body, size);
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
        shim_request(s, SHIM_STATS, NULL, 0);
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
    shim_request(s, SHIM_LEASE, &lease, sizeof lease);
}

static void
send_guard(struct shim_actuator *s)
{
    struct shim_guard guard = { .share = s->guard };

    s->guard_dirty = false;
    shim_request(s, SHIM_GUARD, &guard, sizeof guard);
}

static void
send_congestion(struct shim_actuator *s)
{
    s->congestion_dirty = false;
    shim_request(s, SHIM_CONGESTION, &s->congestion, sizeof s->congestion);
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
        int error = shim_receive(s, now);

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
        shim_ask_for_tables(s);
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
        shim_ask_for_counters(s, now);
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
