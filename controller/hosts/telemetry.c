/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/telemetry.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/name.h"
#include "controller/hosts/hosts-db.h"
#include "controller/hosts/pair-keys.h"
#include "controller/hosts/rpc-watch.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/telemetry-report.h"
#include "coverage.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "packets.h"
#include "socket-util.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"
#include "wire/certificate.h"
#include "wire/host-order.h"
#include "wire/json-put.h"
#include "wire/quiet-rpc.h"

VLOG_DEFINE_THIS_MODULE(telemetry);

COVERAGE_DEFINE(telemetry_report);
COVERAGE_DEFINE(telemetry_bad_message);
COVERAGE_DEFINE(telemetry_lease);
COVERAGE_DEFINE(telemetry_order);
COVERAGE_DEFINE(telemetry_stranger);

/* Files for everything but connections of agents: databases, switches,
 * clients. */
#define OTHER_FILES 1024

/* Connections of one address without a report.  With HELLO_MS, one machine
 * holds at most this part of all. */
#define MAX_STRANGERS 128
#define MAX_MESSAGE (1024 * 1024)       /* Bytes of one message. */
#define MAX_BACKLOG (64 * 1024) /* Bytes that an agent has not read yet. */
#define MAX_BURST 8             /* Messages read from one agent at a time. */

/* A connection without a first report for this time, including the TLS
 * handshake, is closed. */
#define HELLO_MS 2000

/* A standby controller keeps a connection for this time: agents that have lost
 * their controller may come before the next one leads. */
#define STANDBY_MS 1000

/* A host without a report for this time is disconnected; agents report once a
 * second, and each change within 200 ms.  Its connection is closed later,
 * since the agent may only be late. */
#define SILENT_MS 4000
#define RX_TIMEOUT_MS 10000

/* A connection without a message for this time may have ended. */
#define ALIVE_MS 1000

#define LEASE_MS 1000           /* Time between two leases. */
#define KEYS_MS 100             /* Between two looks at the keys of all. */

/* Time between two reports of a job with new bytes, and nothing else.  A
 * millisecond for each agent keeps all of them at a thousand a second. */
#define COUNTERS_MIN_MS 200
#define COUNTERS_MAX_MS 1000

/* Most rows of the hosts database that all agents write in a second.  A RAFT
 * cluster handles 250 transactions, and orders must not wait for them. */
#define REPORTS_PER_S 20

struct connection {
    struct ovs_list node;       /* In 'strangers' or 'agents' of struct
                                 * telemetry. */
    struct rpc_watched watched; /* Has the connection itself. */
    struct stream *stream;      /* Of that, for the certificate. */
    char *peer;                 /* Address of the client, as in "ssl:10.0.0.1",
                                 * NULL for a local client. */
    char *host;                 /* NULL before the first message. */
    long long last_rx;          /* time_msec() of the last message; of the
                                 * start before the first report. */
    unsigned int received;      /* Bytes up to the last message. */
    bool leased;                /* A lease has been sent. */
    int64_t pushed;             /* Version of the order that the agent has or
                                 * was sent, -1 if it is another leader's. */
};

struct telemetry {
    struct pstream *pstream;
    struct cluster *cluster;
    struct rpc_watch *watch;   /* Of all connections. */
    struct pair_keys *keys;    /* Of this leader. */
    unsigned int keys_seqno;   /* Of 'keys', last sent to all. */
    long long next_keys;       /* time_msec(). */
    struct ovs_list strangers; /* Connections without a report, the oldest
                                * first. */
    struct ovs_list agents;    /* Others, by 'last_rx'. */
    struct shash by_host;      /* These, by the name of the host. */
    size_t n_connections, max_connections;
    bool open;                  /* The controller leads. */
    bool unleased;              /* There are new agents. */
    int64_t pushed;             /* Version up to which all have their orders,
                                 * -1 if some have not. */
    long long next_lease;       /* time_msec(). */
};

