/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes as processes under all variants: nothing that is pushed is lost or
 * counts twice while keys move, reads of one's own never go back, barriers and
 * clocks show what they promise, and a node that dies is named. */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/unit/trainer/ps/ps-processes.h"
#include "tests/unit/unit-test.h"
#include "trainer/data/seeded.h"
#include "trainer/keys/key-store-private.h"

#define MAX_NODES 4
#define MAX_JOB_PROCESSES 2
#define FAR_US 20000000

/* What each worker of each node does; it asserts by check(). */
struct world {
    enum key_variant variant;
    int staleness;
    int n_nodes, n_workers;
    void (*run)(const struct world *, struct key_worker *, int rank, int i);
    char names[MAX_NODES][24];
    int ports[MAX_NODES];
};

struct thread {
    const struct world *world;
    struct key_store *store;
    int rank, i;
};

#define WIDE 40                 /* First key of 17 values. */
#define LONG 100                /* First key of a thousand. */
#define N_LONG 1500
#define LENGTH 1000

static const struct key_range ranges[] = {
    { WIDE, 2 }, { LONG - WIDE, 17 }, { N_LONG, LENGTH },
};

/* cmocka's assertions are for the test's own process and thread. */
#define check(CONDITION) check_line(CONDITION, __LINE__)

static void
check_line(bool ok, int line)
{
    if (!ok) {
        fprintf(stderr, "test-key-store.c:%d failed in a node\n", line);
        _exit(100);
    }
}

static void
check_ok(char *error, int line)
{
    if (error) {
        fprintf(stderr, "test-key-store.c:%d: %s\n", line, error);
        _exit(101);
    }
}

#define ok(ERROR) check_ok(ERROR, __LINE__)

static void
choose_ports(struct world *w)
{
    for (int i = 0; i < w->n_nodes; i++) {
        w->ports[i] = reserve_port();
        snprintf(w->names[i], sizeof w->names[i], "127.0.0.1:%d", w->ports[i]);
    }
}

static void
init_value(void *aux, uint64_t key, float *values)
{
    values[0] = key;
}

static char *
open_store(const struct world *w, int rank, struct key_store **store)
{
    const char *names[MAX_NODES];

    for (int i = 0; i < w->n_nodes; i++) {
        names[i] = w->names[i];
    }
    return key_store_create(
        &(struct key_store_config){
            .variant = w->variant,
            .staleness = w->staleness,
            .ranges = ranges,
            .n_ranges = 3,
            .names = names,
            .n_nodes = w->n_nodes,
            .rank = rank,
            .address = "127.0.0.1",
            .port = w->ports[rank],
            .n_workers = w->n_workers,
            .connect_us = FAR_US,
            .init = init_value,
        },
        store);
}

static void *
thread_main(void *t_)
{
    struct thread *t = t_;

    t->world->run(t->world, key_store_worker(t->store, t->i), t->rank, t->i);
    return NULL;
}

static void
node_main(const struct world *w, int rank)
{
    struct thread threads[MAX_JOB_PROCESSES];
    pthread_t ids[MAX_JOB_PROCESSES];
    struct key_store *store;

    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
    ok(open_store(w, rank, &store));
    for (int i = 0; i < w->n_workers; i++) {
        threads[i] = (struct thread) { w, store, rank, i };
        check(!pthread_create(&ids[i], NULL, thread_main, &threads[i]));
    }
    for (int i = 0; i < w->n_workers; i++) {
        pthread_join(ids[i], NULL);
    }
    key_store_destroy(store);
    _exit(0);
}

static void
run_world(struct world *w)
{
    pid_t pids[MAX_NODES];

    choose_ports(w);
    for (int i = 0; i < w->n_nodes; i++) {
        pids[i] = start_process();
        if (!pids[i]) {
            node_main(w, i);
        }
    }
    for (int i = 0; i < w->n_nodes; i++) {
        assert_int_equal(await_end(pids[i]), 0);
    }
}

/* Every variant, on one node and on several. */
static void
run_everywhere(struct world w)
{
    for (int variant = KEY_CLASSIC; variant < KEY_N_VARIANTS; variant++) {
        for (int n = 1; n <= MAX_NODES; n += 3) {
            w.variant = variant;
            w.n_nodes = n;
            run_world(&w);
        }
    }
}

