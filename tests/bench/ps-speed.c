/* SPDX-License-Identifier: Apache-2.0 */

/* Measures how fast a parameter server is, beside plain sockets.
 *
 * A server process and this one exchange values over the loopback interface.
 * Beside each exchange the same bytes go over a plain socket to a process
 * that does nothing with them, in turns, so that what disturbs the one
 * disturbs the other; figures are medians.  Prints one JSON object. */

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compare.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/frame.h"
#include "trainer/net/link.h"
#include "trainer/process/control.h"
#include "trainer/ps/server.h"
#include "trainer/ps/store-client.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/sync.h"

#define PLAIN_BYTES ((size_t) 1 << 22) /* That the plain process buffers. */
#define N_KEYS 10000000 /* Keys of the bulk push. */
#define BULK_ROUNDS 9
#define N_PARTS 3 /* Pushes of 1, 10 and 100 % of the keys. */
#define SYNC_ROUNDS 101
#define SYNC_OPS 50 /* Per round. */
#define PIPELINED_ROUNDS 11
#define PIPELINED_OPS 100000
#define SMALL_REQUEST (FRAME_ENVELOPE_LENGTH + sizeof(struct frame_keys) + 4)
#define SMALL_ANSWER FRAME_ENVELOPE_LENGTH
#define MAX_ROUNDS 101

/* In the order of printing. */
enum figure {
    SPARSE_RATE,
    SPARSE_RATIO,
    SPARSE_NEAR_RATE,
    SPARSE_PULL_RATE,
    SPARSE_FIRST_RATE,
    PART_RATE, /* The first of N_PARTS. */
    SYNC_RATIO = PART_RATE + N_PARTS,
    SYNC_TIME,
    PINGPONG_TIME,
    PIPELINED_RATE,
    N_FIGURES
};

/* A plain socket. */
struct plain {
    int fd;        /* -1: none. */
    int low_water; /* See link_set_low_water(). */
};

struct bench {
    struct store_client *client; /* Of the server. */
    struct plain plain;          /* To the plain process. */
    pid_t server_pid, plain_pid; /* 0: not started. */
    uint8_t *bytes;              /* 12 * N_KEYS bytes. */
    struct series {
        double values[MAX_ROUNDS];
        int n;
    } series[N_FIGURES]; /* Each figure is a median. */
    char *error;         /* First error, or NULL. */
};

/* The first bytes to the plain process. */
struct request {
    uint64_t to, from; /* Bytes that follow, bytes to answer. */
};

/* The processes. */

/* Long transfers wake the receiver as seldom as those of a link. */
static bool
move_all(struct plain *plain, uint8_t *bytes, size_t n, bool out)
{
    while (n) {
        ssize_t moved;

        if (out) {
            moved = send(plain->fd, bytes, n, MSG_NOSIGNAL);
        } else {
            link_set_low_water(plain->fd, n, &plain->low_water);
            moved = recv(plain->fd, bytes, n, 0);
        }

        if (moved <= 0 && (!moved || errno != EINTR)) {
            return false;
        }
        bytes += moved > 0 ? moved : 0;
        n -= moved > 0 ? moved : 0;
    }
    return true;
}

/* Receives and sends bytes until the connection ends. */
static void
plain_main(int fd)
{
    const size_t size = PLAIN_BYTES;
    uint8_t *bytes = allocate(size, 1);
    struct plain plain = { .fd = fd };
    struct request request;

    while (move_all(&plain, (uint8_t *) &request, sizeof request, false)) {
        uint64_t left = request.to;

        while (left) {
            size_t n = left < size ? left : size;

            move_all(&plain, bytes, n, false);
            left -= n;
        }
        move_all(&plain, bytes, request.from, true);
    }
    free(bytes);
}

/* Pins this process to processor number 'place' of those that it may use, if
 * there are two: the client on one, the server and the plain process on the
 * other.  Otherwise the kernel may place one pair together and the other apart
 * for a whole run, and a message within a processor takes half the time. */