static bool
is_loopback(const struct sockaddr_storage *ss)
{
    if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *sin
            = ALIGNED_CAST(const struct sockaddr_in *, ss);

        return ntohl(sin->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return ss->ss_family == AF_INET6
           && IN6_IS_ADDR_LOOPBACK(
                  &(ALIGNED_CAST(const struct sockaddr_in6 *, ss))->sin6_addr);
}

char *
telemetry_check_remote(const char *passive)
{
    struct sockaddr_storage ss;

    if (strncmp(passive, "ptcp:", 5)
        || (strchr(passive + 5, ':')
            && inet_parse_passive(passive + 5, 0, &ss, true, NULL)
            && is_loopback(&ss))) {
        return NULL;
    }
    return xasprintf(
        "%s: not without TLS; expected \"pssl:PORT\" and, on the loopback "
        "only, \"ptcp:PORT:127.0.0.1\"",
        passive);
}

char *
telemetry_check_host(const char *passive, const char *name, const char *known,
                     const char *host)
{
    char expected[CERTIFICATE_NAME_SIZE];

    name = name ? name : "";
    name_shorten(host, expected, sizeof expected);
    if (known && strcmp(known, host)) {
        return xasprintf("'host' was %s and is now %s", known, host);
    } else if (!strncmp(passive, "pssl:", 5) && strcmp(name, expected)) {
        return xasprintf("the certificate is of \"%s\" and not of \"%s\"",
                         name, expected);
    }
    return NULL;
}

/* Lets the process have files for '*max' connections; if that is 0, for
 * TELEMETRY_MAX_AGENTS or as many as it may have.  Returns NULL or a message
 * that the caller must free. */
static char *
reserve_files(size_t *max)
{
    size_t wanted = (*max ? *max : TELEMETRY_MAX_AGENTS) + OTHER_FILES;
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < wanted) {
        files.rlim_cur = MIN(files.rlim_max, wanted);
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur < (*max ? wanted : 2 * OTHER_FILES)) {
        return xasprintf("--max-agents: %" PRIuSIZE
                         " open files are needed and "
                         "%" PRIuSIZE " are allowed; expected a larger limit, "
                         "such as LimitNOFILE=65536, or fewer agents",
                         wanted, (size_t) files.rlim_cur);
    } else if (files.rlim_cur < wanted) {
        VLOG_WARN("only %" PRIuSIZE " files may be open, which is enough for "
                  "%" PRIuSIZE " agents",
                  (size_t) files.rlim_cur,
                  (size_t) files.rlim_cur - OTHER_FILES);
    }
    *max = MIN(wanted, files.rlim_cur) - OTHER_FILES;
    return NULL;
}

/* Listens on 'remote' ("punix:", "ptcp:", "pssl:", or "unix:" for "punix:"),
 * for 'max' connections; 0 is the default.  Returns NULL or a message that the
 * caller must free. */
char *
telemetry_create(const char *remote, size_t max, struct cluster *cluster,
                 struct telemetry **tp)
{
    char *passive = xasprintf("%s%s", remote[0] == 'p' ? "" : "p", remote);
    char *message = telemetry_check_remote(passive);
    struct telemetry *t = xzalloc(sizeof *t);
    int error = 0;

    message = message ? message : reserve_files(&max);
    error = message ? 0 : jsonrpc_pstream_open(passive, &t->pstream, 0);
    if (error) {
        message = xasprintf("%s: cannot listen (%s); expected \"unix:PATH\", "
                            "\"ptcp:PORT:127.0.0.1\" or \"pssl:PORT\"",
                            remote, ovs_strerror(error));
    }
    free(passive);
    if (message) {
        free(t);
        t = NULL;
    } else {
        t->cluster = cluster;
        t->max_connections = max;
        t->watch = rpc_watch_create();
        t->keys = pair_keys_create();
        ovs_list_init(&t->strangers);
        ovs_list_init(&t->agents);
        shash_init(&t->by_host);
    }
    *tp = t;
    return message;
}

static void
connection_destroy(struct telemetry *t, struct connection *conn)
{
    if (conn->host) {
        struct host *host = cluster_get_host(t->cluster, conn->host);

        host->connected = false;
        t->cluster->changes++;
        shash_find_and_delete(&t->by_host, conn->host);
    }
    ovs_list_remove(&conn->node);
    t->n_connections--;
    rpc_watch_remove(t->watch, &conn->watched);
    jsonrpc_close(conn->watched.rpc);
    free(conn->peer);
    free(conn->host);
    free(conn);
}

