/* SPDX-License-Identifier: Apache-2.0 */

/* The control socket with all kinds of clients: a real server and real clients
 * in one thread, so that nothing depends on timing. */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/cc/cc.h"
#include "shim/cc/takeover-state.h"
#include "shim/classify/bursts.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/control/server.h"
#include "shim/queue/rank-queue.h"
#include "tests/unit/unit-test.h"
#include "wire/shim-client.h"

static struct {
    char path[64];
    struct server *server;
    struct shim_client *client; /* The first one. */
    const void *body;           /* Of its last reply. */
    size_t size;
    struct job_slots *slots;
    struct flow_cache *flows;
    struct bursts *bursts;
    uint64_t rate, now;
    uint32_t min_share;
    struct rank_queues *queues;
    struct cc *cc;
    size_t learned;             /* Bytes, 0: EINVAL. */
} t;

static void
get_stats(void *aux, struct shim_stats *stats)
{
    stats->tx_packets = 123;
}

static uint64_t
get_rate(void *aux)
{
    return t.rate;
}

static void
set_min_share(void *aux, uint32_t share)
{
    t.min_share = share;
}

static void
get_ports(void *aux, struct shim_ports *ports)
{
    strcpy(ports->host, "host");
    strcpy(ports->uplink, "uplink");
    ports->polls = 17;
}

static void
get_about(void *aux, char *text, size_t size)
{
    snprintf(text, size, "version 7\n");
}

static int
be_taken_over(void *aux, uint32_t step, struct shim_state *state)
{
    state->rate_bps = t.rate;
    state->min_share = t.min_share;
    return step == SHIM_STEP_STOP ? 0 : EINVAL;
}

static int
get_connections(void *aux, void *body, size_t *size)
{
    memset(body, 7, t.learned);
    *size = t.learned;
    return t.learned ? 0 : EINVAL;
}

static uint64_t
get_now(void)
{
    return t.now;
}

static int
set_up(void **state)
{
    struct server_config config = {
        .boot_id = 7,
        .mtu = 9000,
        .get_stats = get_stats,
        .get_rate = get_rate,
        .set_min_share = set_min_share,
        .now = get_now,
        .get_ports = get_ports,
        .get_about = get_about,
        .take_over = be_taken_over,
        .get_connections = get_connections,
    };
    char *error;

    snprintf(t.path, sizeof t.path, "/tmp/sct-protocol-%d.sock",
             (int) getpid());
    t.rate = 50000000;
    t.now = 1000000000;
    t.slots = config.slots = job_slots_create();
    t.flows = config.flows = flow_cache_create(1);
    t.bursts = config.bursts = bursts_create();
    t.queues = rank_queues_create(64, 1500);
    t.cc = config.cc = cc_create(&(struct cc_config){
        .slots = t.slots, .queues = t.queues, .max_flows = 8 });
    error = server_create(t.path, &config, &t.server);
    if (error) {
        print_error("%s\n", error);
        free(error);
    }
    return !t.server || shim_client_open(t.path, &t.client);
}

static int
tear_down(void **state)
{
    shim_client_close(t.client);
    server_destroy(t.server);
    cc_destroy(t.cc);
    rank_queues_destroy(t.queues);
    bursts_destroy(t.bursts);
    flow_cache_destroy(t.flows);
    job_slots_destroy(t.slots);
    return access(t.path, F_OK) == 0;   /* It must have been removed. */
}

static struct shim_client *
open_client(void)
{
    struct shim_client *c;

    assert_int_equal(shim_client_open(t.path, &c), 0);
    return c;
}

/* Lets both sides run until 'c' has a message or an error. */
static int
receive(struct shim_client *c, const struct shim_msg **msg,
        const void **body)
{
    int error = EAGAIN;

    for (int i = 0; i < 100 && error == EAGAIN; i++) {
        server_run(t.server);
        shim_client_run(c);
        error = shim_client_receive(c, msg, body);
    }
    return error;
}

/* Sends a request and returns the status of its reply. The body of the reply
 * is 't.body' until the next one. */