static void
pin_processor(int place)
{
    static cpu_set_t all;
    cpu_set_t one;

    if (!CPU_COUNT(&all) && sched_getaffinity(0, sizeof all, &all)) {
        return;
    }
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all) && !place--) {
            CPU_SET(i, &one);
        }
    }
    if (CPU_COUNT(&all) > 1 && sched_setaffinity(0, sizeof one, &one)) {
        fprintf(stderr, "bench: processors not chosen: %s\n", strerror(errno));
    }
}

static pid_t
start_process(void)
{
    pid_t parent = getpid(), pid;

    fflush(stdout);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        pin_processor(1);
    }
    return pid;
}

static char *
start_plain(struct bench *b)
{
    int listener;
    uint16_t port;
    char target[32], *error = address_listen("127.0.0.1", 0, &listener, &port);

    if (error) {
        return error;
    }
    b->plain_pid = start_process();
    if (!b->plain_pid) {
        int fd;

        fcntl(listener, F_SETFL, 0);
        fd = accept(listener, NULL, NULL);
        link_tune(fd, NULL);
        fcntl(fd, F_SETFL, 0);
        plain_main(fd);
        _exit(0);
    }
    close(listener);
    snprintf(target, sizeof target, "127.0.0.1:%u", port);
    error = address_connect(target, &b->plain.fd);
    if (!error) {
        link_tune(b->plain.fd, NULL);
        fcntl(b->plain.fd, F_SETFL, 0);
    }
    return error;
}

/* Reads the port from the server's first line. */
static int
read_port(int fd)
{
    FILE *stream = fdopen(fd, "r");
    char line[256] = "";
    cJSON *event = NULL;
    int port = 0;

    if (stream && fgets(line, sizeof line, stream)) {
        event = cJSON_Parse(line);
        port = cJSON_GetNumberValue(cJSON_GetObjectItem(event, "port"));
    }
    cJSON_Delete(event);
    if (stream) {
        fclose(stream);
    }
    return port;
}

static void
server_main(int out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *error;

    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN); /* Its last line is not read. */
    error = ps_server_run(&(struct ps_server_config){
        .address = "127.0.0.1",
        .n_workers = 1,
        .n_threads = 1,
        .sync = &(struct sync_spec){ .class = &sync_bsp },
        .reconnect_timeout_us = 1000000,
        .control = control_create(0),
    });
    if (error) {
        fprintf(stderr, "bench: %s\n", error);
    }
    _exit(error != NULL);
}

static char *
start_server(struct bench *b)
{
    const char *servers[1];
    char target[32];
    int out[2], port;

    if (pipe2(out, O_CLOEXEC)) {
        return message("pipe: %s", strerror(errno));
    }
    b->server_pid = start_process();
    if (!b->server_pid) {
        server_main(out[1]);
    }
    close(out[1]);
    port = read_port(out[0]);
    snprintf(target, sizeof target, "127.0.0.1:%d", port);
    servers[0] = target;
    return store_client_create(
        &(struct ps_client_config){
            .servers = servers,
            .n_servers = 1,
            .n_workers = 1,
            .key_space = UINT64_MAX,
            .width = 1,
            .optimiser = optimiser_find("sum"),
        },
        &b->client);
}

static void
stop_processes(struct bench *b)
{
    store_client_destroy(b->client);
    if (b->plain.fd >= 0) {
        close(b->plain.fd);
    }

    /* Both end with their connections. */
    for (int i = 0; i < 2; i++) {
        pid_t pid = i ? b->plain_pid : b->server_pid;

        if (pid > 0) {
            waitpid(pid, NULL, 0);
        }
    }
}

/* The measurements. */

