/* SPDX-License-Identifier: Apache-2.0 */

/* The groups that Prague's smart generator makes. */

#include <stdint.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/data/seeded.h"
#include "trainer/gossip/group-generator.h"

#define N 8
#define MAX_GROUPS 64

static const bool none[N];
static const int alone[N] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static const int pairs[N] = { 0, 0, 1, 1, 2, 2, 3, 3 };

/* The groups of one request. */
static struct {
    int n, sizes[MAX_GROUPS], members[MAX_GROUPS][N];
    bool more[MAX_GROUPS][N];
} groups;

static void
keep(void *aux, const int members[], int n, const bool more[])
{
    assert_true(groups.n < MAX_GROUPS && n >= 1 && n <= N);
    memcpy(groups.members[groups.n], members, n * sizeof *members);
    memcpy(groups.more[groups.n], more, n * sizeof *more);
    groups.sizes[groups.n++] = n;
}

static void
request(struct group_generator *g, int from, uint64_t n_finished,
        struct seeded *random)
{
    groups.n = 0;
    group_generator_request(g, from, n_finished, none, random, keep, NULL);
}

/* Counts the groups with peer 'i' after which no other follows. */
static int
count_slots(int i)
{
    int n = 0;

    for (int k = 0; k < groups.n; k++) {
        for (int m = 0; m < groups.sizes[k]; m++) {
            n += groups.members[k][m] == i && !groups.more[k][m];
        }
    }
    return n;
}

UNIT_TEST(a_request_divides_all_idle_peers_without_overlap)
{
    struct group_generator g;
    struct seeded random;

    seeded_init(&random, 1, 1);
    group_generator_init(&g, N, alone, 4, 4);
    request(&g, 2, 0, &random);
    assert_int_equal(groups.n, 2);
    assert_true(groups.sizes[0] == 4 && groups.sizes[1] == 4);
    for (int i = 0; i < N; i++) {
        assert_int_equal(count_slots(i), 1);
    }
    /* The others have their groups in their buffers. */
    for (int i = 0; i < N; i++) {
        if (i != 2) {
            request(&g, i, 0, &random);
            assert_int_equal(groups.n, 0);
        }
    }
}

UNIT_TEST(heads_take_a_mean_before_their_machines)
{
    struct group_generator g;
    struct seeded random;

    seeded_init(&random, 1, 2);
    group_generator_init(&g, N, pairs, 4, 4);
    request(&g, 5, 0, &random);
    assert_int_equal(groups.n, 5);
    assert_int_equal(groups.sizes[0], 4);
    for (int m = 0; m < 4; m++) {
        assert_true(groups.more[0][m]);
        for (int k = 0; k < m; k++) {
            assert_int_not_equal(pairs[groups.members[0][m]],
                                 pairs[groups.members[0][k]]);
        }
    }
    for (int k = 1; k < 5; k++) {
        assert_int_equal(groups.sizes[k], 2);
        assert_int_equal(pairs[groups.members[k][0]],
                         pairs[groups.members[k][1]]);
        assert_false(groups.more[k][0] || groups.more[k][1]);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(count_slots(i), 1);
    }
}

/* Peer 7 finishes the first group and then is slow. */
UNIT_TEST(a_slow_peer_is_left_out)
{
    struct group_generator g;
    struct seeded random;
    bool included = false;

    seeded_init(&random, 1, 3);
    group_generator_init(&g, N, alone, 8, 4);
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < N - 1; i++) {
            request(&g, i, round, &random);
            if (!i) {
                included = count_slots(N - 1);
            }
        }
        if (!round) {
            request(&g, N - 1, 0, &random);
        }
        /* It is asked for once more, at most 3 requests behind. */
        assert_true(included == (round < 2));
    }
    /* It comes back, and goes on with the group in its buffer. */
    request(&g, N - 1, 1, &random);
    assert_int_equal(groups.n, 0);
    request(&g, N - 1, 2, &random);
    assert_true(groups.n > 0 && count_slots(N - 1));
}

/* Peers with random speeds always get what they ask for, whatever the
 * machines; and an empty buffer is never filled twice. */
UNIT_TEST(each_request_has_an_answer)
{
    static const int one[N];
    const int *const machines[] = { alone, pairs, one };

    for (int k = 0; k < 3; k++) {
        uint64_t finished[N] = { 0 }, slots[N] = { 0 };
        struct group_generator g;
        struct seeded random;

        seeded_init(&random, 2, k);
        group_generator_init(&g, N, machines[k], 3, 4);
        for (int step = 0; step < 2000; step++) {
            int from = seeded_below(&random, 1 + seeded_below(&random, N));

            request(&g, from, finished[from], &random);
            for (int i = 0; i < N; i++) {
                slots[i] += count_slots(i);
                assert_true(slots[i] <= finished[i] + 2);
            }
            finished[from]++;
            assert_true(slots[from] >= finished[from]);
        }
    }
}
