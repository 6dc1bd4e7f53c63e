/* SPDX-License-Identifier: Apache-2.0 */

/* What a shim is asked, and what it says. */

#include <config.h>

#include "agent/actuate/shim-private.h"

#include <errno.h>
#include <string.h>

#include "agent/actuate/bypass.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "wire/shim-client.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(shim_answers);

#define STATS_MS 200
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

/* Stores in '*np' how many items of 'item' bytes each follow the 'head' bytes
 * with which a message of 'size' bytes begins.  Returns false if it ends
 * within one. */
static bool
count_items(size_t size, size_t head, size_t item, size_t *np)
{
    if (size < head || (size - head) % item) {
        return false;
    }
    *np = (size - head) / item;
    return true;
}

/* Asks for everything that is needed to go on by difference. */
void
shim_ask_for_tables(struct shim_actuator *s)
{
    s->needs = NEED_ALL;
    s->n_unanswered = 0;
    s->next_sync = LLONG_MAX;
    shim_request(s, SHIM_HELLO, NULL, 0);
    shim_request(s, SHIM_SLOT_LIST, NULL, 0);
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

    if (!count_items(size, sizeof *stats, sizeof *slots, &n)) {
        return EPROTO;
    }
    /* Before the lists are there, slots may have other numbers. */
    if (!s->needs) {
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

    if (!count_items(size, sizeof *head, sizeof *bins, &n)) {
        return EPROTO;
    }
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
        shim_request(s, SHIM_BINS, &request, sizeof request);
    }
}

void
shim_ask_for_counters(struct shim_actuator *s, long long now)
{
    s->next_stats = now + STATS_MS;
    if (!shim_client_wants_write(s->conn)) {
        shim_request(s, SHIM_STATS, NULL, 0);
        if (!s->needs) {
            watched_ask(&s->watched, now, ask_for_bins, s);
        }
    }
    shim_request(s, SHIM_PORTS, NULL, 0);
    bypass_asked(s->bypass, now);
}

static int
take_misses(struct shim_actuator *s, const void *body, size_t size)
{
    const struct shim_flow_key *keys = body;
    size_t n;

    if (!count_items(size, 0, sizeof *keys, &n)) {
        return EPROTO;
    }
    for (size_t i = 0; i < n; i++) {
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
    shim_request(s, SHIM_FLOW_PAGE, &cursor, sizeof cursor);
}

/* Only large tables come in pages, which old shims do not know. */
static void
ask_for_flows(struct shim_actuator *s)
{
    if (s->hello.max_flows > SHIM_DEFAULT_FLOWS) {
        ask_for_page(s, 0);
    } else {
        shim_request(s, SHIM_FLOW_LIST, NULL, 0);
    }
}

static int
take_page(struct shim_actuator *s, const void *body, size_t size)
{
    const struct shim_flow *flows = (const void *) ((const char *) body
                                            + sizeof(struct shim_cursor));
    struct shim_cursor cursor;
    size_t n;

    if (!count_items(size, sizeof cursor, sizeof *flows, &n)) {
        return EPROTO;
    }
    memcpy(&cursor, body, sizeof cursor);
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
    size_t n;

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
        if (!count_items(size, 0, sizeof(struct shim_slot), &n)) {
            return EPROTO;
        }
        slot_table_adopt(&s->slots, body, n);
        have(s, NEED_SLOTS);
        return 0;

    case SHIM_FLOW_LIST:
        if (!count_items(size, 0, sizeof(struct shim_flow), &n)) {
            return EPROTO;
        }
        flow_set_adopt(&s->flows, body, n);
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

/* Takes some of the messages that are there. */
int
shim_receive(struct shim_actuator *s, long long now)
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
        return 0;
    }
    if (error != EAGAIN) {
        return error;
    }
    return now - s->heard > SILENCE_MS ? ETIMEDOUT : 0;
}