#define N_PUSHES 2000           /* Of each worker. */

/* All add 1 and 2 to the first two values of some keys, with localizes
 * between, which everybody else takes away again. */
static void
count_up(const struct world *w, struct key_worker *worker, int rank, int i)
{
    static const uint64_t all[4] = { 3, 77, 12, 41 };
    int n_workers = w->n_nodes * w->n_workers;
    float deltas[2 + 17] = { 1, 2, 1, 2 }, values[38];
    struct seeded random;

    seeded_init(&random, 7, rank * 10 + i);
    for (int k = 0; k < N_PUSHES; k++) {
        const uint64_t keys[2] = { all[seeded_below(&random, 2) * 2],
                                   all[seeded_below(&random, 2) * 2 + 1] };

        if (k % 100 == 50) {
            key_localize(worker, keys, 2);
        }
        if (k % 400 == 99) {
            ok(key_wait(worker, key_pull(worker, keys, 2, values)));
            check(values[0] >= keys[0] && values[2] >= keys[1]);
        }
        if (keys[1] < WIDE) {
            check(false);
        }
        key_push(worker, keys, 2, deltas);
        if (k % 50 == 0) {
            ok(key_clock(worker));
        }
    }
    ok(key_barrier(worker));
    ok(key_wait(worker, key_pull(worker, all, 4, values)));
    check(values[0] + values[19 + 2 - 2] > 0);
    {
        const float *v[4] = { values, values + 2, values + 19, values + 21 };
        float firsts = 0, seconds = 0;

        for (int k = 0; k < 4; k++) {
            firsts += v[k][0] - all[k];
            seconds += v[k][1];
        }
        check(firsts == 2 * N_PUSHES * n_workers);
        check(seconds == 4 * N_PUSHES * n_workers);
    }
    ok(key_finish(worker));
}

UNIT_TEST(no_push_is_lost_or_counts_twice)
{
    run_everywhere((struct world) {
        .staleness = 1, .n_workers = MAX_JOB_PROCESSES, .run = count_up,
    });
}

/* A counter only grows, and each reads at least what it pushed itself. */
static void
watch_counter(const struct world *w, struct key_worker *worker, int rank,
              int i)
{
    static const uint64_t key = 5;
    float one[2] = { 1, 0 }, values[2], last = 0;
    bool async = w->n_workers > 1;

    for (int k = 1; k <= 300; k++) {
        key_handle push = key_push(worker, &key, 1, one), pull;

        if (!async) {
            ok(key_wait(worker, push));
        }
        if (k % 10 == rank) {
            key_localize(worker, &key, 1);
        }
        pull = key_pull(worker, &key, 1, values);
        ok(key_wait(worker, pull));
        check(key_is_done(worker, pull));
        check(values[0] - 5 >= k && values[0] - 5 >= last);
        last = values[0] - 5;
        if (k % 20 == 0) {
            ok(key_clock(worker));
        }
    }
    ok(key_finish(worker));
}

UNIT_TEST(reads_see_ones_own_pushes_and_do_not_go_back)
{
    struct world w = { .staleness = 2, .run = watch_counter, .n_nodes = 3 };

    for (int variant = KEY_CLASSIC; variant < KEY_N_VARIANTS; variant++) {
        w.variant = variant;
        w.n_workers = 1;        /* Synchronous. */
        run_world(&w);
        if (variant != KEY_SSP && variant != KEY_ESSP) {
            w.n_workers = 2;    /* Asynchronous pushes. */
            run_world(&w);
        }
    }
}

/* At clock c there are all pushes of clocks before c - staleness. */
static void
watch_clock(const struct world *w, struct key_worker *worker, int rank, int i)
{
    static const uint64_t keys[2] = { 1, 2 };
    float one[4] = { 0, 1, 0, 1 }, values[4];
    int n = w->n_nodes * w->n_workers;

    for (int clock = 0; clock < 50; clock++) {
        int bound = clock - w->staleness;

        ok(key_wait(worker, key_pull(worker, keys, 2, values)));
        check(values[0] == 1 && values[2] == 2);
        check(values[1] >= (bound > 0 ? bound : 0) * n);
        check(values[3] >= (bound > 0 ? bound : 0) * n);
        check(values[1] >= clock && values[1] <= n * 50);
        key_push(worker, keys, 2, one);
        ok(key_clock(worker));
    }
    ok(key_barrier(worker));
    ok(key_wait(worker, key_pull(worker, keys, 2, values)));
    check(values[1] == n * 50 && values[3] == n * 50);
    ok(key_finish(worker));
}

