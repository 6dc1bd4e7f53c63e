/* SPDX-License-Identifier: Apache-2.0 */

/* Measures how fast a store of keys is, beside a plain socket and a hash map.
 *
 * This process and another one are the two nodes of a store whose keys stay,
 * over the loopback interface.  Only keys of the other node are used.  Beside
 * the operations on one key the same bytes go over a plain socket to a process
 * that does nothing with them; beside the pushes of many keys a hash map gets
 * the same updates.  They take turns, so that what disturbs the one disturbs
 * the other; figures are medians.  Prints one JSON object. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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
#include "trainer/keys/key-store.h"
#include "trainer/net/address.h"
#include "trainer/net/frame.h"
#include "trainer/net/link.h"

#define PLAIN_BYTES ((size_t) 1 << 22) /* That the plain process buffers. */
#define N_KEYS 4000000                 /* Of both nodes. */
#define BULK_ROUNDS 9
#define N_PARTS 3 /* Pushes of 1, 10 and 100 % of the keys. */
#define SYNC_ROUNDS 101
#define SYNC_OPS 50 /* Per round. */
#define PIPELINED_ROUNDS 11
#define PIPELINED_OPS 100000
#define SMALL_REQUEST \
    (FRAME_ENVELOPE_LENGTH + sizeof(struct frame_key_items) + 8)
#define SMALL_ANSWER (SMALL_REQUEST - 4)
#define MAX_ROUNDS 101