static int
ask_of(struct shim_client *c, uint16_t type, const void *request, size_t size)
{
    const struct shim_msg *msg;
    uint32_t xid;

    assert_int_equal(shim_client_send(c, type, request, size, &xid), 0);
    assert_int_equal(receive(c, &msg, &t.body), 0);
    assert_int_equal(msg->xid, xid);
    assert_int_equal(msg->type, type);
    t.size = msg->length - sizeof *msg;
    return msg->status;
}

static int
ask(uint16_t type, const void *request, size_t size)
{
    return ask_of(t.client, type, request, size);
}

FIXTURE_TEST(tables_can_be_written_and_read)
{
    struct shim_slot slot = { .slot = 3, .level = 1, .dscp = 48,
                              .name = "a/b" };
    struct shim_lease lease = { .ms = 500, .default_dscp = 8 };
    struct shim_control control = { .dscp = 50, .levels = 6 };
    static const struct shim_congestion congestion = { 900000, 300000, 1 };
    struct shim_min_share min_share = { .share = 20000 };
    struct takeover_state *state_body = malloc(CC_TAKEOVER_BYTES);
    struct shim_hello hello;
    struct shim_stats stats;
    struct shim_bins_since since = { .slot = 3 };
    struct shim_bins bins;
    struct shim_bin bin;
    struct shim_slot_stats slot_stats;
    uint16_t number = 3;

    assert_int_equal(ask(SHIM_LEASE, &lease, sizeof lease), 0);
    assert_int_equal(ask(SHIM_SLOT_SET, &slot, sizeof slot), 0);
    assert_int_equal(ask(SHIM_CONTROL, &control, sizeof control), 0);
    assert_int_equal(job_slots_control_dscp(t.slots), 50);
    assert_true(job_slots_level_dscps(t.slots) == (UINT64_C(1) << 50 | 6));
    assert_int_equal(ask(SHIM_MIN_SHARE, &min_share, sizeof min_share), 0);
    assert_int_equal(t.min_share, 20000);
    assert_int_equal(ask(SHIM_CONGESTION, &congestion, sizeof congestion), 0);
    assert_true(cc_save(t.cc, state_body) >= sizeof *state_body);
    assert_memory_equal(&state_body->law, &congestion, sizeof congestion);
    free(state_body);

    assert_int_equal(ask(SHIM_HELLO, NULL, 0), 0);
    assert_int_equal(t.size, sizeof hello);
    memcpy(&hello, t.body, sizeof hello);
    assert_int_equal(hello.boot_id, 7);
    assert_int_equal(hello.rate_bps, 50000000);
    assert_int_equal(hello.mtu, 9000);
    assert_int_equal(hello.pid, getpid());
    assert_int_equal(hello.n_slots, 1);
    assert_int_equal(hello.lease_left_ms, 500);

    assert_int_equal(ask(SHIM_SLOT_LIST, NULL, 0), 0);
    assert_int_equal(t.size, sizeof slot);
    assert_memory_equal(t.body, &slot, sizeof slot);

    for (int i = 0; i < 5; i++) {
        bursts_count(t.bursts, 3, BURSTS_RX, 7000, t.now + i * 10000000);
    }
    t.now += 40000000;
    assert_int_equal(ask(SHIM_STATS, NULL, 0), 0);
    memcpy(&slot_stats, (const char *) t.body + sizeof stats,
           sizeof slot_stats);
    assert_int_equal(slot_stats.rx_bursts.period_ns, 10000000);
    assert_int_equal(slot_stats.rx_bursts.bytes, 7000);
    assert_int_equal(slot_stats.tx_bursts.period_ns, 0);

    since.since = t.now / 10000000 - 4;
    assert_int_equal(ask(SHIM_BINS, &since, sizeof since), 0);
    memcpy(&bins, t.body, sizeof bins);
    assert_int_equal(bins.slot, 3);
    assert_int_equal(bins.first, since.since);
    assert_int_equal(t.size, sizeof bins + 4 * sizeof bin);
    memcpy(&bin, (const char *) t.body + sizeof bins, sizeof bin);
    assert_int_equal(bin.rx, 7000);
    assert_int_equal(bin.tx, 0);
    since.slot = SHIM_MAX_SLOTS;
    assert_int_equal(ask(SHIM_BINS, &since, sizeof since), EINVAL);

    t.now += 560000000;                 /* The lease ends. */
    assert_int_equal(ask(SHIM_STATS, NULL, 0), 0);
    assert_int_equal(t.size, sizeof stats + sizeof slot_stats);
    memcpy(&stats, t.body, sizeof stats);
    memcpy(&slot_stats, (const char *) t.body + sizeof stats,
           sizeof slot_stats);
    assert_int_equal(stats.tx_packets, 123);
    assert_int_equal(stats.n_slot_stats, 1);
    assert_int_equal(slot_stats.slot, 3);
    assert_int_equal(slot_stats.level, SHIM_LEVEL_DEFAULT);
    assert_int_equal(slot_stats.dscp, 8);

    assert_int_equal(ask(SHIM_SLOT_CLEAR, &number, sizeof number), 0);
    assert_int_equal(job_slots_count(t.slots), 0);
}