void
telemetry_destroy(struct telemetry *t)
{
    struct connection *conn;

    if (!t) {
        return;
    }
    ovs_list_push_back_all(&t->strangers, &t->agents);
    LIST_FOR_EACH_SAFE(conn, node, &t->strangers)
    {
        connection_destroy(t, conn);
    }
    shash_destroy(&t->by_host);
    pair_keys_destroy(t->keys);
    rpc_watch_destroy(t->watch);
    pstream_close(t->pstream);
    free(t);
}

/* Returns the address in 'name', the name of an accepted connection, without
 * its port; NULL for a Unix socket. */
static char *
address_of(const char *name)
{
    const char *colon = strrchr(name, ':');

    return (strncmp(name, "unix", 4) && colon
            ? xmemdup0(name, colon - name) : NULL);
}

/* Closes the oldest connection without a report of the address of 'new' if
 * there are too many.  A client that completes its handshake in time keeps its
 * place, however many others there are. */
static void
limit_strangers(struct telemetry *t, const struct connection *new)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);
    struct connection *conn, *oldest = NULL;
    size_t n = 0;

    if (!new->peer) {
        return;
    }
    LIST_FOR_EACH (conn, node, &t->strangers) {
        if (conn->peer && !strcmp(conn->peer, new->peer)) {
            oldest = oldest ? oldest : conn;
            n++;
        }
    }
    if (n > MAX_STRANGERS) {
        COVERAGE_INC(telemetry_stranger);
        VLOG_WARN_RL(&rl, "%s: more than %d connections without a report, "
                     "the oldest is closed", new->peer, MAX_STRANGERS);
        connection_destroy(t, oldest);
    }
}

static void
accept_connections(struct telemetry *t)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);
    struct stream *stream;
    int error = 0;

    while (t->n_connections < t->max_connections
           && !(error = pstream_accept(t->pstream, &stream))) {
        struct connection *conn = xzalloc(sizeof *conn);

        rpc_watch_add(t->watch, &conn->watched, jsonrpc_open(stream));
        conn->stream = stream;
        conn->peer = address_of(stream_get_name(stream));
        conn->last_rx = time_msec();
        ovs_list_push_back(&t->strangers, &conn->node);
        t->n_connections++;
        limit_strangers(t, conn);
    }
    if (error && error != EAGAIN) {
        VLOG_WARN_RL(&rl, "%s: accept failed (%s)",
                     pstream_get_name(t->pstream), ovs_strerror(error));
    }
}

/* Notes where the agent of 'host' is: 'peer' is as in struct connection. */
static void
set_address(struct host *host, const char *peer)
{
    ovs_be32 ip;

    host->certified = peer && !strncmp(peer, "ssl:", 4);
    host->ip = host->certified && ip_parse(peer + 4, &ip) ? ntohl(ip) : 0;
}

/* Sets the host of 'conn'.  An older connection of the same host is replaced:
 * the agent has connected again before the old connection timed out. */
static void
set_connection_host(struct telemetry *t, struct connection *conn,
                    const char *host)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(20, 100);
    struct connection *other = shash_find_data(&t->by_host, host);

    if (other) {
        if (time_msec() < other->last_rx + ALIVE_MS) {
            host_take_turn(cluster_get_host(t->cluster, host), other->peer,
                           conn->peer);
        }
        shash_find_and_delete(&t->by_host, host);
        free(other->host);
        other->host = NULL; /* The host stays connected. */
        connection_destroy(t, other);
    }
    conn->host = xstrdup(host);
    shash_add(&t->by_host, host, conn);
    t->unleased = true;
    t->pushed = -1;
    set_address(cluster_get_host(t->cluster, host), conn->peer);
    VLOG_INFO_RL(&rl, "%s: agent connected (%s)", host,
                 jsonrpc_get_name(conn->watched.rpc));
}

/* Returns an error unless the client of 'conn' may speak for 'host'. */
static char *
check_client(const struct telemetry *t, const struct connection *conn,
             const char *host)
{
    return (cluster_has_revoked(t->cluster, host)
                ? xasprintf("%s: an operator has revoked it", host)
                : telemetry_check_host(pstream_get_name(t->pstream),
                                       stream_get_peer_id(conn->stream),
                                       conn->host, host));
}