/* In the order of printing. */
enum figure {
    PART_RATE, /* The first of N_PARTS. */
    PULL_RATE = PART_RATE + N_PARTS,
    HASH_RATIO,
    SYNC_RATIO,
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
    struct key_store *store;
    struct key_worker *worker;
    uint64_t *keys; /* Of the other node. */
    size_t n_keys;
    struct plain plain;        /* To the plain process. */
    pid_t node_pid, plain_pid; /* 0: not started. */
    uint8_t bytes[256];
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
 * there are two: the client on one, the other node and the plain process on
 * the other.  Otherwise the kernel may place one pair together and the other
 * apart for a whole run, and a message within a processor takes half the time.
 */
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

static char *
open_node(struct bench *b, int rank, const char *const names[2])
{
    char *error = key_store_create(
        &(struct key_store_config){
            .variant = KEY_CLASSIC_LOCAL,
            .ranges = &(struct key_range){ N_KEYS, 1 },
            .n_ranges = 1,
            .names = names,
            .n_nodes = 2,
            .rank = rank,
            .address = "127.0.0.1",
            .port = address_port(names[rank]),
            .n_workers = 1,
            .connect_us = 10000000,
        },
        &b->store);

    b->worker = error ? NULL : key_store_worker(b->store, 0);
    return error;
}

/* Starts the other node, and finds its keys. */
static char *
start_nodes(struct bench *b)
{
    static char names[2][32];
    const char *const of_nodes[2] = { names[0], names[1] };
    int listeners[2];
    char *error = NULL;

    for (int i = 0; i < 2 && !error; i++) {
        uint16_t port = 0;

        error = address_listen("127.0.0.1", 0, &listeners[i], &port);
        snprintf(names[i], sizeof names[i], "127.0.0.1:%u", port);
    }
    for (int i = 0; i < 2 && !error; i++) {
        close(listeners[i]);
    }
    if (error) {
        return error;
    }
    b->node_pid = start_process();
    if (!b->node_pid) {
        error = open_node(b, 1, of_nodes);
        error = error ? error : key_finish(b->worker);
        key_store_destroy(b->store);
        _exit(error != NULL);
    }
    error = open_node(b, 0, of_nodes);
    b->keys = allocate(N_KEYS, sizeof *b->keys);
    for (uint64_t key = 0; key < N_KEYS && !error; key++) {
        if (!key_is_here(b->worker, key)) {
            b->keys[b->n_keys++] = key;
        }
    }
    return error;
}

static void
stop_processes(struct bench *b)
{
    if (b->store) {
        free(key_finish(b->worker));
        key_store_destroy(b->store);
    }
    if (b->plain.fd >= 0) {
        close(b->plain.fd);
    }

    /* Both end with their connections. */
    for (int i = 0; i < 2; i++) {
        pid_t pid = i ? b->plain_pid : b->node_pid;

        if (pid > 0) {
            waitpid(pid, NULL, 0);
        }
    }
}

/* The measurements. */

static const char *const names[N_FIGURES] = {
    [PART_RATE] = "push_1_percent_mkeys_per_s",
    [PART_RATE + 1] = "push_10_percent_mkeys_per_s",
    [PART_RATE + 2] = "push_100_percent_mkeys_per_s",
    [PULL_RATE] = "pull_mkeys_per_s",
    [HASH_RATIO] = "sparse_vs_hash_map",
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
finish(struct bench *b, key_handle handle)
{
    note_error(b, key_wait(b->worker, handle));
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

/* A hash map of the same keys, at most half full. */
struct hash_map {
    struct {
        uint64_t key; /* 1 + the key; 0: free. */
        float value;
    } * places;
    size_t mask;
};

static void
hash_map_add(struct hash_map *map, uint64_t key, float value)
{
    size_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    while (map->places[i & map->mask].key
           && map->places[i & map->mask].key != key + 1) {
        i++;
    }
    map->places[i & map->mask].key = key + 1;
    map->places[i & map->mask].value += value;
}

/* Returns the seconds of an update of all 'keys'. */
static double
push_keys(struct bench *b, const uint64_t *keys, size_t n, const float *values)
{
    double begin = clock_monotonic_s();

    finish(b, key_push(b->worker, keys, n, values));
    return clock_monotonic_s() - begin;
}

static double
push_to_map(struct hash_map *map, const uint64_t *keys, size_t n,
            const float *values)
{
    double begin = clock_monotonic_s();

    for (size_t i = 0; i < n; i++) {
        hash_map_add(map, keys[i], values[i]);
    }
    return clock_monotonic_s() - begin;
}

/* Pushes evenly spread parts of the keys, as a worker of a sparse model does
 * for a batch; all of them first. */
static void
measure_bulk(struct bench *b)
{
    uint64_t *part = allocate(b->n_keys, sizeof *part);
    float *values = allocate(b->n_keys, sizeof *values);
    struct hash_map map = { .mask = ((size_t) 1 << 23) - 1 };
    size_t every = 1;

    map.places = allocate(map.mask + 1, sizeof *map.places);
    push_to_map(&map, b->keys, b->n_keys, values);
    for (int i = N_PARTS; i-- > 0; every *= 10) {
        size_t n = b->n_keys / every;

        for (size_t k = 0; k < n; k++) {
            part[k] = b->keys[k * every];
        }
        for (int round = 0; round < BULK_ROUNDS && !b->error; round++) {
            double of_map = push_to_map(&map, part, n, values);
            double ours = push_keys(b, part, n, values), begin;

            note(b, PART_RATE + i, n / ours / 1e6);
            if (every == 100) {
                note(b, HASH_RATIO, ours / of_map);
            } else if (every == 1) {
                begin = clock_monotonic_s();
                finish(b, key_pull(b->worker, part, n, values));
                note(b, PULL_RATE, n / (clock_monotonic_s() - begin) / 1e6);
            }
        }
    }
    free(map.places);
    free(values);
    free(part);
}

static double
push_small(struct bench *b)
{
    const float one = 1;
    double begin = clock_monotonic_s();

    for (int j = 0; j < SYNC_OPS; j++) {
        finish(b, key_push(b->worker, &b->keys[j * 997], 1, &one));
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
        key_handle last = 0;

        for (int j = 0; j < PIPELINED_OPS; j++) {
            last = key_push(b->worker, &b->keys[j * 7919 % 1000], 1, &one);
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
    b.error = start_nodes(&b);
    if (!b.error) {
        b.error = start_plain(&b);
    }
    if (!b.error) {
        measure_sync(&b);
        measure_pipelined(&b);
        measure_bulk(&b);
    }
    for (int i = 0; !b.error && i < N_FIGURES; i++) {
        printf("%s\"%s\": %.4g%s", i ? ", " : "{", names[i],
               median(&b.series[i]), i + 1 < N_FIGURES ? "" : "}\n");
    }
    stop_processes(&b);
    free(b.keys);
    if (b.error) {
        fprintf(stderr, "ps-speed: %s\n", b.error);
        free(b.error);
        return 1;
    }
    return 0;
}