FIXTURE_TEST(one_bad_element_changes_nothing)
{
    struct shim_slot slots[2] = { { .slot = 1 }, { .slot = 2 } };

    memset(slots[1].name, 'x', sizeof slots[1].name);   /* Does not end. */
    assert_int_equal(ask(SHIM_SLOT_SET, slots, sizeof slots), EINVAL);
    assert_int_equal(job_slots_count(t.slots), 0);
    assert_int_equal(ask(SHIM_HELLO, NULL, 0), 0);
}

/* The thread of the packets makes the list. */
FIXTURE_TEST(peers_are_those_of_the_last_request)
{

    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(SHIM_PEERS, NULL, 0), EAGAIN);
    }
    cc_poll(t.cc, t.now);
    assert_int_equal(ask(SHIM_PEERS, NULL, 0), 0);
    assert_int_equal(t.size, 0);
    assert_int_equal(ask(SHIM_PEERS, NULL, 0), EAGAIN);
}

UNIT_TEST(bodies_are_checked)
{
    static const struct shim_lease bad_lease = { .default_dscp = 64 };
    static const struct shim_min_share
        much = { .share = SHIM_MIN_SHARE_UNIT + 1 },
        by_default = { .share = SHIM_MIN_SHARE_DEFAULT };
    static const struct shim_congestion law = { 500000, 0, 0 },
        low = { 499999, 0, 0 }, large = { 500000, 0, 1000001 },
        own = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
    static const struct shim_slot slot_0, bad_level = { 1, 8 },
                                          bad_dscp = { 1, 7, 64 };
    static const struct shim_key key = { .family = 6 }, no_family,
                                 bad_removed = { .family = 4, .removed = 2 };
    static const uint16_t zero, many = SHIM_MAX_SLOTS;
    const struct {
        uint16_t type;
        const void *body;
        size_t size;
        int status;
    } cases[] = {
        { SHIM_HELLO, NULL, 0, 0 },
        { SHIM_HELLO, &zero, 2, EPROTO },
        { SHIM_LEASE, NULL, 0, EPROTO },
        { SHIM_LEASE, &bad_lease, sizeof bad_lease - 1, EPROTO },
        { SHIM_LEASE, &bad_lease, sizeof bad_lease, EINVAL },
        { SHIM_MIN_SHARE, &much, sizeof much, EINVAL },
        { SHIM_MIN_SHARE, &much, sizeof much - 1, EPROTO },
        { SHIM_MIN_SHARE, &by_default, sizeof by_default, 0 },
        { SHIM_CONGESTION, &law, sizeof law, 0 },
        { SHIM_CONGESTION, &own, sizeof own, 0 },
        { SHIM_CONGESTION, &low, sizeof low, EINVAL },
        { SHIM_CONGESTION, &large, sizeof large, EINVAL },
        { SHIM_CONGESTION, &law, sizeof law - 4, EPROTO },
        { SHIM_CONGESTION - 1, &law, sizeof law, EOPNOTSUPP },
        { SHIM_KEYS, NULL, 0, 0 },
        { SHIM_KEYS, &key, sizeof key, 0 },
        { SHIM_KEYS, &key, sizeof key - 1, EPROTO },
        { SHIM_KEYS, &no_family, sizeof no_family, EINVAL },
        { SHIM_KEYS, &bad_removed, sizeof bad_removed, EINVAL },
        { SHIM_PEERS, &zero, 2, EPROTO },
        { SHIM_SLOT_SET, NULL, 0, 0 },
        { SHIM_SLOT_SET, &slot_0, sizeof slot_0, EINVAL },
        { SHIM_SLOT_SET, &bad_level, sizeof bad_level, EINVAL },
        { SHIM_SLOT_SET, &bad_dscp, sizeof bad_dscp, EINVAL },
        { SHIM_SLOT_SET, &bad_dscp, sizeof bad_dscp - 1, EPROTO },
        { SHIM_SLOT_CLEAR, &zero, sizeof zero, EINVAL },
        { SHIM_SLOT_CLEAR, &many, sizeof many, EINVAL },
        { SHIM_SLOT_CLEAR, &many, 1, EPROTO },
        { 0, NULL, 0, EOPNOTSUPP },
        { 999, NULL, 0, EOPNOTSUPP },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = protocol_check_body(cases[i].type, cases[i].body,
                                         cases[i].size);

        if (status != cases[i].status) {
            fail_msg("case %zu: %d", i, status);
        }
    }
}

