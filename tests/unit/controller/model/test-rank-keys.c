/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/model/rank-keys.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define MAX_JOBS 300

struct world {
    struct job all[MAX_JOBS], *jobs[MAX_JOBS];
    size_t n;
};

/* Updates keys, and checks that they are in order.  Returns how many jobs that
 * had a key have another one now. */
static size_t
update(struct world *w)
{
    uint32_t before[MAX_JOBS], last = 0;
    size_t changed = 0;

    for (size_t i = 0; i < w->n; i++) {
        before[i] = w->jobs[i]->key;
    }
    rank_keys_update(w->jobs, w->n);
    for (size_t i = 0; i < w->n; i++) {
        bool same = i && w->jobs[i]->rank == w->jobs[i - 1]->rank;

        assert_true(w->jobs[i]->key < RANK_KEYS_END);
        assert_true(same ? w->jobs[i]->key == last : w->jobs[i]->key > last);
        last = w->jobs[i]->key;
        changed += before[i] && before[i] != last;
    }
    return changed;
}

/* Each job has a rank of its own, by its place. */
static void
rank_by_place(struct world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        w->jobs[i]->rank = i;
    }
}

static void
insert(struct world *w, size_t at)
{
    assert_true(w->n < MAX_JOBS);
    memmove(&w->jobs[at + 1], &w->jobs[at], (w->n - at) * sizeof *w->jobs);
    w->jobs[at] = &w->all[w->n++];
    rank_by_place(w);
}

static void
init(struct world *w, size_t n)
{
    *w = (struct world){ .n = 0 };
    while (w->n < n) {
        insert(w, w->n);
    }
}

UNIT_TEST(a_job_that_comes_changes_no_other_key)
{
    static const size_t places[] = { 0, 5, 10 };
    struct world w;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        init(&w, 10);
        update(&w);
        insert(&w, places[i]);
        assert_int_equal(update(&w), 0);
    }
}

UNIT_TEST(a_job_that_moves_changes_its_own_key)
{
    struct world w;
    struct job *last;

    init(&w, 10);
    update(&w);
    last = w.jobs[9];
    memmove(&w.jobs[1], &w.jobs[0], 9 * sizeof *w.jobs);
    w.jobs[0] = last;
    rank_by_place(&w);
    assert_int_equal(update(&w), 1);
    assert_int_equal(update(&w), 0);
}

UNIT_TEST(jobs_of_one_rank_have_one_key)
{
    struct world w;

    init(&w, 4);
    w.jobs[1]->rank = w.jobs[2]->rank = 1;
    w.jobs[3]->rank = 2;
    assert_int_equal(update(&w), 0);

    /* Each gets a rank of its own, and one of them keeps the key. */
    rank_by_place(&w);
    assert_int_equal(update(&w), 1);
}

/* Where a gap is used up, all keys change, which is seldom. */
UNIT_TEST(gaps_that_are_used_up_are_made_again)
{
    struct world w;
    size_t renumbered = 0;

    init(&w, 2);
    update(&w);
    for (size_t i = 2; i < MAX_JOBS; i++) {
        insert(&w, 1);
        renumbered += update(&w) > 0;
    }
    assert_in_range(renumbered, 1, MAX_JOBS / 10);
}

/* A job that passes its neighbour changes one key, unless a gap is used up. */
UNIT_TEST(few_keys_change)
{
    enum { TURNS = 10000 };
    struct world w;
    size_t changed = 0;

    srandom(1);
    init(&w, MAX_JOBS);
    update(&w);
    for (int i = 0; i < TURNS; i++) {
        size_t k = 1 + random() % (MAX_JOBS - 1);
        struct job *job = w.jobs[k];

        w.jobs[k] = w.jobs[k - 1];
        w.jobs[k - 1] = job;
        rank_by_place(&w);
        changed += update(&w);
    }
    assert_in_range(changed, TURNS, 1.5 * TURNS);
}
