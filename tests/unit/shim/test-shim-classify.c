/* SPDX-License-Identifier: Apache-2.0 */

/* Flow table, slots, misses, and the classifier that joins them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <cmocka.h>

#include "shim/classify/classify.h"
#include "tests/unit/shim/classify-one.h"
#include "wire/slot-tag.h"

#define MS UINT64_C(1000000)

static struct shim_flow_key
key_of(uint32_t i)
{
    struct shim_flow_key key = { .family = 4, .protocol = 6 };

    key.local_port = i;
    key.remote_port = i >> 16;
    memcpy(key.local, "\x0a\0\0\1", 4);
    memcpy(key.remote, "\x0a\0\0\2", 4);
    return key;
}

static int
lookup(struct flow_table *ft, uint32_t i)
{
    struct shim_flow_key key = key_of(i);

    return flow_table_lookup(ft, &key);
}

static int
set(struct flow_table *ft, uint32_t i, uint16_t slot)
{
    struct shim_flow_key key = key_of(i);

    return flow_table_set(ft, &key, slot);
}

static int
delete(struct flow_table *ft, uint32_t i)
{
    struct shim_flow_key key = key_of(i);

    return flow_table_delete(ft, &key);
}

static void
finds_what_was_set(void **state)
{
    const uint32_t n = 16384;
    uint64_t cursor = 0;
    struct flow_table *ft = flow_table_create(n, 42);
    struct shim_flow *list = calloc(n, sizeof *list);
    struct shim_stats stats;

    (void) state;
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(lookup(ft, i), -1);
        assert_int_equal(set(ft, i, i % 1000), 0);
    }
    assert_int_equal(flow_table_count(ft), n);
    assert_int_equal(set(ft, n, 1), ENOSPC);
    assert_int_equal(set(ft, 5, 77), 0);        /* A change, not one more. */
    assert_int_equal(lookup(ft, 5), 77);
    flow_table_stats(ft, &stats);
    assert_int_equal(stats.flows_refused, 1);
    assert_int_equal(flow_table_list(ft, &cursor, list, n), n);
    assert_int_equal(cursor, 0);
    for (uint32_t i = 0; i < n; i += 2) {
        assert_int_equal(delete(ft, i), 0);
        assert_int_equal(delete(ft, i), ENOENT);
    }
    for (uint32_t i = 6; i < n; i++) {
        assert_int_equal(lookup(ft, i), i % 2 ? (int) (i % 1000) : -1);
    }
    assert_int_equal(flow_table_count(ft), n / 2);
    free(list);
    flow_table_destroy(ft);
}

/* A reader never sees a slot that its key did not have, and always finds what
 * stays. */
struct race {
    struct flow_table *ft;
    bool stop;
    int n_wrong, n_found, n_missed;
};

enum {
    N_RACE = 65536,             /* Enough that some of them must move. */
    N_STAY = 8192,
};

