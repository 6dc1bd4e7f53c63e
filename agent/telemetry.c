/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/telemetry.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actuate/actuator.h"
#include "agent/agent.h"
#include "agent/identify/registry.h"
#include "agent/identify/tracker.h"
#include "agent/links.h"
#include "agent/progress/iterations.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "ovsdb-session.h"
#include "shim/ports/route-socket.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "uuid.h"
#include "wire/json-get.h"
#include "wire/json-put.h"
#include "wire/quiet-rpc.h"
#include "wire/shim-protocol.h"

VLOG_DEFINE_THIS_MODULE(telemetry);

#define MAX_BACKOFF_MS 1000

/* Probe interval: leases arrive every second, so a longer silence without a
 * reply to a probe means that the controller is disconnected.  After two
 * intervals, when the agent notices, the next controller should lead. */
#define PROBE_MS 2000

#define MAX_BACKLOG (64 * 1024) /* Bytes; larger than a message. */

/* Longest time without a report of something, less half of the time between
 * two reports: the controller doubts what it has not received for long. */
#define REPEAT_MS (TELEMETRY_REPEAT_MS - TELEMETRY_MS / 2)
#define MAX_MESSAGES_A_RUN 50

struct telemetry {
    struct jsonrpc_session *session;
    telemetry_lease_func *lease;
    telemetry_keys_func *keys;
    telemetry_order_func *order; /* NULL: orders are ignored. */
    void *aux;
    uint64_t n_sent, n_dropped;

    /* What was reported on the connection of 'seqno'. */
    unsigned int seqno;
    int64_t counters_ms;   /* As in struct telemetry_lease. */
    size_t state;          /* Hash of the host's state. */
    long long counters_at; /* time_msec() of the host's counters. */
};

/* Returns a stream to one of 'remotes', separated by commas, that reconnects
 * as long as it exists.  Calls 'lease' or 'keys' with 'aux' for each
 * notification. */
struct telemetry *
telemetry_create(const char *remotes, telemetry_lease_func *lease,
                 telemetry_keys_func *keys, void *aux)
{
    struct telemetry *tm = xzalloc(sizeof *tm);
    struct svec names = SVEC_EMPTY_INITIALIZER;
    struct uuid cid;

    ovsdb_session_parse_remote(remotes, &names, &cid);
    tm->session = jsonrpc_session_open_multiple(&names, true);
    svec_destroy(&names);
    jsonrpc_session_set_max_backoff(tm->session, MAX_BACKOFF_MS);
    jsonrpc_session_set_probe_interval(tm->session, PROBE_MS);
    tm->lease = lease;
    tm->keys = keys;
    tm->aux = aux;
    return tm;
}

/* Calls 'order' for each order, too. */
void
telemetry_take_orders(struct telemetry *tm, telemetry_order_func *order)
{
    tm->order = order;
}

void
telemetry_destroy(struct telemetry *tm)
{
    if (tm) {
        jsonrpc_session_close(tm->session);
        free(tm);
    }
}

/* Stores integer 'member' of 'object', at least 0, in '*valuep'.  Returns
 * false without one. */
static bool
get_integer(const struct json *object, const char *member, int64_t *valuep)
{
    const struct json *json = json_get(object, member, JSON_INTEGER);

    if (!json || json->integer < 0) {
        return false;
    }
    *valuep = json->integer;
    return true;
}

static bool
take_lease(struct telemetry *tm, const struct json *json)
{
    struct telemetry_lease lease;

    if (!get_integer(json, "generation", &lease.generation)
        || !get_integer(json, "lease_ms", &lease.lease_ms)
        || !get_integer(json, "report_ms", &lease.report_ms)) {
        return false;
    }
    if (!get_integer(json, "counters_ms", &lease.counters_ms)) {
        lease.counters_ms = 0;
    }
    lease.pairs = json_get(json, "pairs", JSON_TRUE) != NULL;
    if (tm->lease(&lease, tm->aux)) {
        tm->counters_ms = MIN(lease.counters_ms, TELEMETRY_REPEAT_MS);
        /* If this controller is lost, the next one is tried at once. */
        jsonrpc_session_reset_backoff(tm->session);
    } else {
        jsonrpc_session_force_reconnect(tm->session);
    }
    return true;
}