static int
raw_connect(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    strcpy(address.sun_path, t.path);
    assert_int_equal(connect(fd, (struct sockaddr *) &address,
                             sizeof address), 0);
    return fd;
}

/* Returns true if the server has closed the connection, after at most one
 * reply with EPROTO. */
static bool
is_rejected(int fd)
{
    struct shim_msg reply;
    ssize_t n;

    for (int i = 0; i < 5; i++) {
        server_run(t.server);
    }
    n = recv(fd, &reply, sizeof reply, 0);
    if (n == sizeof reply) {
        assert_int_equal(reply.status, EPROTO);
        n = recv(fd, &reply, sizeof reply, 0);
    }
    return !n || (n < 0 && errno == ECONNRESET);
}

FIXTURE_TEST(broken_headers_end_the_connection)
{
    static const struct shim_msg bad[] = {
        { .length = 0, .version = 1, .type = SHIM_HELLO },
        { .length = 15, .version = 1, .type = SHIM_HELLO },
        { .length = SHIM_MAX_MESSAGE + 1, .version = 1, .type = SHIM_HELLO },
        { .length = UINT32_MAX, .version = 1, .type = SHIM_HELLO },
        { .length = 16, .version = 0, .type = SHIM_HELLO },
        { .length = 16, .version = 2, .type = SHIM_HELLO },
        { .length = 17, .version = 1, .type = SHIM_HELLO },
    };
    struct shim_client *good = open_client();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int fd = raw_connect();

        assert_int_equal(send(fd, &bad[i], sizeof bad[i], 0), sizeof bad[i]);
        assert_int_equal(send(fd, "x", 1, 0), 1);
        if (!is_rejected(fd)) {
            fail_msg("case %zu", i);
        }
        close(fd);
        assert_int_equal(ask_of(good, SHIM_HELLO, NULL, 0), 0);
    }
    shim_client_close(good);
}

FIXTURE_TEST(an_unknown_type_keeps_the_connection)
{

    assert_int_equal(ask(999, "body", 4), EOPNOTSUPP);
    assert_int_equal(ask(SHIM_HELLO, NULL, 0), 0);
}