static void *
reader(void *race_)
{
    struct race *race = race_;

    while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
        for (uint32_t i = 0; i < N_STAY + 64; i++) {
            int slot = lookup(race->ft, i);

            race->n_wrong += slot != -1 && slot != (int) (i % 1000);
            race->n_missed += slot == -1 && i < N_STAY;
            __atomic_store_n(&race->n_found, race->n_found
                             + (slot != -1 && i >= N_STAY),
                             __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

static int
n_found(const struct race *race)
{
    return __atomic_load_n(&race->n_found, __ATOMIC_RELAXED);
}

static void
lookups_are_right_during_changes(void **state)
{
    struct race race = { .ft = flow_table_create(N_RACE, 1) };
    pthread_t thread;

    (void) state;
    for (uint32_t i = 0; i < N_STAY; i++) {
        assert_int_equal(set(race.ft, i, i % 1000), 0);
    }
    pthread_create(&thread, NULL, reader, &race);
    srandom(5);
    for (int i = 0; i < 1000000 || !n_found(&race); i++) {
        uint32_t which = N_STAY + random() % (N_RACE - N_STAY);

        if (i % 1000 == 0) {
            sched_yield();              /* The reader may need the CPU. */
        }
        if (random() % 16) {
            assert_int_equal(set(race.ft, which, which % 1000), 0);
        } else {
            delete(race.ft, which);
        }
    }
    __atomic_store_n(&race.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    assert_int_equal(race.n_wrong, 0);
    assert_int_equal(race.n_missed, 0);
    flow_table_destroy(race.ft);
}

/* A flow of IPv6, whose addresses differ only at their ends. */
static struct shim_flow_key
key6_of(uint32_t i)
{
    struct shim_flow_key key = { .family = 6, .protocol = 17 };

    memset(key.local, 0xfd, 16);
    memset(key.remote, 0xfc, 16);
    memcpy(key.local + 12, &i, 4);
    key.local_port = key.remote_port = 9;
    return key;
}

/* Both families have room for all flows together, and a list in pieces has
 * each of them once. */
static void
a_list_in_pages_is_whole(void **state)
{
    const uint32_t n = 3000;
    struct flow_table *ft = flow_table_create(n, 4);
    uint8_t seen[2][3000] = { { 0 } };
    struct shim_flow page[100];
    uint64_t cursor = 0;
    uint32_t n_pages = 0, total = 0;

    (void) state;
    for (uint32_t i = 0; i < n; i++) {
        struct shim_flow_key key = i % 2 ? key_of(i) : key6_of(i);

        assert_int_equal(flow_table_set(ft, &key, i % 1024), 0);
        assert_int_equal(flow_table_lookup(ft, &key), i % 1024);
    }
    do {
        uint32_t got = flow_table_list(ft, &cursor, page, 100);

        for (uint32_t j = 0; j < got; j++) {
            bool v6 = page[j].key.family == 6;
            uint32_t i = page[j].key.local_port;

            if (v6) {
                memcpy(&i, page[j].key.local + 12, 4);
            }
            assert_in_range(i, 0, n - 1);
            assert_int_equal(page[j].slot, i % 1024);
            seen[v6][i]++;
        }
        total += got;
        n_pages++;
    } while (cursor);
    assert_int_equal(total, n);
    assert_int_equal(n_pages, 30);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(seen[i % 2 == 0][i], 1);
    }
    flow_table_destroy(ft);
}

/* Looks up 8192 flows, of which the first half is there, in bulks of all sizes
 * that touch nothing beyond them. */
static void
look_up_in_bulk(struct flow_table *ft)
{
    uint32_t n = 0;

    for (uint32_t first = 0; first < 8192; first += n) {
        uint64_t hashes[FLOW_TABLE_MAX_BULK], unknown;
        uint16_t slots[FLOW_TABLE_MAX_BULK + 1];

        n = n % FLOW_TABLE_MAX_BULK + 1;
        memset(slots, 0xff, sizeof slots);
        for (uint32_t i = 0; i < n; i++) {
            struct shim_flow_key key = key_of(first + i);

            hashes[i] = flow_table_hash(ft, &key);
        }
        unknown = flow_table_lookup_bulk(ft, hashes, n, slots);
        assert_int_equal(n < 64 ? unknown >> n : 0, 0);
        assert_int_equal(slots[n], UINT16_MAX);
        for (uint32_t i = 0; i < n; i++) {
            int slot = lookup(ft, first + i);

            assert_int_equal(unknown >> i & 1, slot < 0);
            assert_int_equal(slot < 0, first + i >= 4096);
            assert_int_equal(slots[i], slot < 0 ? 0 : slot);
        }
    }
}

/* With what the processor can do, and without. */
static void
a_bulk_lookup_is_that_of_each(void **state)
{
    struct flow_table *ft = flow_table_create(4096, 9);

    (void) state;
    for (uint32_t i = 0; i < 4096; i++) {
        assert_int_equal(set(ft, i, i % 1024), 0);
    }
    look_up_in_bulk(ft);
    flow_table_use_portable(ft);
    look_up_in_bulk(ft);
    flow_table_destroy(ft);
}

/* A word that is free is another flow's at once, and a list has each flow that
 * stays once, whatever comes and goes between its pages. */
static void
a_small_table_can_change_for_ever(void **state)
{
    struct flow_table *ft = flow_table_create(4, 1);

    (void) state;
    for (uint32_t i = 0; i < 4; i++) {
        set(ft, i, i);
    }
    for (uint32_t i = 4; i < 100000; i++) {
        struct shim_flow flows[6];
        uint64_t cursor = 0;
        uint32_t n, n_stay = 0;

        assert_int_equal(set(ft, i, 1), ENOSPC);
        assert_int_equal(lookup(ft, i), -1);
        assert_int_equal(flow_table_list(ft, &cursor, flows, 2), 2);
        assert_int_not_equal(cursor, 0);
        assert_int_equal(delete(ft, i - 4), 0);
        assert_int_equal(set(ft, i, i % 1000), 0);
        assert_int_equal(lookup(ft, i), i % 1000);
        n = 2 + flow_table_list(ft, &cursor, flows + 2, 4);
        assert_int_equal(cursor, 0);
        for (uint32_t j = 0; j < n; j++) {
            n_stay += flows[j].key.local_port >= i - 3
                      && flows[j].key.local_port < i;
        }
        assert_int_equal(i < UINT16_MAX ? n_stay : 3, 3);
    }
    assert_int_equal(flow_table_count(ft), 4);
    flow_table_destroy(ft);
}

static void
flows_without_packets_age(void **state)
{
    struct flow_table *ft = flow_table_create(1000, 1);
    uint64_t start = 12345 * MS, now;
    struct shim_stats stats;

    (void) state;
    flow_table_set_timeout(ft, 16000 * MS, start);
    set(ft, 1, 1 | FLOW_CONTROL);
    set(ft, 2, 2);
    for (now = start; now < start + 15900 * MS; now += 500 * MS) {
        assert_int_equal(flow_table_age(ft, now), 0);
        assert_int_equal(lookup(ft, 1), 1 | FLOW_CONTROL);
    }
    assert_int_equal(flow_table_age(ft, start + 18100 * MS), 1);
    assert_int_equal(lookup(ft, 1), 1 | FLOW_CONTROL);
    assert_int_equal(lookup(ft, 2), -1);
    flow_table_stats(ft, &stats);
    assert_int_equal(stats.flows_aged, 1);
    assert_int_equal(flow_table_count(ft), 1);
    set(ft, 2, 2);                      /* It may come back. */
    assert_int_equal(lookup(ft, 2), 2);
    flow_table_destroy(ft);
}

/* A table is full when it has what it was made for, and not before, and takes
 * none of as many others for one of those. */
static void
a_million_flows_fit(void **state)
{
    struct flow_table *ft = flow_table_create(SHIM_MAX_FLOWS, 77);

    (void) state;
    for (uint32_t i = 0; i < SHIM_MAX_FLOWS; i++) {
        assert_int_equal(set(ft, i * 2654435761u, i % 1000), 0);
    }
    for (uint32_t i = 0; i < SHIM_MAX_FLOWS; i += 97) {
        assert_int_equal(lookup(ft, i * 2654435761u), i % 1000);
    }
    for (uint32_t i = SHIM_MAX_FLOWS; i < 2 * SHIM_MAX_FLOWS; i++) {
        assert_int_equal(lookup(ft, i * 2654435761u), -1);
    }
    flow_table_destroy(ft);
}

/* Learns flow 'i' unless the table has it with this slot.  Returns true if it
 * had not. */
static bool
learn(struct flow_table *ft, uint32_t i, uint16_t slot, uint32_t *n_learned)
{
    struct shim_flow_key key = key_of(i);
    uint64_t hash = flow_table_hash(ft, &key);
    bool new = flow_table_unlearned(ft, &hash, &slot, 1);

    if (new) {
        flow_table_learn(ft, hash, slot, (*n_learned)++);
    }
    return new;
}

/* A table of 32 words. */
static void
learn_more_than_fits(struct flow_table *ft)
{
    uint32_t n_learned = 0, n_found = 0, n_new = 1;

    for (uint32_t i = 0; i < 100000; i++) {
        assert_true(learn(ft, i, i % 1000, &n_learned));
        assert_false(learn(ft, i, i % 1000, &n_learned));
        assert_int_equal(lookup(ft, i), i % 1000);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        int slot = lookup(ft, i);

        assert_true(slot == -1 || slot == (int) (i % 1000));
        n_found += slot != -1;
    }
    assert_int_equal(n_found, 32);
    assert_true(learn(ft, 99999, 5 | FLOW_CONTROL, &n_learned));
    assert_false(learn(ft, 99999, 5, &n_learned));
    assert_int_equal(lookup(ft, 99999), 5);

    /* Flows with packets displace those without, and then stay. */
    for (int round = 0; n_new; round++) {
        assert_true(round < 100);
        n_new = 0;
        for (uint32_t i = 200000; i < 200012; i++) {
            n_new += learn(ft, i, 7, &n_learned);
        }
    }
}

static void
a_full_table_that_learns_forgets_others(void **state)
{
    (void) state;
    for (int portable = 0; portable < 2; portable++) {
        struct flow_table *ft = flow_table_create(16, 3);

        if (portable) {
            flow_table_use_portable(ft);
        }
        learn_more_than_fits(ft);
        flow_table_destroy(ft);
    }
}

static void
flows_to_learn_are_found_in_bulk(void **state)
{
    struct flow_table *ft = flow_table_create(4096, 3);
    uint32_t n_learned = 0;

    (void) state;
    for (uint32_t i = 0; i < 4096; i++) {
        learn(ft, i, i % 1000, &n_learned);
    }
    for (uint32_t n = 1, first = 0; first < 8192; first += n) {
        uint64_t hashes[FLOW_TABLE_MAX_BULK], new = 0;
        uint16_t slots[FLOW_TABLE_MAX_BULK];

        n = n % FLOW_TABLE_MAX_BULK + 1;
        for (uint32_t i = 0; i < n; i++) {
            struct shim_flow_key key = key_of(first + i);

            hashes[i] = flow_table_hash(ft, &key);
            slots[i] = (first + i) % 1000 + (i % 3 == 0);
            new |= (uint64_t) (lookup(ft, first + i) != slots[i]) << i;
            slots[i] |= i % 5 ? 0 : FLOW_CONTROL;
        }
        assert_int_equal(flow_table_unlearned(ft, hashes, slots, n), new);
        flow_table_use_portable(ft);
        assert_int_equal(flow_table_unlearned(ft, hashes, slots, n), new);
    }
    flow_table_destroy(ft);
}

struct learner {
    pthread_t thread;
    struct flow_table *ft;
    uint32_t first; /* It learns this flow and the next 999. */
    const bool *stop;
};

static void *
run_learner(void *learner_)
{
    struct learner *l = learner_;
    uint32_t n_learned = l->first;

    for (uint32_t i = 0; !__atomic_load_n(l->stop, __ATOMIC_RELAXED); i++) {
        uint32_t flow = l->first + i * 7 % 1000;

        learn(l->ft, flow, flow % 1000, &n_learned);
    }
    return NULL;
}

/* The table has space for a part of the flows. */
static void
threads_learn_at_the_same_time(void **state)
{
    struct learner learners[2];
    struct flow_table *ft = flow_table_create(256, 3);
    int n_found = 0;
    bool stop = false;

    (void) state;
    for (int i = 0; i < 2; i++) {
        learners[i].ft = ft;
        learners[i].first = 1000 * i;
        learners[i].stop = &stop;
        pthread_create(&learners[i].thread, NULL, run_learner, &learners[i]);
    }
    for (uint32_t i = 0; n_found < 300000; i++) {
        int slot = lookup(ft, i % 2000);

        assert_true(slot == -1 || slot == (int) (i % 1000));
        n_found += slot != -1;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        pthread_join(learners[i].thread, NULL);
    }
    flow_table_destroy(ft);
}

static void
slots_hold_for_the_lease(void **state)
{
    struct shim_slot row = { .slot = 9, .level = 2, .dscp = 40 };
    struct job_slots *js = job_slots_create();
    uint64_t now = 1000 * MS;
    struct treatment t;

    (void) state;
    assert_int_equal(job_slots_set(js, &row), 0);
    assert_false(job_slots_leased(js, now));
    job_slots_lease(js, now, 300, 3);
    assert_true(job_slots_leased(js, now + 299 * MS));
    t = job_slots_treatment(js, 9, true);
    assert_int_equal(t.level, 2);
    assert_int_equal(t.dscp, 40);
    assert_false(t.is_default);

    assert_false(job_slots_leased(js, now + 300 * MS));
    t = job_slots_treatment(js, 9, false);
    assert_int_equal(t.level, SHIM_LEVEL_DEFAULT);
    assert_int_equal(t.dscp, 3);
    assert_true(t.is_default);
    t = job_slots_treatment(js, 10, true);      /* Not in use. */
    assert_int_equal(t.level, SHIM_LEVEL_DEFAULT);
    job_slots_destroy(js);
}

static void
bad_slots_are_refused(void **state)
{
    static const struct shim_slot bad[] = {
        { .slot = 0 }, { .slot = SHIM_MAX_SLOTS },
        { .slot = 1, .level = SHIM_N_LEVELS }, { .slot = 1, .dscp = 64 },
    };
    struct job_slots *js = job_slots_create();

    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(job_slots_set(js, &bad[i]), EINVAL);
    }
    assert_int_equal(job_slots_clear(js, SHIM_MAX_SLOTS), EINVAL);
    assert_int_equal(job_slots_count(js), 0);
    job_slots_destroy(js);
}

static void
a_new_job_counts_from_0(void **state)
{
    struct shim_slot row = { .slot = 9, .level = 2, .dscp = 40 };
    struct job_slots *js = job_slots_create();
    struct shim_slot_stats stats;

    (void) state;
    assert_false(job_slots_stats(js, 9, 0, &stats));
    job_slots_set(js, &row);
    job_slots_counters(js, 9)->tx_bytes += 500;
    row.level = 3;
    job_slots_set(js, &row);                    /* Same job, other level. */
    assert_true(job_slots_stats(js, 9, 0, &stats));
    assert_int_equal(stats.tx_bytes, 500);
    job_slots_clear(js, 9);
    assert_int_equal(job_slots_count(js), 0);
    job_slots_set(js, &row);
    assert_true(job_slots_stats(js, 9, 0, &stats));
    assert_int_equal(stats.tx_bytes, 0);
    job_slots_destroy(js);
}

static void
received_frames_are_counted(void **state)
{
    static const uint16_t slots[] = { 3, 3, 4, 3, 4, 4, 4 };
    static const uint32_t lengths[] = { 1, 2, 10, 4, 20, 40, 80 };
    struct job_slots *js = job_slots_create();

    (void) state;
    job_slots_count_rx(js, 0, slots, lengths, 7);
    job_slots_count_rx(js, 0, slots, lengths, 1);
    job_slots_count_rx(js, 0, slots, lengths, 0);
    assert_int_equal(job_slots_counters(js, 3)->rx_packets, 4);
    assert_int_equal(job_slots_counters(js, 3)->rx_bytes, 8);
    assert_int_equal(job_slots_counters(js, 4)->rx_packets, 4);
    assert_int_equal(job_slots_counters(js, 4)->rx_bytes, 150);
    job_slots_destroy(js);
}

static void
counters_of_lanes_are_summed(void **state)
{
    struct job_slots *js = job_slots_create();
    struct shim_slot slot = { .slot = 3, .level = 2, .dscp = 10 };
    const uint16_t slots[] = { 3, 3 };
    const uint32_t lengths[] = { 100, 50 };
    struct shim_slot_stats stats;

    (void) state;
    job_slots_add_lanes(js, JOB_SLOTS_MAX_LANES);
    job_slots_count_rx(js, 1, slots, lengths, 1);
    assert_int_equal(job_slots_set(js, &slot), 0);
    job_slots_count_rx(js, 0, slots, lengths, 2);
    job_slots_count_rx(js, 1, slots, lengths, 2);
    job_slots_count_rx(js, JOB_SLOTS_MAX_LANES - 1, slots, lengths, 1);
    assert_true(job_slots_stats(js, 3, 0, &stats));
    assert_int_equal(stats.rx_packets, 5);
    assert_int_equal(stats.rx_bytes, 400);
    job_slots_destroy(js);
}

static void
misses_of_several_threads_are_taken_together(void **state)
{
    struct shim_flow_key a = key_of(1), b = key_of(2), c = key_of(3), got[4];
    struct miss *m = miss_create(), *other = miss_add(m), *third = miss_add(m);
    struct pollfd pfd = { .fd = miss_fd(m), .events = POLLIN };

    (void) state;
    miss_report(other, &a, 111, MS);
    miss_notify(other);
    assert_int_equal(poll(&pfd, 1, 0), 1);
    miss_report(third, &b, 222, MS);
    miss_report(m, &c, 333, MS);
    assert_int_equal(miss_take(m, got, 2), 2);
    assert_int_equal(miss_take(m, got + 2, 2), 1);
    assert_int_equal(miss_take(m, got, 4), 0);
    assert_int_equal(poll(&pfd, 1, 0), 0);
    miss_notify(third);
    assert_int_equal(poll(&pfd, 1, 0), 1);
    miss_destroy(m);
}

static void
a_miss_is_reported_once_in_20_ms(void **state)
{
    struct shim_flow_key a = key_of(1), b = key_of(2), got[4];
    struct miss *m = miss_create();
    struct pollfd pfd = { .fd = miss_fd(m), .events = POLLIN };
    uint64_t now = 1000 * MS;

    (void) state;
    assert_int_equal(poll(&pfd, 1, 0), 0);
    miss_report(m, &a, 111, now);
    miss_report(m, &a, 111, now + 19 * MS);
    miss_report(m, &b, 222, now + 19 * MS);
    miss_notify(m);
    assert_int_equal(poll(&pfd, 1, 0), 1);
    assert_int_equal(miss_take(m, got, 4), 2);
    assert_memory_equal(&got[0], &a, sizeof a);
    assert_memory_equal(&got[1], &b, sizeof b);
    assert_int_equal(poll(&pfd, 1, 0), 0);
    miss_report(m, &a, 111, now + 20 * MS);
    assert_int_equal(miss_take(m, got, 4), 1);

    /* Some flows whose hashes have much in common are told apart. */
    for (uint64_t i = 0; i < 40; i++) {
        miss_report(m, &a, 7 + (i % 4 << 32), now + 50 * MS);
    }
    assert_int_equal(miss_take(m, got, 4), 4);
    assert_int_equal(miss_take(m, got, 4), 0);

    /* More than fit are dropped, and those that fit are not damaged. */
    for (uint64_t i = 0; i < 5000; i++) {
        miss_report(m, &a, 1000 + i, now + 100 * MS);
    }
    for (int n = 0, taken = 0; (n = miss_take(m, got, 4)); taken += n) {
        assert_true(taken < 5000);
        assert_memory_equal(&got[n - 1], &a, sizeof a);
    }
    miss_destroy(m);
}

/* Returns how often a flow that has a packet each millisecond is reported in
 * 'ms' from '*now' on. */
static int
reports_in(struct miss *m, uint64_t *now, int ms)
{
    struct shim_flow_key a = key_of(1), got[4];
    int n = 0;

    for (uint64_t end = *now + ms * MS; *now < end; *now += MS) {
        miss_report(m, &a, 111, *now);
        n += miss_take(m, got, 4);
    }
    return n;
}

/* After 20, 40, 80, 160 ms and then each 320 ms. */
static void
a_flow_that_stays_unknown_is_reported_less_often(void **state)
{
    struct miss *m = miss_create(), *other = miss_add(m);
    uint64_t now = 1000 * MS;

    (void) state;
    assert_int_equal(reports_in(other, &now, 300), 4);
    assert_int_equal(reports_in(other, &now, 3200), 10);

    /* Whoever has not heard of it hears of it at once, */
    miss_repeat(m);
    assert_int_equal(reports_in(other, &now, 1), 1);
    assert_int_equal(reports_in(other, &now, 300), 4);

    /* and of what comes again after a while, too. */
    now += 1000 * MS;
    assert_int_equal(reports_in(other, &now, 50), 2);
    miss_destroy(m);
}

/* TCP from 10.0.0.1:258 to 10.0.0.2:772. */
static const uint8_t tcp_frame[] =
    "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0"
    "\x45\xb8\0\x28\0\0\x40\0\x40\6\0\0\x0a\0\0\1\x0a\0\0\2"
    "\1\2\3\4\0\0\0\0\0\0\0\0\x50\x10\0\0\0\0\0\0";

static void
joins_the_tables(void **state)
{
    struct shim_slot row = { .slot = 9, .level = 2, .dscp = 40 };
    struct flow_table *ft = flow_table_create(16, 1);
    struct job_slots *js = job_slots_create();
    struct miss *m = miss_create();
    struct classifier c = { .flows = ft, .slots = js, .misses = m };
    struct shim_flow_key key;
    struct verdict v;

    (void) state;
    job_slots_set(js, &row);
    classify_from_host(&c, tcp_frame, 54, MS, true, &v);
    assert_int_equal(v.slot, 0);
    assert_int_equal(v.treatment.level, SHIM_LEVEL_DEFAULT);
    assert_int_equal(v.family, 4);
    assert_int_equal(c.n_misses, 1);
    assert_int_equal(miss_take(m, &key, 1), 1);

    flow_table_set(ft, &key, 9);
    classify_from_host(&c, tcp_frame, 54, MS, true, &v);
    assert_int_equal(v.slot, 9);
    assert_int_equal(v.treatment.level, 2);
    assert_int_equal(v.treatment.dscp, 40);
    assert_int_equal(c.n_misses, 1);
    classify_from_host(&c, tcp_frame, 54, MS, false, &v);
    assert_int_equal(v.slot, 9);                /* Still counted for it. */
    assert_true(v.treatment.is_default);

    classify_from_host(&c, tcp_frame, 40, MS, true, &v);
    assert_int_equal(c.n_malformed, 1);
    assert_int_equal(v.family, 0);              /* Left alone. */
    assert_int_equal(v.treatment.level, SHIM_LEVEL_DEFAULT);

    miss_destroy(m);
    job_slots_destroy(js);
    flow_table_destroy(ft);
}

/* UDP over IPv6 from port 9 to 9, and what is no flow. */
static const uint8_t udp6_frame[62] =
    "\2\0\0\0\0\2\2\0\0\0\0\1\x86\xdd\x60\0\0\0\0\x08\x11\x40"
    "\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\7\0\0\0"
    "\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc"
    "\0\x09\0\x09\0\x08\0";
static const uint8_t arp_frame[42] = "\2\0\0\0\0\2\2\0\0\0\0\1\x08\6";

/* Control is what was registered, and what carries the DSCP, of a job that has
 * a level, while there is a lease. */
static void
control_is_registered_or_marked(void **state)
{
    static const struct {
        bool registered, marked, leased;
        uint8_t level;          /* Of the job. */
        bool is_control;
    } cases[] = {
        { false, false, true, 2, false }, { true, false, true, 2, true },
        { false, true, true, 2, true }, { true, true, true, 2, true },
        { true, true, false, 2, false },
        { true, true, true, SHIM_LEVEL_DEFAULT, false },
    };
    struct flow_table *ft = flow_table_create(16, 1);
    struct job_slots *js = job_slots_create();
    struct miss *m = miss_create();
    struct classifier c = { .flows = ft, .slots = js, .misses = m };
    uint8_t frames[2][62];
    const uint32_t lengths[] = { 54, 62 };

    (void) state;
    memcpy(frames[0], tcp_frame, 54);
    memcpy(frames[1], udp6_frame, 62);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const uint8_t *frame = frames[i % 2];
        struct shim_slot row = { .slot = 9, .level = cases[i / 2].level,
                                 .dscp = 24 };
        struct shim_flow flow = { .slot = 9 };
        struct parsed p;
        struct verdict v;

        frames[0][15] = cases[i / 2].marked ? 50 << 2 : 51 << 2;
        frames[1][14] = 0x60 | 50 >> 2;
        frames[1][15] = (cases[i / 2].marked ? 50 & 3 : 51 & 3) << 6;
        job_slots_set(js, &row);
        job_slots_set_control(js, 50, 0);
        parse_frame(frame, lengths[i % 2], true, &p);
        flow.key = p.key;
        flow.control = cases[i / 2].registered;
        flow_table_delete(ft, &p.key);
        classify_from_host(&c, frame, lengths[i % 2], MS, true, &v);
        assert_int_equal(v.slot, 0);            /* Of no job. */
        assert_int_equal(v.treatment.level, SHIM_LEVEL_DEFAULT);

        flow_table_set_flow(ft, &flow);
        classify_from_host(&c, frame, lengths[i % 2], MS, cases[i / 2].leased,
                           &v);
        assert_int_equal(v.slot, 9);
        assert_int_equal(v.treatment.level == SHIM_LEVEL_CONTROL,
                         cases[i / 2].is_control);
        assert_int_equal(v.treatment.dscp, cases[i / 2].is_control ? 50
                         : cases[i / 2].leased ? 24 : 0);
    }
    assert_int_equal(job_slots_count_control(js), 0);
    miss_destroy(m);
    job_slots_destroy(js);
    flow_table_destroy(ft);
}

/* Also while the table is empty: no entry is no entry of anybody's. */
static void
an_unknown_flow_of_ipv6_is_a_miss(void **state)
{
    struct flow_table *ft = flow_table_create(16, 1);
    struct job_slots *js = job_slots_create();
    struct miss *m = miss_create();
    struct classifier c = { .flows = ft, .slots = js, .misses = m };
    struct verdict v;

    (void) state;
    classify_from_host(&c, udp6_frame, sizeof udp6_frame, MS, true, &v);
    assert_int_equal(v.slot, 0);
    assert_int_equal(v.family, 6);
    assert_int_equal(c.n_misses, 1);
    classify_from_host(&c, arp_frame, sizeof arp_frame, MS, true, &v);
    assert_int_equal(c.n_misses, 1);

    miss_destroy(m);
    job_slots_destroy(js);
    flow_table_destroy(ft);
}

/* A burst of all kinds gets what each of its packets gets alone, also where
 * one kind is next to another. */
static void
a_burst_equals_its_packets(void **state)
{
    struct shim_slot row = { .slot = 9, .level = 2, .dscp = 40 };
    struct flow_table *ft = flow_table_create(16, 1);
    struct job_slots *js = job_slots_create();
    struct miss *m = miss_create();
    struct classifier one = { .flows = ft, .slots = js, .misses = m };
    struct classifier all = one;
    struct shim_flow_key key = key6_of(7);
    uint8_t unknown[54];
    const struct packet kinds[] = {
        { (uint8_t *) tcp_frame, 54 }, { (uint8_t *) tcp_frame, 54 },
        { (uint8_t *) udp6_frame, 62 }, { (uint8_t *) arp_frame, 42 },
        { (uint8_t *) tcp_frame, 40 }, { unknown, 54 }, { unknown, 10 },
    };

    (void) state;
    memcpy(unknown, tcp_frame, sizeof unknown);
    unknown[35] = 77;
    job_slots_set(js, &row);
    key.local_port = key.remote_port = 0x0900;
    flow_table_set(ft, &key, 9);
    key = (struct shim_flow_key) {
        .family = 4, .protocol = 6, .local_port = 0x0201,
        .remote_port = 0x0403, .local = "\x0a\0\0\1",
        .remote = "\x0a\0\0\2",
    };
    flow_table_set(ft, &key, 9);
    srandom(8);
    for (int round = 0; round < 2000; round++) {
        uint32_t n = 1 + random() % CLASSIFY_BURST;
        struct packet packets[CLASSIFY_BURST];
        struct verdict v[CLASSIFY_BURST], expected;
        uint16_t slots[CLASSIFY_BURST];

        for (uint32_t i = 0; i < n; i++) {
            packets[i] = kinds[random() % (round % 2 ? 7 : 3)];
        }
        job_slots_set_control(js, round % 5 ? 56 : 46, 0);
        classify_burst_from_host(&all, packets, n, MS, round % 3, v);
        classify_burst_to_host(&all, packets, n, slots);
        for (uint32_t i = 0; i < n; i++) {
            const struct packet *p = &packets[i];

            classify_from_host(&one, p->data, p->length, MS, round % 3,
                               &expected);
            assert_int_equal(v[i].slot, expected.slot);
            assert_int_equal(v[i].l3, expected.l3);
            assert_int_equal(v[i].family, expected.family);
            assert_int_equal(v[i].is_ip, expected.is_ip);
            assert_int_equal(v[i].treatment.level, expected.treatment.level);
            assert_int_equal(v[i].treatment.dscp, expected.treatment.dscp);
            assert_int_equal(v[i].slot, p->data == udp6_frame
                             || (p->data == tcp_frame && p->length == 54)
                             ? 9 : 0);
            assert_int_equal(slots[i],
                             classify_to_host(&one, p->data, p->length));
        }
        assert_int_equal(all.n_misses, one.n_misses);
        assert_int_equal(all.n_malformed, one.n_malformed);
    }
    assert_true(one.n_misses > 0 && one.n_malformed > 0);
    miss_destroy(m);
    job_slots_destroy(js);
    flow_table_destroy(ft);
}

static void
a_slot_tag_has_slot_class_and_origin(void **state)
{
    (void) state;
    assert_int_equal(slot_tag_class(0), 0);
    assert_int_equal(slot_tag_class(0xe000 | 9), 9);
    assert_int_equal(slot_tag_class(1023), 1023);
    assert_int_equal(slot_tag_class(1024 | 9), FLOW_CONTROL | 9);
    assert_int_equal(slot_tag_class(2048 | 9), 9);
    assert_true(slot_tag_learns(0xf000 | 1024 | 9));
    assert_false(slot_tag_learns(2048 | 9));
}

/* A job with a level, or one without a control class; slot 7 is not in use.
 * The DSCP of the TCP packet does not make it control. */
static void
a_slot_tag_decides_slot_and_class(void **state)
{
    static const struct {
        uint16_t tag;
        bool leased;
        uint8_t level; /* Of the job. */
        uint16_t slot; /* Expected, with level and DSCP. */
        uint8_t becomes, dscp;
    } cases[] = {
        { 9, true, 2, 9, 2, 24 },
        { 0xe000 | 2048 | 9, true, 2, 9, 2, 24 },
        { 1024 | 9, true, 2, 9, SHIM_LEVEL_CONTROL, 46 },
        { 1024 | 9, true, SHIM_LEVEL_DEFAULT, 9, SHIM_LEVEL_DEFAULT, 24 },
        { 1024 | 9, false, 2, 9, SHIM_LEVEL_DEFAULT, 0 },
        { 0, true, 2, 0, SHIM_LEVEL_DEFAULT, 0 },
        { 1024 | 7, true, 2, 7, SHIM_LEVEL_DEFAULT, 0 },
    };
    struct classifier c = { .flows = flow_table_create(16, 1),
                            .slots = job_slots_create(),
                            .slot_tags = true };
    struct job_slots *js = (struct job_slots *) c.slots;

    (void) state;
    job_slots_set_control(js, 46, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shim_slot row = { .slot = 9,
                                 .level = cases[i].level,
                                 .dscp = 24 };
        struct verdict v[2];

        job_slots_set(js, &row);
        classify_by_tag(&c, tcp_frame, 54, cases[i].tag, cases[i].leased,
                        &v[0]);
        classify_by_tag(&c, udp6_frame, 62, cases[i].tag, cases[i].leased,
                        &v[1]);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(v[k].slot, cases[i].slot);
            assert_int_equal(v[k].treatment.level, cases[i].becomes);
            assert_int_equal(v[k].treatment.dscp, cases[i].dscp);
            assert_int_equal(v[k].treatment.is_default,
                             cases[i].slot != 9 || !cases[i].leased);
        }
    }
    assert_int_equal(c.n_misses, 0);
    job_slots_destroy(js);
    flow_table_destroy(c.flows);
}