static void
take_message(struct telemetry *tm, const struct jsonrpc_msg *msg)
{
    const struct json *params = msg->params;
    const struct json *json = NULL;
    char *error = NULL;
    bool good = true;

    if (params && params->type == JSON_ARRAY && params->array.n == 1) {
        json = params->array.elems[0];
    }
    /* Replies are to the session's own probes.  Notifications of other names
     * are from a newer controller. */
    if (msg->type == JSONRPC_NOTIFY && !strcmp(msg->method, "lease")) {
        good = take_lease(tm, json);
    } else if (msg->type == JSONRPC_NOTIFY && !strcmp(msg->method, "keys")) {
        good = tm->keys(json, tm->aux);
    } else if (msg->type == JSONRPC_NOTIFY && !strcmp(msg->method, "order")
               && tm->order) {
        error = tm->order(json, tm->aux);
    }
    if (!good || error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "%s: ignoring %s%s",
                     jsonrpc_session_get_name(tm->session),
                     error ? "" : "malformed ", error ? error : msg->method);
        free(error);
    }
}

void
telemetry_run(struct telemetry *tm)
{
    jsonrpc_session_run(tm->session);
    if (tm->seqno != jsonrpc_session_get_seqno(tm->session)) {
        tm->seqno = jsonrpc_session_get_seqno(tm->session);
        tm->counters_ms = 0;
    }
    for (int i = 0; i < MAX_MESSAGES_A_RUN; i++) {
        struct quiet_rpc quiet = quiet_rpc_begin();
        struct jsonrpc_msg *msg = jsonrpc_session_recv(tm->session);

        quiet_rpc_end(&quiet);
        if (!msg) {
            break;
        }
        take_message(tm, msg);
        jsonrpc_msg_destroy(msg);
    }
}

void
telemetry_wait(struct telemetry *tm)
{
    jsonrpc_session_wait(tm->session);
    jsonrpc_session_recv_wait(tm->session);
}

bool
telemetry_is_connected(const struct telemetry *tm)
{
    return jsonrpc_session_is_connected(tm->session);
}

struct json *
telemetry_to_json(const struct telemetry *tm)
{
    struct json *json = json_object_create();

    json_put_boolean(json, "connected", telemetry_is_connected(tm));
    json_put_integer(json, "sent", tm->n_sent);
    json_put_integer(json, "dropped", tm->n_dropped);
    return json;
}

/* Sends 'params' as a notification "telemetry", or drops it.  Returns true if
 * it was sent. */
bool
telemetry_send(struct telemetry *tm, struct json *params)
{
    struct jsonrpc_msg *msg;

    if (!jsonrpc_session_is_connected(tm->session)
        || jsonrpc_session_get_backlog(tm->session) > MAX_BACKLOG) {
        json_destroy(params);
        tm->n_dropped++;
        return false;
    }
    msg = jsonrpc_create_notify("telemetry", json_array_create_1(params));
    if (jsonrpc_session_send(tm->session, msg)) {
        tm->n_dropped++;
        return false;
    }
    tm->n_sent++;
    return true;
}

/* Puts a number that is left out if it is 0. */
static void
put_some(struct json *json, const char *name, uint64_t value)
{
    if (value) {
        json_put_integer(json, name, value);
    }
}

/* Returns what decisions need of 'job' at once. */
static struct json *
compose_facts(const struct job *job)
{
    const struct progress *p = &job->progress;
    struct json *json = json_object_create();

    json_object_put_string(json, "job", job->name);
    json_put_boolean(json, "registered", registry_is_registered(job));
    if (job->has_uid) {
        json_put_integer(json, "uid", job->uid);
    }
    put_some(json, "gpus", job->gpus);
    put_some(json, "reports_refused", job->reports_refused);
    if (job->counted && iterations_count(job->counted) >= 0) {
        json_put_integer(json, "counted", iterations_count(job->counted));
    }
    if (job->has_progress) {
        json_put_integer(json, "iteration", p->iteration);
    }
    if (job->has_progress && p->stage >= 0) {
        json_put_integer(json, "stage", p->stage);
    }
    if (p->metric[0]) {
        json_object_put_string(json, "metric", p->metric);
    }
    if (p->has_value) {
        json_put_real(json, "value", p->value);
    }
    return json;
}