FIXTURE_TEST(a_message_may_arrive_byte_by_byte)
{
    struct shim_msg msg = { .length = sizeof msg, .version = 1,
                            .type = SHIM_HELLO, .xid = 5 };
    struct shim_msg reply;
    int fd = raw_connect();

    for (size_t i = 0; i < sizeof msg; i++) {
        assert_int_equal(recv(fd, &reply, sizeof reply, 0), -1);
        assert_int_equal(send(fd, (char *) &msg + i, 1, 0), 1);
        server_run(t.server);
    }
    assert_int_equal(recv(fd, &reply, sizeof reply, 0), sizeof reply);
    assert_int_equal(reply.xid, 5);
    assert_int_equal(reply.length, sizeof reply + sizeof(struct shim_hello));
    close(fd);
}

FIXTURE_TEST(random_bytes_do_no_harm)
{
    struct shim_client *good = open_client();

    srandom(6);
    for (int i = 0; i < 300; i++) {
        int fd = raw_connect();
        char bytes[600];

        for (size_t j = 0; j < sizeof bytes; j++) {
            bytes[j] = random() >> 9;
        }
        if (i % 2) {                    /* A valid header, a random body. */
            struct shim_msg msg = { .length = 16 + random() % 500,
                                    .version = 1, .type = random() % 30 };

            memcpy(bytes, &msg, sizeof msg);
        }
        send(fd, bytes, 1 + random() % sizeof bytes, MSG_NOSIGNAL);
        server_run(t.server);
        close(fd);
    }
    server_run(t.server);
    assert_int_equal(ask_of(good, SHIM_HELLO, NULL, 0), 0);
    shim_client_close(good);
}

FIXTURE_TEST(a_client_that_does_not_read_is_disconnected)
{
    struct shim_client *good = open_client();
    struct shim_msg msg = { .length = sizeof msg,
                            .version = 1,
                            .type = SHIM_SLOT_LIST };
    int fd = raw_connect(), n_sent = 0;

    for (int i = 1; i < SHIM_MAX_SLOTS; i++) {
        struct shim_slot slot = { .slot = i };

        assert_int_equal(job_slots_set(t.slots, &slot), 0);
    }

    /* Each reply has 80 kB.  The server stops reading at some point, and the
     * requests fill the socket. */
    for (int i = 0; i < 100000 && n_sent < 50000; i++) {
        ssize_t n = send(fd, &msg, sizeof msg, MSG_NOSIGNAL);

        if (n != sizeof msg) {
            break;
        }
        n_sent++;
        if (i % 16 == 0) {
            server_run(t.server);
        }
    }
    assert_true(n_sent < 50000);
    assert_int_equal(ask_of(good, SHIM_HELLO, NULL, 0), 0);
    close(fd);
    shim_client_close(good);
}