/* The reply of a frame, which differs in its ends only. */
static void
make_reply(const uint8_t *frame, uint32_t length, uint8_t *reply)
{
    bool v6 = frame[12] == 0x86;
    uint32_t at = v6 ? 22 : 26, size = v6 ? 16 : 4, ports = at + 2 * size;

    memcpy(reply, frame, length);
    memcpy(reply + at, frame + at + size, size);
    memcpy(reply + at + size, frame + at, size);
    memcpy(reply + ports, frame + ports + 2, 2);
    memcpy(reply + ports + 2, frame + ports, 2);
}

static void
the_slots_of_replies_are_learned(void **state)
{
    static const struct {
        const uint8_t *frame;
        uint32_t length;
    } kinds[] = { { tcp_frame, 54 }, { udp6_frame, 62 } };
    struct classifier c = { .flows = flow_table_create(16, 1),
                            .slots = job_slots_create(),
                            .slot_tags = true };
    struct verdict v;

    (void) state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const uint8_t *frame = kinds[i].frame;
        uint32_t length = kinds[i].length;
        uint8_t reply[64];

        make_reply(frame, length, reply);
        classify_by_tag(&c, frame, length, SLOT_TAG_NO_LEARN | 9, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 0);
        classify_by_tag(&c, frame, length, SLOT_TAG_CONTROL | 9, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 9);
        classify_by_tag(&c, frame, length, SLOT_TAG_NO_LEARN | 4, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 9);
        classify_by_tag(&c, frame, length, 4, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 4);
        classify_by_tag(&c, frame, length, 0, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 0);
    }
    classify_by_tag(&c, arp_frame, sizeof arp_frame, 9, true, &v);
    assert_int_equal(v.slot, 9);
    assert_int_equal(classify_to_host(&c, arp_frame, sizeof arp_frame), 0);
    assert_int_equal(c.n_learned, 6);
    job_slots_destroy((struct job_slots *) c.slots);
    flow_table_destroy(c.flows);
}