/* Adds to 'json' what changes all the time. */
static void
put_counters(struct json *json, const struct job *job)
{
    const struct shim_burst_stats *bursts = &job->bursts;

    json_put_integer(json, "tx_bytes", job->tx_bytes);
    json_put_integer(json, "rx_bytes", job->rx_bytes);
    if (bursts->period_ns) {
        json_put_real(json, "period_s", bursts->period_ns / 1e9);
        json_put_integer(json, "burst_bytes", bursts->bytes);
        json_put_real(json, "duty", bursts->duty / 1e6);
    }
    if (job->waiting) {
        json_put_real(json, "busy_s", job->waiting->busy);
        json_put_real(json, "waited_s", job->waiting->waited);
    }
}

/* Returns what the telemetry and the agent's commands report about 'job'. */
struct json *
telemetry_compose_job(const struct job *job)
{
    struct json *json = compose_facts(job);

    put_counters(json, job);
    return json;
}

static struct json *
compose_levels(const uint64_t counts[SHIM_N_LEVELS])
{
    struct json *json = json_array_create_empty();

    for (size_t i = 0; i < SHIM_N_LEVELS; i++) {
        json_array_add(json, json_integer_create(counts[i]));
    }
    return json;
}

/* Counters of the shim itself, which no order needs. */
static struct json *
compose_shim(const struct shim_stats *stats,
             const struct traffic_totals *totals)
{
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        { "tx_packets", stats->tx_packets },
        { "tx_bytes", stats->tx_bytes },
        { "rx_packets", stats->rx_packets },
        { "rx_bytes", stats->rx_bytes },
        { "queue_dropped", stats->queue_dropped },
        { "port_dropped", stats->port_dropped },
        { "policed", stats->policed },
        { "malformed", stats->malformed },
        { "port_restarts", stats->port_restarts },
        { "cc_flows", stats->cc_flows },
        { "cc_windows", stats->cc_windows },
        { "cc_grants", stats->cc_grants_taken },
        { "cc_marks", stats->cc_marks },
        { "untagged", stats->untagged },
        { "cc_forged", stats->cc_forged },
        { "cc_refused", stats->cc_refused },
        { "cc_repeated", stats->cc_repeated },
        { "cc_disobeyed", stats->cc_disobeyed },
    };
    struct json *json = json_object_create();

    for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
        json_put_integer(json, counters[i].name, counters[i].value);
    }
    json_object_put(json, "level_bytes", compose_levels(totals->level_bytes));
    json_object_put(json, "level_dropped",
                    compose_levels(totals->level_dropped));
    return json;
}

/* Returns what decisions need of the host at once. */
static struct json *
compose_state(const struct agent *a, const struct actuator_status *status)
{
    const struct registry *registry = tracker_registry(a->tracker);
    struct json *json = json_object_create();

    json_object_put_string(json, "state", agent_state(a));
    json_put_integer(json, "applied", a->applied);
    json_put_integer(json, "applied_generation", a->applied_generation);
    if (a->lease.newest >= 0) {
        json_put_integer(json, "generation", a->lease.newest);
    }
    json_put_boolean(json, "bypass", status->bypass);
    json_put_integer(json, "jobs_refused", registry->n_refused);
    json_object_put(json, "users", users_to_json(&registry->users));
    return json;
}

/* Adds the counters of the host, which no order needs. */
static void
put_host_counters(struct json *json, const struct agent *a,
                  const struct actuator_status *status)
{
    uint64_t capacity = agent_capacity(a);
    struct json *ports = json_object_create();

    if (capacity) {
        struct json *port = json_object_create();

        json_put_integer(port, "tx_bytes",
                         status->totals->tx_bytes + a->rdma_tx_bytes);
        json_put_integer(port, "rx_bytes",
                         status->totals->rx_bytes + a->rdma_rx_bytes);
        json_put_integer(port, "capacity_bps", capacity);
        json_object_put(ports, "uplink", port);
    }
    json_object_put(json, "ports", ports);
    json_put_integer(json, "ip_bytes", status->totals->ip_bytes);
    json_put_integer(json, "default_bytes", status->totals->default_bytes);
    if (status->connected) {
        json_put_integer(json, "queued_bytes", status->queued_bytes);
    }
    if (status->stats) {
        json_object_put(json, "shim",
                        compose_shim(status->stats, status->totals));
    }
}

