/* SPDX-License-Identifier: Apache-2.0 */

/* Records of connections and of remote hosts, which jobs share: one that asks
 * for many takes none of another. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cc/record-table.h"
#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

enum { N = 64, ANN = 1, BOB = 2, IDLE_MS = 10000 };

static struct shim_flow_key
key_of(uint32_t i)
{
    struct shim_flow_key key = { .family = 4, .remote_port = i };

    memcpy(key.remote, &i, sizeof i);
    return key;
}

/* Asks for a record, in place of another if need be. */
static struct record *
ask(struct record_table *t, uint32_t i, uint16_t slot, uint64_t now)
{
    struct shim_flow_key key = key_of(i);
    struct record *old = record_table_choose(t, slot, now);

    if (old) {
        record_table_remove(t, old);
    }
    return record_table_add(t, &key, slot, now);
}

/* Each row requests a number of records after a time; what each then has, and
 * how many were refused to it or taken from it. */
static const struct {
    uint16_t slot;
    int n, ms;
    uint32_t ann, bob;
    uint64_t ann_refused, bob_refused;
} asks[] = {
    { BOB, 100, 0, 0, 64, 0, 36 },
    /* A user with more than the share gives up those in use, too. */
    { ANN, 20, 0, 20, 44, 0, 56 },
    { BOB, 20, 0, 20, 44, 0, 76 },
    { ANN, 20, 0, 32, 32, 8, 88 },
    /* And then each user only its own idle ones. */
    { BOB, 10, IDLE_MS, 32, 32, 8, 98 },
    { ANN, 10, 0, 32, 32, 18, 98 },
};

UNIT_TEST(each_job_has_its_share)
{
    struct record_table t;
    uint64_t now = IDLE_MS * MS;
    uint32_t id = 0;

    record_table_init(&t, sizeof(struct record), N);
    for (size_t i = 0; i < N_ELEMENTS(asks); i++) {
        now += asks[i].ms * MS;
        for (int k = 0; k < asks[i].n; k++) {
            now += MS;
            ask(&t, id++, asks[i].slot, now);
        }
        assert_int_equal(t.users[ANN].n, asks[i].ann);
        assert_int_equal(t.users[BOB].n, asks[i].bob);
        assert_int_equal(record_table_refused(&t, ANN), asks[i].ann_refused);
        assert_int_equal(record_table_refused(&t, BOB), asks[i].bob_refused);
    }
    record_table_forget(&t, ANN);
    assert_int_equal(record_table_refused(&t, ANN), 0);
    record_table_uninit(&t);
}

/* What is in use stays: of a job with its share, the other records go. */
UNIT_TEST(the_idle_ones_go_first)
{
    struct record *used[8], *r;
    struct record_table t;
    uint64_t now = MS;

    record_table_init(&t, sizeof(struct record), N);
    for (uint32_t i = 0; i < N; i++) {
        r = ask(&t, i, BOB, now);
        used[i / 8] = i % 8 ? used[i / 8] : r;
    }
    now += IDLE_MS * MS;
    for (uint32_t i = 0; i < N; i++) {
        for (int k = 0; k < 8; k++) {
            used[k]->last = now;
        }
        assert_non_null(r = ask(&t, N + i, BOB, now));
        r->last = 0;
    }
    for (uint32_t i = 0; i < N; i += 8) {
        struct shim_flow_key key = key_of(i);

        assert_ptr_equal(record_table_find(&t, &key), used[i / 8]);
    }
    record_table_uninit(&t);
}

/* Jobs come, change and go: the table finds what it has, and nothing else. */
UNIT_TEST(records_are_found_until_they_are_removed)
{
    struct record *has[1000] = { NULL };
    uint32_t numbers[1000], n = 0;
    struct record_table t;

    srandom(7);
    record_table_init(&t, sizeof(struct record), N);
    for (uint64_t now = MS; now < 20000 * MS; now += MS) {
        uint32_t i = random() % N_ELEMENTS(has);
        struct shim_flow_key key = key_of(i);
        struct record *r = record_table_find(&t, &key);

        assert_ptr_equal(r, has[i] && has[i]->number == numbers[i] ? has[i]
                                                                   : NULL);
        if (!r && (r = ask(&t, i, random() % 5, now))) {
            has[i] = r;
            numbers[i] = r->number;
        } else if (r && random() % 4) {
            record_table_move(&t, r, random() % 5);
        } else if (r) {
            record_table_remove(&t, r);
        }
    }
    for (uint32_t i = 0; i < N; i++) {
        struct record *r = record_table_next(&t);

        n += r != NULL;
        if (r) {
            record_table_remove(&t, r);
        }
    }
    assert_int_equal(t.shares.n, 0);
    assert_int_equal(t.shares.n_users, 0);
    assert_true(n > N / 2);
    record_table_uninit(&t);
}

/* Bob begins 1,200 connections, to one host or each to another; they all end
 * in the latter case. */
static void
fill(struct world *w, bool many_hosts)
{
    for (int i = 0; i < 1200; i++) {
        struct packet_spec spec = world_spec(w, SENDER, 100, SEGMENT_SYN);
        struct cc_packet p;

        spec.from_port = 10000 + i;
        spec.from = many_hosts ? 10 + i / 240 : 2;
        spec.to = many_hosts ? 3 + i % 240 : 3;
        for (int end = 0; end <= many_hosts; end++) {
            spec.flags = end ? SEGMENT_RST : SEGMENT_SYN;
            packet_make(&p, &spec);
            world_leave(w, SENDER, &p, BOB);
        }
        for (int k = 0; many_hosts && i % 50 == 0 && k < 12; k++) {
            world_poll(w, 100 * MS);
        }
    }
}

/* What is of no job, here Ann's, has a share like a job. */
UNIT_TEST(a_full_table_ends_no_grants)
{
    for (int many_hosts = 0; many_hosts < 2; many_hosts++) {
        struct shim_slot row = { .slot = BOB, .level = 3 };
        struct world *w;

        world_set_up(state);
        w = *state;
        assert_int_equal(job_slots_set(w->sides[SENDER].slots, &row), 0);
        fill(w, many_hosts);
        assert_true(cc_refused(w->sides[SENDER].cc, BOB) > 600);
        world_open(w, 1);
        world_bulk(w, 1, 50, GAP, NULL);
        assert_true(world_stats(w, SENDER).cc_grants_taken > 0);
        assert_int_equal(cc_refused(w->sides[SENDER].cc, 0), 0);
        cc_forget(w->sides[SENDER].cc, BOB);
        assert_int_equal(cc_refused(w->sides[SENDER].cc, BOB), 0);
        world_tear_down(state);
    }
}

/* Connections of a job that has ended are of no job. */
WORLD_TEST(a_job_that_ends_leaves_no_records)
{
    struct shim_slot row = { .slot = BOB, .level = 3 };
    struct cc *cc = w->sides[SENDER].cc;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(job_slots_set(w->sides[SENDER].slots, &row), 0);
        fill(w, false);
        assert_int_equal(cc_refused(cc, BOB), 1200 - 64);
        assert_int_equal(job_slots_clear(w->sides[SENDER].slots, BOB), 0);
        cc_forget(cc, BOB);
        for (int k = 0; k < 62; k++) {
            world_poll(w, 1000 * MS);
        }
    }
}