/* Returns a tag of slot 0 to 6, the last of which is not in use. */
static uint16_t
random_tag(void)
{
    return (random() % 7 | (random() % 4 ? 0 : SLOT_TAG_CONTROL)
            | (random() % 4 ? 0 : SLOT_TAG_NO_LEARN));
}

/* Frames of four flows and of no flow.  In odd rounds a flow has one tag, and
 * in the others nothing is learned. */
static void
a_burst_by_tags_equals_its_packets(void **state)
{
    struct job_slots *js = job_slots_create();
    struct classifier one = { .flows = flow_table_create(64, 1),
                              .slots = js,
                              .slot_tags = true };
    struct classifier all = one;
    uint8_t tcp[3][54];
    const struct packet kinds[] = {
        { tcp[0], 54 },
        { tcp[1], 54 },
        { tcp[2], 54 },
        { (uint8_t *) udp6_frame, 62 },
        { (uint8_t *) arp_frame, 42 },
        { tcp[0], 40 },
    };

    (void) state;
    all.flows = flow_table_create(64, 2);
    for (uint16_t i = 1; i < 6; i++) {
        struct shim_slot row = { .slot = i, .level = i, .dscp = 10 + i };

        job_slots_set(js, &row);
    }
    for (int i = 0; i < 3; i++) {
        memcpy(tcp[i], tcp_frame, 54);
        tcp[i][35] = i;
        tcp[i][15] = i == 2 ? SHIM_CONTROL_DSCP << 2 : 0;
    }
    srandom(8);
    for (int round = 0; round < 4000; round++) {
        uint32_t n = 1 + random() % CLASSIFY_BURST;
        int first = random() % 6, n_kinds = 1 + random() % 6;
        struct packet packets[CLASSIFY_BURST];
        struct verdict v[CLASSIFY_BURST], expected;
        uint16_t kind_tags[6], tags[CLASSIFY_BURST];

        for (int i = 0; i < 6; i++) {
            kind_tags[i] = random() % 2 && i ? kind_tags[0] : random_tag();
        }
        for (uint32_t i = 0; i < n; i++) {
            int kind = (first + random() % n_kinds) % 6;

            packets[i] = kinds[kind];
            tags[i] =
                round % 2 ? kind_tags[kind] : random_tag() | SLOT_TAG_NO_LEARN;
        }
        classify_burst_by_tags(&all, packets, tags, n, round % 3, v);
        for (uint32_t i = 0; i < n; i++) {
            const struct packet *p = &packets[i];

            classify_by_tag(&one, p->data, p->length, tags[i], round % 3,
                            &expected);
            assert_memory_equal(&v[i], &expected, sizeof expected);
        }
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            const struct packet *p = &kinds[i];
            uint8_t reply[64];

            make_reply(p->data, p->length, reply);
            assert_int_equal(classify_to_host(&all, reply, p->length),
                             classify_to_host(&one, reply, p->length));
        }
        assert_int_equal(all.n_malformed, one.n_malformed);
    }
    assert_true(one.n_malformed > 0 && one.n_learned > 100);
    job_slots_destroy(js);
    flow_table_destroy(one.flows);
    flow_table_destroy(all.flows);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_set),
        cmocka_unit_test(lookups_are_right_during_changes),
        cmocka_unit_test(a_list_in_pages_is_whole),
        cmocka_unit_test(a_bulk_lookup_is_that_of_each),
        cmocka_unit_test(a_small_table_can_change_for_ever),
        cmocka_unit_test(flows_without_packets_age),
        cmocka_unit_test(a_million_flows_fit),
        cmocka_unit_test(a_full_table_that_learns_forgets_others),
        cmocka_unit_test(flows_to_learn_are_found_in_bulk),
        cmocka_unit_test(threads_learn_at_the_same_time),
        cmocka_unit_test(slots_hold_for_the_lease),
        cmocka_unit_test(bad_slots_are_refused),
        cmocka_unit_test(a_new_job_counts_from_0),
        cmocka_unit_test(received_frames_are_counted),
        cmocka_unit_test(a_miss_is_reported_once_in_20_ms),
        cmocka_unit_test(a_flow_that_stays_unknown_is_reported_less_often),
        cmocka_unit_test(counters_of_lanes_are_summed),
        cmocka_unit_test(misses_of_several_threads_are_taken_together),
        cmocka_unit_test(joins_the_tables),
        cmocka_unit_test(control_is_registered_or_marked),
        cmocka_unit_test(an_unknown_flow_of_ipv6_is_a_miss),
        cmocka_unit_test(a_burst_equals_its_packets),
        cmocka_unit_test(a_slot_tag_has_slot_class_and_origin),
        cmocka_unit_test(a_slot_tag_decides_slot_and_class),
        cmocka_unit_test(the_slots_of_replies_are_learned),
        cmocka_unit_test(a_burst_by_tags_equals_its_packets),
    };

    return cmocka_run_group_tests_name("shim-classify", tests, NULL, NULL);
}