bool
telemetry_is_due(const struct job_reported *reported,
                 const struct job_reported *now, int64_t counters_ms)
{
    return (
        !counters_ms || now->hash != reported->hash
        || now->at >= reported->at + REPEAT_MS
        || (now->bytes != reported->bytes
            && (!reported->moved
                || now->at >= reported->at + counters_ms - TELEMETRY_MS / 2)));
}

/* Returns the jobs that must be reported, and notes that they were.  With
 * 'pairs', they have the bytes to each address. */
static struct json *
take_jobs(const struct telemetry *tm, const struct registry *registry,
          bool pairs, long long now)
{
    struct json *jobs = json_array_create_empty();
    struct job *job;

    HMAP_FOR_EACH (job, node, &registry->jobs) {
        bool has_pairs = pairs && job->n_remotes;
        struct json *json = compose_facts(job);
        struct job_reported reported = { .hash = json_hash(json, 0),
                                         .bytes =
                                             job->tx_bytes + job->rx_bytes,
                                         .at = now };

        if (!has_pairs
            && !telemetry_is_due(&job->reported, &reported, tm->counters_ms)) {
            json_destroy(json);
            continue;
        }
        put_counters(json, job);
        if (has_pairs) {
            json_object_put(json, "sent_to", pairs_to_json(job));
        }
        json_array_add(jobs, json);
        reported.moved = reported.bytes != job->reported.bytes;
        job->reported = reported;
    }
    return jobs;
}

void
telemetry_report(struct telemetry *tm, const struct agent *a, bool pairs,
                 struct json *peers)
{
    long long now = time_msec();
    bool counters = !tm->counters_ms || now >= tm->counters_at + REPEAT_MS;
    struct actuator_status status;
    struct json *json, *jobs;
    size_t state;

    actuator_get_status(a->actuator, &status);
    json = compose_state(a, &status);
    state = json_hash(json, 0);
    jobs = take_jobs(tm, tracker_registry(a->tracker), pairs, now);
    if (!counters && state == tm->state && !jobs->array.n && !peers) {
        json_destroy(jobs);
        json_destroy(json);
        return;
    }
    tm->state = state;
    json_put_integer(json, "version", 1);
    json_object_put_string(json, "host", a->config->host);
    json_put_integer(json, "time", time_wall_msec());
    json_object_put(json, "jobs", jobs);
    if (counters) {
        tm->counters_at = now;
        put_host_counters(json, a, &status);
    }
    if (peers) {
        json_object_put(json, "peers", peers);
    }
    if (!telemetry_send(tm, json)) {
        tm->counters_ms = 0; /* What was lost is repeated. */
    }
}

/* Remote hosts of the shim. */

void
peers_uninit(struct peers *p)
{
    json_destroy(p->report);
    if (p->keys) {
        memset(p->keys, 0, PEERS_MAX_KEYS * sizeof *p->keys);
        free(p->keys);
    }
}

/* Returns true if the kernel delivers the local address here, or sends to it
 * elsewhere than to the remote one. */
static bool
is_own(struct route_socket *rs, const struct shim_peer *peer)
{
    int family = peer->family == 4 ? AF_INET : AF_INET6;
    struct route local, remote;

    return (
        !route_socket_get_route(rs, family, peer->local, &local)
        && (local.type == RTN_LOCAL
            || (local.type == RTN_UNICAST
                && !route_socket_get_route(rs, family, peer->remote, &remote)
                && local.ifindex != remote.ifindex)));
}

static void
format(uint8_t family, const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
    inet_ntop(family == 4 ? AF_INET : AF_INET6, address, text,
              INET6_ADDRSTRLEN);
}

/* Adds what was counted of a remote address. */
static void
add_remote(struct shash *remotes, const struct shim_peer *peer)
{
    char text[INET6_ADDRSTRLEN];
    struct shim_peer *sum;

    format(peer->family, peer->remote, text);
    sum = shash_find_data(remotes, text);
    if (!sum) {
        sum = xzalloc(sizeof *sum);
        shash_add(remotes, text, sum);
    }
    sum->refused += peer->refused;
    sum->disobeyed += peer->disobeyed;
}