/* Notes that a message that cannot be read is of a later protocol. */
static void
note_version(struct telemetry *t, const struct connection *conn,
             const struct json *params)
{
    const char *host = telemetry_report_later(params);
    char *error = host ? check_client(t, conn, host) : NULL;

    if (host && !error) {
        cluster_get_host(t->cluster, host)->later_at = time_msec();
    }
    free(error);
}

static char *
handle_report(struct telemetry *t, struct connection *conn,
              const struct json *params)
{
    struct telemetry_report *report;
    bool first = !conn->host;
    char *error;

    error = telemetry_report_from_json(params, &report);
    if (error) {
        note_version(t, conn, params);
        return error;
    }
    error = check_client(t, conn, report->host);
    if (!error && first && !report->has_counters) {
        error = xstrdup("the first report has no 'ports'");
    }
    if (!error) {
        if (first) {
            set_connection_host(t, conn, report->host);
        }
        COVERAGE_INC(telemetry_report);
        demand_learn(t->cluster, report, first);
        if (first) {
            const struct host *host =
                cluster_get_host(t->cluster, report->host);

            conn->pushed = host_behind(host) ? -1 : host->wanted;
        }
        pair_keys_learn(t->keys, report, first);
    }
    telemetry_report_destroy(report);
    return error;
}

/* Returns NULL, or why the connection must be closed. */
static char *
handle_message(struct telemetry *t, struct connection *conn,
               struct jsonrpc_msg *msg)
{
    if (msg->type == JSONRPC_REQUEST && !strcmp(msg->method, "echo")) {
        jsonrpc_send(conn->watched.rpc,
                     jsonrpc_create_reply(json_clone(msg->params), msg->id));
        return NULL;
    } else if (msg->type == JSONRPC_NOTIFY
               && !strcmp(msg->method, "telemetry")) {
        return handle_report(t, conn, msg->params);
    }
    return xasprintf("unexpected %s", jsonrpc_msg_type_to_string(msg->type));
}

/* Sends the agent its new keys, which must never be logged, and waits for what
 * comes next. */
static void
finish_connection(struct telemetry *t, struct connection *conn)
{
    struct json *keys =
        conn->host ? pair_keys_take(t->keys, conn->host) : NULL;

    if (keys) {
        struct quiet_rpc quiet = quiet_rpc_begin();

        jsonrpc_send(conn->watched.rpc,
                     jsonrpc_create_notify("keys", json_array_create_1(keys)));
        quiet_rpc_end(&quiet);
    }
    rpc_watch_register(t->watch, &conn->watched, t->open);
}

/* Returns true if an agent should have reported since its last report. */
static bool
is_silent(const struct connection *conn)
{
    return time_msec() > conn->last_rx + SILENT_MS;
}

/* Returns NULL, or why the connection must be closed: "" if the agent closed
 * it. */
static char *
run_connection(struct telemetry *t, struct connection *conn)
{
    struct jsonrpc *rpc = conn->watched.rpc;
    struct jsonrpc_msg *msg;
    int status;

    jsonrpc_run(rpc);
    for (int i = 0; i < MAX_BURST && !jsonrpc_recv(rpc, &msg); i++) {
        char *error;

        conn->received = jsonrpc_get_received_bytes(rpc);
        error = handle_message(t, conn, msg);
        jsonrpc_msg_destroy(msg);
        if (error) {
            return error;
        } else if (conn->host) { /* Others have to report in time. */
            conn->last_rx = time_msec();
            ovs_list_remove(&conn->node);
            ovs_list_push_back(&t->agents, &conn->node);
        }
    }
    status = jsonrpc_get_status(rpc);
    if (status) {
        return xstrdup(status == EOF ? "" : ovs_strerror(status));
    } else if (jsonrpc_get_received_bytes(rpc) - conn->received
               > MAX_MESSAGE) {
        return xasprintf("a message has more than %d bytes", MAX_MESSAGE);
    } else if (jsonrpc_get_backlog(rpc) > MAX_BACKLOG) {
        return xasprintf("its unread data exceeds %d bytes", MAX_BACKLOG);
    }
    return NULL;
}

