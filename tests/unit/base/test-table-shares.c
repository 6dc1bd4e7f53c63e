/* SPDX-License-Identifier: Apache-2.0 */

#include "base/shares.h"
#include "tests/unit/unit-test.h"

#define ASKER 0 /* User of the new entry, in a choice. */

/* Each row is a full table of 12 entries: what each user has, which user
 * offers an entry and whether it is idle (a capital letter: not), and whose
 * goes.  Later offers were idle longer. */
static const struct {
    uint32_t has[3];
    const char *offers;
    int goes;    /* Index of an offer, -1: the new entry is refused. */
    int refused; /* User of the refusal, or -1. */
} choices[] = {
    /* The user with most gives up one, idle or not. */
    { { 0, 12, 0 }, "B", 0, 1 },
    { { 1, 2, 9 }, "bC", 1, 2 },
    { { 1, 5, 6 }, "bC", 1, 2 },
    { { 1, 6, 5 }, "BbcC", 1, 1 },
    { { 1, 6, 5 }, "bbb", 2, 1 },
    /* A user with no more than the share does not. */
    { { 0, 4, 8 }, "b", -1, 0 },
    { { 3, 4, 5 }, "b", -1, 0 },
    { { 3, 4, 5 }, "bc", 1, 2 },
    /* A user that would then have less than the other does not either. */
    { { 4, 3, 5 }, "bC", -1, 0 },
    { { 5, 1, 6 }, "bC", -1, 0 },
    { { 4, 0, 8 }, "C", 0, 2 },
    /* A user with the share gives up one of its own, if it is idle. */
    { { 6, 0, 6 }, "aC", 0, 0 },
    { { 9, 3, 0 }, "bAaa", 3, 0 },
    { { 9, 3, 0 }, "bA", -1, 0 },
    { { 12, 0, 0 }, "A", -1, 0 },
    /* Or an idle one of another user that has about as many. */
    { { 6, 5, 1 }, "b", 0, 1 },
    { { 6, 5, 1 }, "ab", 1, 1 },
    { { 6, 5, 1 }, "ba", 1, 0 },
    { { 6, 5, 1 }, "B", -1, 0 },
    /* Below it he may, which is no refusal. */
    { { 2, 4, 6 }, "ab", 0, -1 },
    { { 2, 4, 6 }, "abc", 2, 2 },
    { { 2, 4, 6 }, "Ab", -1, 0 },
    { { 0, 12, 0 }, "", -1, 0 },
};

UNIT_TEST(chooses_by_share)
{
    for (size_t i = 0; i < N_ELEMENTS(choices); i++) {
        struct shares s = { .size = 12 };
        struct shares_user users[3] = { { .n = 0 } };
        struct shares_entry old[8];
        int n = strlen(choices[i].offers);

        for (int u = 0; u < 3; u++) {
            for (uint32_t k = 0; k < choices[i].has[u]; k++) {
                shares_take(&s, &users[u]);
            }
        }
        assert_true(shares_full(&s));
        for (int k = 0; k < n; k++) {
            char c = choices[i].offers[k];

            old[k] = (struct shares_entry){ &users[(c | 32) - 'a'], 100 - k,
                                            c >= 'a' };
        }
        if (shares_choose(&s, &users[ASKER], old, n) != choices[i].goes) {
            fail_msg("row %zu: another entry goes", i);
        }
        for (int u = 0; u < 3; u++) {
            assert_int_equal(users[u].n_refused, u == choices[i].refused);
        }
    }
}

/* A table with bounded probes: places of eight for each hash, which the users
 * do not know. */
#define N_BUCKETS 1024
#define N_WAYS 8
#define N_USERS 16

struct table {
    struct shares shares;
    struct shares_user users[N_USERS];
    struct shares_user *places[N_BUCKETS][N_WAYS]; /* NULL: free. */
    uint64_t random;
};

static uint32_t
draw(struct table *t, uint32_t n)
{
    t->random = t->random * 6364136223846793005 + 1442695040888963407;
    return (t->random >> 33) % n;
}

/* Adds an entry of 'user'.  Returns false if it was refused. */
static bool
add(struct table *t, struct shares_user *user)
{
    struct shares_user **places = t->places[draw(t, N_BUCKETS)];
    struct shares_entry old[N_WAYS];
    uint32_t share = shares_of(&t->shares, user);
    int way = 0;

    while (way < N_WAYS && places[way]) {
        old[way] =
            (struct shares_entry){ places[way], draw(t, 1000), draw(t, 2) };
        way++;
    }
    if (way == N_WAYS) {
        way = shares_choose(&t->shares, user, old, N_WAYS);
        if (way < 0) {
            return false;
        }
        assert_true(places[way] == user || places[way]->n > share);
        shares_drop(&t->shares, places[way]);
    }
    places[way] = user;
    shares_take(&t->shares, user);
    return true;
}

/* Hogs fill the table; the others take less than their share, lose nothing and
 * are not refused. */
UNIT_TEST(below_the_share_nobody_loses)
{
    for (int n_hogs = 1; n_hogs < N_USERS; n_hogs++) {
        static struct table t;
        uint32_t has[N_USERS] = { 0 }, all = 0;

        t = (struct table){ .shares.size = N_BUCKETS, .random = n_hogs };
        for (int round = 0; round < 100000; round++) {
            int u = draw(&t, 100) ? draw(&t, n_hogs)
                                  : n_hogs + draw(&t, N_USERS - n_hogs);

            if (u < n_hogs) {
                add(&t, &t.users[u]);
            } else if (has[u] < N_BUCKETS / N_USERS) {
                assert_true(add(&t, &t.users[u]));
                assert_int_equal(t.users[u].n, ++has[u]);
            }
        }
        for (int u = 0; u < N_USERS; u++) {
            all += t.users[u].n;
            assert_true(u < n_hogs ? t.users[u].n_refused > 1000
                                   : t.users[u].n_refused == 0
                                         && t.users[u].n == has[u]);
        }
        assert_int_equal(all, t.shares.n);
        assert_int_equal(t.shares.n_users, N_USERS);
    }
}

/* A table that grows: hogs first, then each user gets its share. */
UNIT_TEST(a_full_table_admits_shares)
{
    struct shares s = { .size = 100 };
    struct shares_user users[10] = { { .n = 0 } };
    double most = 0;

    for (int u = 0; u < 10; u++) {
        most += 100. / (u + 1);
        while (shares_admit(&s, &users[u])) {
        }
        assert_int_equal(users[u].n, 100 / (u + 1));
        assert_int_equal(users[u].n_refused, 1);
        assert_true(s.n <= most);
    }
    shares_drop(&s, &users[9]);
    assert_false(shares_admit(&s, &users[0]));
    assert_true(shares_admit(&s, &users[9]));
}

UNIT_TEST(a_user_who_leaves_has_no_share)
{
    struct shares s = { .size = 100 };
    struct shares_user a = { .n = 0 }, b = { .n = 0 };

    assert_int_equal(shares_of(&s, &a), 100);
    shares_take(&s, &a);
    assert_int_equal(shares_of(&s, &a), 100);
    assert_int_equal(shares_of(&s, &b), 50);
    shares_take(&s, &b);
    assert_int_equal(shares_of(&s, &a), 50);
    shares_drop(&s, &a);
    assert_int_equal(shares_of(&s, &b), 100);
    assert_false(shares_full(&s));
}