static struct json *
make_report(const struct shash *own, const struct shash *remotes)
{
    struct json *json = json_object_create();
    struct json *addresses = json_array_create_empty();
    struct json *peers = json_array_create_empty();
    const struct shash_node *node;

    SHASH_FOR_EACH (node, own) {
        if (node->data) {
            json_array_add(addresses, json_string_create(node->name));
        }
    }
    SHASH_FOR_EACH (node, remotes) {
        const struct shim_peer *sum = node->data;
        struct json *peer = json_object_create();

        json_object_put_string(peer, "address", node->name);
        if (sum->refused) {
            json_put_integer(peer, "refused", sum->refused);
        }
        if (sum->disobeyed) {
            json_put_integer(peer, "disobeyed", sum->disobeyed);
        }
        json_array_add(peers, peer);
    }
    json_object_put(json, "own", addresses);
    json_object_put(json, "remote", peers);
    return json;
}

void
peers_take_list(struct peers *p, const struct shim_peer *list, size_t n)
{
    struct shash own = SHASH_INITIALIZER(&own);
    struct shash remotes = SHASH_INITIALIZER(&remotes);
    struct route_socket *rs;

    if (route_socket_open(-1, &rs)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char text[INET6_ADDRSTRLEN];
        struct shash_node *node;

        format(list[i].family, list[i].local, text);
        node = shash_find(&own, text);
        if (!node) { /* Its data is NULL unless it is own. */
            node = shash_add(&own, text, is_own(rs, &list[i]) ? p : NULL);
        }
        if (node->data) {
            add_remote(&remotes, &list[i]);
        }
    }
    route_socket_close(rs);
    json_destroy(p->report);
    p->report = make_report(&own, &remotes);
    shash_destroy(&own);
    shash_destroy_free_data(&remotes);
}

struct json *
peers_take_report(struct peers *p)
{
    struct json *report = p->report;

    p->report = NULL;
    return report;
}

/* Reads hexadecimal digits. */
static bool
read_digits(const char *text, uint8_t key[SHIM_KEY_BYTES])
{
    bool good = strlen(text) == 2 * SHIM_KEY_BYTES;

    for (size_t i = 0; good && i < SHIM_KEY_BYTES; i++) {
        key[i] = hexits_value(&text[2 * i], 2, &good);
    }
    return good;
}

/* Reads {"address", "key"?}. */
static bool
read_key(const struct json *json, struct shim_key *key)
{
    const struct json *address = json_get(json, "address", JSON_STRING);
    const struct json *digits = json_get(json, "key", JSON_STRING);
    const char *text = address ? json_string(address) : "";

    *key = (struct shim_key){ .removed = !digits };
    key->family = (inet_pton(AF_INET, text, key->remote) == 1    ? 4
                   : inet_pton(AF_INET6, text, key->remote) == 1 ? 6
                                                                 : 0);
    return (key->family
            && (!digits || read_digits(json_string(digits), key->key)));
}

/* Replaces the key of its address, or adds it in the place of the oldest. */
static void
store_key(struct peers *p, const struct shim_key *key)
{
    size_t i = 0;

    while (
        i < p->n_keys
        && (p->keys[i].family != key->family
            || memcmp(p->keys[i].remote, key->remote, sizeof key->remote))) {
        i++;
    }
    if (i == PEERS_MAX_KEYS) {
        i = 0;
    }
    if (i < p->n_keys) {
        p->n_keys--;
        memmove(&p->keys[i], &p->keys[i + 1],
                (p->n_keys - i) * sizeof *p->keys);
    }
    p->keys[p->n_keys++] = *key;
}

bool
peers_take_keys(struct peers *p, const struct json *keys)
{
    if (!keys || keys->type != JSON_ARRAY) {
        return false;
    }
    p->keys = p->keys ? p->keys : xzalloc(PEERS_MAX_KEYS * sizeof *p->keys);
    for (size_t i = 0; i < keys->array.n; i++) {
        struct shim_key key;

        if (!read_key(keys->array.elems[i], &key)) {
            return false;
        }
        store_key(p, &key);
    }
    return true;
}