static const char *const names[N_FIGURES] = {
    [SPARSE_RATE] = "sparse_mkeys_per_s",
    [SPARSE_RATIO] = "sparse_vs_socket",
    [SPARSE_NEAR_RATE] = "sparse_near_mkeys_per_s",
    [SPARSE_PULL_RATE] = "sparse_pull_mkeys_per_s",
    [SPARSE_FIRST_RATE] = "sparse_first_mkeys_per_s",
    [PART_RATE] = "push_1_percent_mkeys_per_s",
    [PART_RATE + 1] = "push_10_percent_mkeys_per_s",
    [PART_RATE + 2] = "push_100_percent_mkeys_per_s",
    [SYNC_RATIO] = "sync_vs_pingpong",
    [SYNC_TIME] = "sync_us",
    [PINGPONG_TIME] = "pingpong_us",
    [PIPELINED_RATE] = "pipelined_kops_per_s",
};

static void
note(struct bench *b, enum figure figure, double value)
{
    struct series *series = &b->series[figure];

    series->values[series->n++] = value;
}

static double
median(struct series *series)
{
    qsort(series->values, series->n, sizeof *series->values, compare_doubles);
    return series->values[series->n / 2];
}

/* Keeps the first error; 'error' may be NULL. */
static void
note_error(struct bench *b, char *error)
{
    if (b->error) {
        free(error);
    } else {
        b->error = error;
    }
}

static void
finish(struct bench *b, ps_handle handle)
{
    note_error(b, store_wait(b->client, handle));
}

/* Returns the seconds for sending 'to' bytes and receiving 'from'. */
static double
plain_exchange(struct bench *b, size_t to, size_t from)
{
    struct request request = { to - sizeof request, from };
    double begin = clock_monotonic_s();

    memcpy(b->bytes, &request, sizeof request);
    if (!move_all(&b->plain, b->bytes, to, true)
        || !move_all(&b->plain, b->bytes, from, false)) {
        note_error(b, message("plain socket: %s", strerror(errno)));
    }
    return clock_monotonic_s() - begin;
}

/* Stores the seconds for the same work by the server and by the plain socket.
 * The order alternates, because caches and the clock rate favour the second
 * one. */
static void
run_pair(struct bench *b, double (*our_work)(struct bench *),
         double (*plain_work)(struct bench *), int round, double *ours,
         double *plain)
{
    if (round % 2) {
        *ours = our_work(b);
        *plain = plain_work(b);
    } else {
        *plain = plain_work(b);
        *ours = our_work(b);
    }
}

/* Makes ascending keys with gaps of up to 'gap'. */
static void
make_keys(uint64_t *keys, uint64_t gap)
{
    uint64_t x = 88172645463325252ULL, key = 0;

    for (size_t i = 0; i < N_KEYS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        key += 1 + x % gap;
        keys[i] = key;
    }
}

/* Returns millions of keys per second. */
static double
push_keys(struct bench *b, const uint64_t *keys, size_t n, const float *values)
{
    double begin = clock_monotonic_s();

    finish(b, store_push_keys(b->client, keys, n, values));
    return n / (clock_monotonic_s() - begin) / 1e6;
}

/* Pushes evenly spread parts of the store's keys, as a worker of a sparse
 * model does for a batch. */
static void
measure_parts(struct bench *b, const uint64_t *keys, const float *values)
{
    uint64_t *part = allocate(N_KEYS, sizeof *part);
    size_t every = 100;

    for (int i = 0; i < N_PARTS; i++, every /= 10) {
        for (size_t k = 0; k < N_KEYS / every; k++) {
            part[k] = keys[k * every];
        }
        for (int round = 0; round < BULK_ROUNDS && !b->error; round++) {
            note(b, PART_RATE + i, push_keys(b, part, N_KEYS / every, values));
        }
    }
    free(part);
}