UNIT_TEST(staleness_is_bounded)
{
    for (int variant = KEY_SSP; variant <= KEY_ESSP; variant++) {
        for (int staleness = 0; staleness < 4; staleness += 3) {
            run_world(&(struct world) {
                .variant = variant, .staleness = staleness, .n_nodes = 3,
                .n_workers = MAX_JOB_PROCESSES, .run = watch_clock,
            });
        }
    }
}

/* A key that was localized is in memory and may be used in place. */
static void
use_in_place(const struct world *w, struct key_worker *worker, int rank,
             int i)
{
    const uint64_t mine[3] = { 10 + rank, 50 + rank, 90 + rank };
    float *vectors[3], values[2];

    ok(key_wait(worker, key_localize(worker, mine, 3)));
    check(key_borrow(worker, mine, 3, vectors));
    check(vectors[0][0] == mine[0] && vectors[2][0] == mine[2]);
    for (int k = 0; k < 17; k++) {
        vectors[1][k] = 100 * rank + k;
    }
    vectors[0][1]++;
    key_return(worker, mine, 3);
    check(key_is_here(worker, mine[1]));
    ok(key_barrier(worker));
    for (int k = 0; k < w->n_nodes; k++) {
        const uint64_t key = 10 + k;

        ok(key_wait(worker, key_pull(worker, &key, 1, values)));
        check(values[0] == key && values[1] == 1);
    }
    ok(key_finish(worker));
}

UNIT_TEST(keys_that_came_are_used_in_place)
{
    run_world(&(struct world) {
        .variant = KEY_LOCALIZE, .n_nodes = 3, .n_workers = 1,
        .run = use_in_place,
    });
}

/* All keys of a thousand values in one call: more than a link takes at
 * once. */
static void
use_all(const struct world *w, struct key_worker *worker, int rank, int i)
{
    float *ones = allocate(N_LONG * LENGTH, sizeof *ones);
    float *values = allocate(N_LONG * LENGTH, sizeof *values);
    uint64_t keys[N_LONG];

    for (int k = 0; k < N_LONG; k++) {
        keys[k] = LONG + (k * 7 + rank * 100) % N_LONG;
    }
    for (int k = 0; k < N_LONG * LENGTH; k++) {
        ones[k] = 1;
    }
    key_push(worker, keys, N_LONG, ones);
    key_localize(worker, keys + 100, 700);
    key_push(worker, keys, N_LONG, ones);
    key_pull(worker, keys, N_LONG, values);
    ok(key_barrier(worker));
    ok(key_wait(worker, key_pull(worker, keys, N_LONG, values)));
    for (int k = 0; k < N_LONG; k++) {
        float sum = 2 * w->n_nodes * w->n_workers;

        check(values[k * LENGTH] == sum + keys[k]);
        check(values[k * LENGTH + 1] == sum);
        check(values[(k + 1) * LENGTH - 1] == sum);
    }
    ok(key_finish(worker));
    free(ones);
    free(values);
}

UNIT_TEST(many_keys_go_in_one_call)
{
    for (int variant = KEY_CLASSIC; variant < KEY_N_VARIANTS; variant++) {
        run_world(&(struct world) {
            .variant = variant, .n_nodes = 3, .n_workers = MAX_JOB_PROCESSES,
            .run = use_all,
        });
    }
}

/* Keys of several widths in one call, half of them on their way elsewhere. */
static void
use_short(const struct world *w, struct key_worker *worker, int rank, int i)
{
    float ones[2 * WIDE + 17 * (LONG - WIDE)] = { 0 };
    float values[sizeof ones / sizeof *ones], sum = w->n_nodes * w->n_workers;
    uint64_t keys[LONG];

    for (int k = 0, at = 0; k < LONG; at += k++ < WIDE ? 2 : 17) {
        keys[k] = k;
        ones[at] = 1;
    }
    key_localize(worker, keys + 20, 50);
    key_push(worker, keys, LONG, ones);
    ok(key_barrier(worker));
    ok(key_wait(worker, key_pull(worker, keys, LONG, values)));
    for (int k = 0, at = 0; k < LONG; at += k++ < WIDE ? 2 : 17) {
        check(values[at] == sum + k && values[at + 1] == 0);
    }
    ok(key_finish(worker));
}