static void
drop_connection(struct telemetry *t, struct connection *conn,
                const char *error)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 5);

    if (*error) {
        COVERAGE_INC(telemetry_bad_message);
        VLOG_WARN_RL(&rl, "%s: connection dropped: %.300s",
                     conn->host ? conn->host
                                : jsonrpc_get_name(conn->watched.rpc),
                     error);
    } else if (conn->host) {
        VLOG_INFO_RL(&rl, "%s: agent disconnected", conn->host);
    }
    connection_destroy(t, conn);
}

/* Returns the time for which a connection may have no report. */
static int
hello_ms(const struct telemetry *t)
{
    return t->open ? HELLO_MS : STANDBY_MS;
}

/* Closes connections that have waited too long for a message.  A host whose
 * agent is silent counts as disconnected until its next report. */
static void
check_times(struct telemetry *t)
{
    struct connection *conn;

    LIST_FOR_EACH_SAFE(conn, node, &t->strangers)
    {
        if (time_msec() <= conn->last_rx + hello_ms(t)) {
            break;
        }
        drop_connection(t, conn, t->open ? "no report for 2 s" : "");
    }
    LIST_FOR_EACH_SAFE(conn, node, &t->agents)
    {
        struct host *host = cluster_get_host(t->cluster, conn->host);

        if (!is_silent(conn)) {
            break;
        }
        host->silent_at = time_msec();
        t->cluster->changes += host->connected;
        host->connected = false;
        if (time_msec() > conn->last_rx + RX_TIMEOUT_MS) {
            drop_connection(t, conn, "no message for 10 s");
        }
    }
}

/* Begins or ends to lead. */
static void
set_open(struct telemetry *t, bool open)
{
    struct connection *conn;

    if (open) {
        pair_keys_destroy(t->keys);
        t->keys = pair_keys_create();
        t->keys_seqno = 0;
    }
    t->open = open;
    t->pushed = -1;
    LIST_FOR_EACH_SAFE(conn, node, &t->agents)
    {
        drop_connection(t, conn, "");
    }
    LIST_FOR_EACH (conn, node, &t->strangers) {
        rpc_watch_register(t->watch, &conn->watched, open);
    }
}

/* Sends keys to the agents for which others have brought news. */
static void
run_keys(struct telemetry *t)
{
    struct connection *conn;

    pair_keys_run(t->keys, t->cluster->n_revoked > 0);
    if (t->keys_seqno != pair_keys_seqno(t->keys)
        && time_msec() >= t->next_keys) {
        t->keys_seqno = pair_keys_seqno(t->keys);
        t->next_keys = time_msec() + KEYS_MS;
        LIST_FOR_EACH (conn, node, &t->agents) {
            finish_connection(t, conn);
        }
    }
}

/* Accepts connections and, if 'open', handles messages. */
void
telemetry_run(struct telemetry *t, bool open)
{
    struct rpc_watched *watched;

    if (open != t->open) {
        set_open(t, open);
    }
    accept_connections(t);
    rpc_watch_poll(t->watch);
    while ((watched = rpc_watch_next(t->watch))) {
        struct connection *conn =
            CONTAINER_OF(watched, struct connection, watched);
        char *error = open ? run_connection(t, conn) : NULL;

        if (error) {
            drop_connection(t, conn, error);
            free(error);
        } else {
            finish_connection(t, conn);
        }
    }
    check_times(t);
    run_keys(t);
}

const struct pair_keys *
telemetry_keys(const struct telemetry *t)
{
    return t->keys;
}

void
telemetry_forget(struct telemetry *t, const char *host)
{
    pair_keys_forget(t->keys, host);
}

void
telemetry_wait(const struct telemetry *t)
{
    const struct connection *conn;

    pair_keys_wait(t->keys);
    if (t->n_connections < t->max_connections) {
        pstream_wait(t->pstream);
    }
    rpc_watch_wait(t->watch);
    if (!ovs_list_is_empty(&t->strangers)) {
        conn = CONTAINER_OF(ovs_list_front(&t->strangers), struct connection,
                            node);
        poll_timer_wait_until(conn->last_rx + 1 + hello_ms(t));
    }
    LIST_FOR_EACH (conn, node, &t->agents) {
        bool silent = is_silent(conn);

        poll_timer_wait_until(conn->last_rx + 1
                              + (silent ? RX_TIMEOUT_MS : SILENT_MS));
        if (!silent) {
            break;
        }
    }
    if (t->keys_seqno != pair_keys_seqno(t->keys)) {
        poll_timer_wait_until(t->next_keys);
    }
}