FIXTURE_TEST(the_socket_is_private)
{
    struct stat st;

    assert_int_equal(stat(t.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

FIXTURE_TEST(a_dead_socket_is_replaced_a_live_one_is_not)
{
    struct server_config config = { .now = get_now };
    struct server *other;
    char *error;
    int fd;

    error = server_create(t.path, &config, &other);
    assert_null(other);
    assert_says(error, "another shim listens there");

    server_destroy(t.server);
    fd = open(t.path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    error = server_create(t.path, &config, &t.server);
    assert_says(error, "exists and is not a socket");
    unlink(t.path);

    /* As a killed shim leaves it: bound, without a listener. */
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    strcpy(address.sun_path, t.path);
    assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof address),
                     0);
    close(fd);
    error = server_create(t.path, &config, &t.server);
    assert_null(error);
}

FIXTURE_TEST(a_new_shim_gets_the_state_and_the_socket)
{
    struct shim_take_over stop = { .step = SHIM_STEP_STOP };
    struct shim_take_over leave = { .step = SHIM_STEP_LEAVE };
    struct shim_take_over nonsense = { .step = 3 };
    struct shim_lease lease = { .ms = 3000, .default_dscp = 10 };
    struct server_config config = { .now = get_now, .publish_later = true };
    struct server *successor;
    struct shim_state told;
    struct stat st, old;

    assert_int_equal(ask(SHIM_LEASE, &lease, sizeof lease), 0);
    t.min_share = 50000;
    assert_int_equal(ask(SHIM_TAKE_OVER, &stop, sizeof stop), 0);
    assert_int_equal(t.size, sizeof told);
    memcpy(&told, t.body, sizeof told);
    assert_int_equal(told.rate_bps, t.rate);
    assert_int_equal(told.min_share, 50000);
    assert_int_equal(told.default_dscp, 10);
    assert_int_equal(told.lease_left_ms, 3000);
    assert_int_equal(told.control_dscp, job_slots_control_dscp(t.slots));
    assert_true(told.level_dscps == job_slots_level_dscps(t.slots));
    assert_int_equal(ask(SHIM_TAKE_OVER, &leave, sizeof leave), EINVAL);
    assert_int_equal(ask(SHIM_TAKE_OVER, &nonsense, sizeof nonsense), EINVAL);

    /* The path is the old server's until the new one publishes its own. */
    assert_int_equal(stat(t.path, &old), 0);
    assert_null(server_create(t.path, &config, &successor));
    assert_int_equal(stat(t.path, &st), 0);
    assert_int_equal(st.st_ino, old.st_ino);
    assert_null(server_publish(successor));
    assert_int_equal(stat(t.path, &st), 0);
    assert_int_not_equal(st.st_ino, old.st_ino);

    /* The old server must not remove it then. */
    server_abandon(t.server);
    server_destroy(t.server);
    assert_int_equal(access(t.path, F_OK), 0);
    t.server = successor;
}

/* The state may fill half a message. */
FIXTURE_TEST(connections_are_sent_during_a_takeover_only)
{

    t.learned = 0;
    assert_int_equal(ask(SHIM_CONNECTIONS, NULL, 0), EINVAL);
    t.learned = 600 << 10;
    assert_int_equal(ask(SHIM_CONNECTIONS, NULL, 0), 0);
    assert_int_equal(t.size, t.learned);
    assert_int_equal(((const uint8_t *) t.body)[t.size - 1], 7);
    assert_int_equal(ask(SHIM_CONNECTIONS, "", 1), EPROTO);
}

FIXTURE_TEST(ports_are_reported)
{
    struct shim_ports ports;

    assert_int_equal(ask(SHIM_PORTS, NULL, 0), 0);
    assert_int_equal(t.size, sizeof ports);
    memcpy(&ports, t.body, sizeof ports);
    assert_string_equal(ports.host, "host");
    assert_string_equal(ports.uplink, "uplink");
    assert_int_equal(ports.polls, 17);
}

FIXTURE_TEST(facts_are_reported)
{

    assert_int_equal(ask(SHIM_ABOUT, NULL, 0), 0);
    assert_int_equal(t.size, strlen("version 7\n"));
    assert_memory_equal(t.body, "version 7\n", t.size);
}

/* A job that ends leaves neither flows nor counts. */
FIXTURE_TEST(refusals_are_reported)
{
    const uint16_t slot = 3;
    struct shim_refused refused;

    assert_int_equal(ask(SHIM_REFUSED, NULL, 0), 0);
    assert_int_equal(t.size, 0);
    for (uint64_t i = 1; i <= 1 + FLOW_CACHE_BUCKETS * FLOW_CACHE_WAYS; i++) {
        uint64_t bucket = i % FLOW_CACHE_BUCKETS;

        flow_cache_learn(t.flows, i << 40 | bucket * 64, slot, 0);
    }
    assert_int_equal(ask(SHIM_REFUSED, NULL, 0), 0);
    assert_int_equal(t.size, sizeof refused);
    memcpy(&refused, t.body, sizeof refused);
    assert_int_equal(refused.slot, slot);
    assert_int_equal(refused.count,
                     FLOW_CACHE_BUCKETS * (FLOW_CACHE_WAYS - 1) + 1);
    assert_int_equal(ask(SHIM_SLOT_CLEAR, &slot, sizeof slot), 0);
    assert_int_equal(ask(SHIM_REFUSED, NULL, 0), 0);
    assert_int_equal(t.size, 0);
}