UNIT_TEST(keys_of_several_widths_go_in_one_call)
{
    run_everywhere((struct world){ .n_workers = 2, .run = use_short });
}

/* Rank 1 dies without a word; the others wait for its keys. */
static void
lose_one(const struct world *w, struct key_worker *worker, int rank, int i)
{
    char *error = key_barrier(worker), expected[64];

    if (rank == 1) {
        ok(error);
        kill(getpid(), SIGKILL);
    }
    snprintf(expected, sizeof expected, "node 1 (%s) died", w->names[1]);
    while (!error) {
        uint64_t keys[2] = { 5, 60 };
        float values[19] = { 0 };

        key_push(worker, keys, 2, values);
        key_clock(worker);
        error = key_wait(worker, key_pull(worker, keys, 2, values));
    }
    check(!strcmp(error, expected));
    free(error);
    error = key_barrier(worker);
    check(error && !strcmp(error, expected));
    free(error);
}

UNIT_TEST(who_died_is_named)
{
    for (int variant = KEY_CLASSIC; variant < KEY_N_VARIANTS; variant++) {
        struct world w = {
            .variant = variant, .n_nodes = 3, .n_workers = 1,
            .run = lose_one,
        };
        pid_t pids[3];

        choose_ports(&w);
        for (int i = 0; i < 3; i++) {
            pids[i] = start_process();
            if (!pids[i]) {
                node_main(&w, i);
            }
        }
        assert_int_equal(await_end(pids[0]), 0);
        assert_int_equal(await_end(pids[1]), 128 + SIGKILL);
        assert_int_equal(await_end(pids[2]), 0);
    }
}

/* Of several nodes that were asked one dies, and another one answers then: the
 * requester does not wait any more, and the space for the values may be
 * gone. */
UNIT_TEST(late_answers_are_not_written)
{
    struct world w = { .variant = KEY_CLASSIC, .n_nodes = 1, .n_workers = 1 };
    struct key_item answer = {
        .kind = ITEM_PULLED, .op = 1, .key = 3,
        .values = (const float[]) { 7, 8 },
    };
    float values[4] = { -1, -1, -1, -1 };
    struct key_store *store;
    struct key_op *op;

    choose_ports(&w);
    assert_null(open_store(&w, 0, &store));
    op = &key_store_worker(store, 0)->ops[1];
    *op = (struct key_op) {
        .handle = 1, .left = 2, .n_values = 4, .values = values,
    };

    peer_net_lock(store->net);
    assert_true(key_store_answer(store, &answer));
    peer_net_unlock(store->net);
    key_store_abort(store, message("node 1 died"));
    peer_net_lock(store->net);
    answer.offset = 2;
    assert_true(key_store_answer(store, &answer));
    peer_net_unlock(store->net);

    assert_true(values[0] == 7 && values[1] == 8);
    assert_true(values[2] == -1 && values[3] == -1);
    key_store_destroy(store);
}

UNIT_TEST(mistakes_are_refused)
{
    const char *names[1] = { "127.0.0.1:1" };
    const struct key_range zero = { 4, 0 };
    struct key_store_config config = {
        .names = names, .n_nodes = 1, .ranges = &zero, .n_ranges = 1,
        .n_workers = 1, .address = "127.0.0.1",
    };
    struct key_store *store;
    enum key_variant variant;
    char *error = key_store_create(&config, &store);

    assert_is(error, "keys: 0 values each; expected 1 to 4096");
    config.rank = 1;
    error = key_store_create(&config, &store);
    assert_is(error, "nodes: rank 1 of 1; expected at most 128");
    assert_null(store);
    assert_false(key_variant_find("lazy", &variant));
    assert_true(key_variant_find("essp", &variant));
    assert_int_equal(variant, KEY_ESSP);
}
