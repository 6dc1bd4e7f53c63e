/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-rows.h"
#include "controller/decide/decision-log.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static void
fill(struct decision_log *log, int n)
{
    for (int i = 1; i <= n; i++) {
        decision_log_append(log, DECISION_ORDER, "asha/0", "stagecoach",
                            "rank %d", i);
    }
}

static size_t
n_decisions(const struct decision_log *log, uint64_t after, size_t limit)
{
    struct json *json = decision_log_to_json(log, after, limit);
    const struct json *array = shash_find_data(json_object(json),
                                               "decisions");
    size_t n = json_array(array)->n;

    json_destroy(json);
    return n;
}

UNIT_TEST(test_empty)
{
    struct decision_log *log = decision_log_create(4);

    assert_null(decision_log_after(log, 0));
    assert_int_equal(decision_log_last(log), 0);
    assert_int_equal(n_decisions(log, 0, 10), 0);
    decision_log_destroy(log);
}

UNIT_TEST(test_reads_on_from_the_last_seen)
{
    struct decision_log *log = decision_log_create(4);
    const struct decision *d;

    fill(log, 3);
    d = decision_log_after(log, 1);
    assert_int_equal(d->id, 2);
    assert_string_equal(d->reason, "rank 2");
    assert_string_equal(d->subject, "asha/0");
    assert_string_equal(d->actor, "stagecoach");
    assert_null(decision_log_after(log, 3));
    decision_log_destroy(log);
}

/* Of ten decisions four are kept, and a client that saw the second misses
 * four. */
UNIT_TEST(test_keeps_the_last)
{
    struct decision_log *log = decision_log_create(4);

    fill(log, 10);
    assert_int_equal(decision_log_last(log), 10);
    assert_int_equal(decision_log_after(log, 2)->id, 7);
    assert_string_equal(decision_log_after(log, 2)->reason, "rank 7");
    assert_int_equal(decision_log_after(log, 8)->id, 9);
    decision_log_destroy(log);
}

/* A reader of the process before this one begins at the beginning. */
UNIT_TEST(test_id_of_the_future)
{
    struct decision_log *log = decision_log_create(4);

    fill(log, 2);
    assert_int_equal(decision_log_after(log, 77)->id, 1);
    assert_int_equal(decision_log_after(log, UINT64_MAX)->id, 1);
    assert_int_equal(n_decisions(log, 77, 10), 2);
    decision_log_destroy(log);
}

UNIT_TEST(test_limit_gives_the_newest)
{
    struct decision_log *log = decision_log_create(8);
    struct json *json, *first;

    fill(log, 6);
    assert_int_equal(n_decisions(log, 0, 100), 6);
    assert_int_equal(n_decisions(log, 4, 100), 2);
    assert_int_equal(n_decisions(log, 0, 0), 0);
    json = decision_log_to_json(log, 0, 2);
    first = json_array(shash_find_data(json_object(json),
                                       "decisions"))->elems[0];
    assert_int_equal(json_integer(shash_find_data(json_object(first), "id")),
                     5);
    assert_string_equal(json_string(shash_find_data(json_object(first),
                                                    "kind")), "order");
    json_destroy(json);
    decision_log_destroy(log);
}

/* Stages "a/0", "b/0", "c/0" in this order, the last one has the largest
 * demand. */
static void
log_moves(struct decision_log *log, const int *old_ranks)
{
    char port[] = "h0.tx", a[] = "a", b[] = "b", c[] = "c";
    char *ports[] = { port };
    char *names[] = { a, b, c };
    struct stage_row stages[3];
    struct decide_rows rows = {
        .stages = stages, .n_stages = 3, .ports = ports, .n_ports = 1,
    };

    for (int k = 0; k < 3; k++) {
        stages[k] = (struct stage_row) {
            .cojob = names[k], .weight = 1, .remaining = k + 1,
            .bottleneck = k < 2 ? 0 : -1,
        };
    }
    set_program_name("stagecoach-controller");
    decide_rows_log_changes(&rows, old_ranks, log);
}

/* New stages are placed; one that overtakes is; one that only moved up behind
 * one that ended is not. */
UNIT_TEST(test_moves)
{
    struct decision_log *log = decision_log_create(8);
    const struct decision *d;

    log_moves(log, (int[]) { 1, 2, 3 });
    assert_null(decision_log_after(log, 0));

    log_moves(log, (int[]) { 1, 0, -1 });
    d = decision_log_after(log, 0);
    assert_string_equal(d->subject, "a/0");
    assert_string_equal(d->reason, "rank 0 of 3, now before b/0: it needs "
                        "1.0 s of h0.tx, weight 1");
    d = decision_log_after(log, 1);
    assert_string_equal(d->subject, "c/0");
    assert_string_equal(d->reason, "rank 2 of 3, new: its traffic is unknown "
                        "so far");
    assert_null(decision_log_after(log, 2));
    decision_log_destroy(log);
}