/* Sends the order of the host to its agent, unless the agent has it.  Returns
 * false if that must wait: a slow reader gets the last order, and no queue. */
static bool
push_order(struct telemetry *t, struct connection *conn)
{
    const struct host *host = cluster_get_host(t->cluster, conn->host);
    struct jsonrpc *rpc = conn->watched.rpc;
    struct json *json;

    if (!host->order || conn->pushed == host->wanted) {
        return true;
    } else if (jsonrpc_get_backlog(rpc)) {
        return false;
    }
    json = json_object_create();
    json_put_integer(json, "version", HOST_ORDER_VERSION);
    json_object_put(json, "row", hosts_db_order(host));
    jsonrpc_send(rpc,
                 jsonrpc_create_notify("order", json_array_create_1(json)));
    COVERAGE_INC(telemetry_order);
    conn->pushed = host->wanted;
    rpc_watch_register(t->watch, &conn->watched, true);
    return true;
}

int64_t
telemetry_push(struct telemetry *t, int64_t version)
{
    struct connection *conn;
    bool all = true;

    if (t->pushed != version) {
        LIST_FOR_EACH (conn, node, &t->agents) {
            all &= push_order(t, conn);
        }
        t->pushed = all ? version : -1;
    }
    return t->pushed;
}

/* Returns the parameters of a lease as of telemetry_send_leases(). */
static struct json *
compose_lease(const struct telemetry *t, int64_t generation, int64_t version,
              int64_t lease_ms)
{
    struct json *lease = json_object_create();
    struct json *params;

    json_put_integer(lease, "generation", generation);
    json_put_integer(lease, "version", version);
    json_put_integer(lease, "lease_ms", lease_ms);
    /* Shortest time between two writes of each agent. */
    json_put_integer(lease, "report_ms",
                     MAX(t->n_connections, REPORTS_PER_S) * 1000
                         / REPORTS_PER_S);
    json_put_integer(
        lease, "counters_ms",
        MIN(MAX(t->n_connections, COUNTERS_MIN_MS), COUNTERS_MAX_MS));
    if (cluster_wants_pairs(t->cluster)) {
        json_put_boolean(lease, "pairs", true);
    }
    lease = json_array_create_1(lease);
    params = json_serialized_object_create(lease);
    json_destroy(lease);
    return params;
}

/* Sends leases once a second, and to a new agent at once: the order of
 * 'generation' and 'version' is valid for 'lease_ms'.  A lease also limits how
 * often the agent reports, and writes to the hosts database. */
void
telemetry_send_leases(struct telemetry *t, int64_t generation,
                      int64_t version, int64_t lease_ms)
{
    bool due = time_msec() >= t->next_lease;
    struct connection *conn;
    struct json *lease;

    if (due) {
        t->next_lease = time_msec() + LEASE_MS;
    }
    poll_timer_wait_until(t->next_lease);
    if (!due && !t->unleased) {
        return;
    }
    t->unleased = false;
    lease = compose_lease(t, generation, version, lease_ms);
    LIST_FOR_EACH_SAFE(conn, node, &t->agents)
    {
        if (cluster_has_revoked(t->cluster, conn->host)) {
            drop_connection(t, conn, "an operator has revoked the host");
        } else if (due || !conn->leased) {
            jsonrpc_send(conn->watched.rpc,
                         jsonrpc_create_notify("lease", json_clone(lease)));
            COVERAGE_INC(telemetry_lease);
            conn->leased = true;
            rpc_watch_register(t->watch, &conn->watched, true);
        }
    }
    json_destroy(lease);
}

size_t
telemetry_n_agents(const struct telemetry *t)
{
    const struct connection *conn;
    size_t n = shash_count(&t->by_host);

    LIST_FOR_EACH (conn, node, &t->agents) {
        if (!is_silent(conn)) {
            break;
        }
        n--;
    }
    return n;
}