/* Ten million keys over the whole key space, sent with 8 bytes each. */
static void
measure_bulk(struct bench *b)
{
    uint64_t *keys = allocate(N_KEYS, sizeof *keys);
    float *values = allocate(N_KEYS, sizeof *values);

    make_keys(keys, UINT64_MAX / N_KEYS);
    note(b, SPARSE_FIRST_RATE, push_keys(b, keys, N_KEYS, values));
    for (int i = 0; i < BULK_ROUNDS && !b->error; i++) {
        double plain = plain_exchange(b, 12 * (size_t) N_KEYS, 1);
        double rate = push_keys(b, keys, N_KEYS, values), begin;

        note(b, SPARSE_RATE, rate);
        note(b, SPARSE_RATIO, rate * 1e6 / N_KEYS * plain);
        begin = clock_monotonic_s();
        finish(b, store_pull_keys(b->client, keys, N_KEYS, values));
        note(b, SPARSE_PULL_RATE,
             N_KEYS / (clock_monotonic_s() - begin) / 1e6);
    }
    measure_parts(b, keys, values);
    make_keys(keys, 100); /* Near keys take one byte each. */
    push_keys(b, keys, N_KEYS, values);
    for (int i = 0; i < BULK_ROUNDS && !b->error; i++) {
        note(b, SPARSE_NEAR_RATE, push_keys(b, keys, N_KEYS, values));
    }
    free(keys);
    free(values);
}

static double
push_small(struct bench *b)
{
    const float one = 1;
    double begin = clock_monotonic_s();

    for (int j = 0; j < SYNC_OPS; j++) {
        uint64_t key = j * UINT64_C(1000003);

        finish(b, store_push_keys(b->client, &key, 1, &one));
    }
    return (clock_monotonic_s() - begin) / SYNC_OPS;
}

static double
plain_small(struct bench *b)
{
    double begin = clock_monotonic_s();

    for (int j = 0; j < SYNC_OPS; j++) {
        plain_exchange(b, SMALL_REQUEST, SMALL_ANSWER);
    }
    return (clock_monotonic_s() - begin) / SYNC_OPS;
}

/* One key at a time, waiting for each. */
static void
measure_sync(struct bench *b)
{
    for (int i = 0; i < SYNC_ROUNDS && !b->error; i++) {
        double ours, theirs;

        run_pair(b, push_small, plain_small, i, &ours, &theirs);
        note(b, SYNC_TIME, ours * 1e6);
        note(b, PINGPONG_TIME, theirs * 1e6);
        note(b, SYNC_RATIO, ours / theirs);
    }
}

/* One key at a time, waiting once for all. */
static void
measure_pipelined(struct bench *b)
{
    const float one = 1;

    for (int i = 0; i < PIPELINED_ROUNDS && !b->error; i++) {
        double begin = clock_monotonic_s();
        ps_handle last = 0;

        for (int j = 0; j < PIPELINED_OPS; j++) {
            uint64_t key = j * UINT64_C(7919) % 1000 * 1000003;

            last = store_push_keys(b->client, &key, 1, &one);
        }
        finish(b, last);
        note(b, PIPELINED_RATE,
             PIPELINED_OPS / (clock_monotonic_s() - begin) / 1e3);
    }
}

int
main(void)
{
    struct bench b = { .plain.fd = -1 };

    pin_processor(0);
    b.error = start_server(&b);
    if (!b.error) {
        b.error = start_plain(&b);
    }
    if (!b.error) {
        b.bytes = allocate(12, N_KEYS);
        measure_sync(&b);
        measure_pipelined(&b);
        measure_bulk(&b);
    }
    for (int i = 0; !b.error && i < N_FIGURES; i++) {
        printf("%s\"%s\": %.4g%s", i ? ", " : "{", names[i],
               median(&b.series[i]), i + 1 < N_FIGURES ? "" : "}\n");
    }
    stop_processes(&b);
    free(b.bytes);
    if (b.error) {
        fprintf(stderr, "ps-speed: %s\n", b.error);
        free(b.error);
        return 1;
    }
    return 0;
}
