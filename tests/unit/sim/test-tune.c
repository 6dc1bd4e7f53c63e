/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/run/tune-space.h"
#include "sim/run/tune.h"
#include "sim/workload/workload-view.h"
#include "sim/workload/workload.h"

#define STAGE(MEMBERS) "{\"name\": \"p\", \"order\": \"stage\"" MEMBERS "}"

static struct policy *
read_policy(const char *text)
{
    struct policy *policy;
    char *error = policy_from_string("p.json", text, &policy);

    if (error) {
        fail_msg("%s", error);
    }
    return policy;
}

/* Adds a cojob that sends 'bytes' once over the link of 1 B/s. */
static struct workload_cojob *
add_coflow(struct workload *w, const char *name, double arrival, double bytes)
{
    struct workload_cojob *cojob = workload_add_cojob(w, name, 1, arrival);
    struct workload_job *job = workload_add_job(cojob, "j", 0);

    workload_add_transfer(job, 0, 1, bytes, 0, 0);
    workload_add_rung(w, cojob, 1, 1);
    return cojob;
}

/* Eight times a long coflow, and a short one just after it: to let the older
 * one go first is the worst that one can do. */
static struct workload *
long_and_short(void)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 1));

    for (int i = 0; i < 8; i++) {
        char name[8];

        snprintf(name, sizeof name, "l%d", i);
        add_coflow(w, name, 100 * i, 20);
        snprintf(name, sizeof name, "s%d", i);
        add_coflow(w, name, 100 * i + 1, 2);
    }
    return w;
}

static void
finds_better_numbers(void **state)
{
    struct policy *base = read_policy(STAGE(
        ", \"aging_s\": 0.01, \"guard_share\": 0"));
    struct workload *w = long_and_short();
    struct tune_options options = { .evaluations = 40 };
    struct tune_result r, again;

    tune(w, base, &options, &r);
    assert_true(r.better);
    assert_int_equal(r.n_cojobs[TUNE_TRAIN], 10);
    assert_int_equal(r.n_cojobs[TUNE_HELD_BACK], 6);
    assert_in_range(r.n_evaluations, 2, 40);
    /* 20 s and 21 s, or 22 s and 2 s. */
    assert_float_equal(r.base[TUNE_TRAIN].of[TUNE_MEAN_SCT], 20.5, 1e-6);
    assert_float_equal(r.base[TUNE_HELD_BACK].of[TUNE_MEAN_SCT], 20.5, 1e-6);
    assert_float_equal(r.tuned[TUNE_TRAIN].of[TUNE_MEAN_SCT], 12, 1e-6);
    assert_float_equal(r.tuned[TUNE_HELD_BACK].of[TUNE_MEAN_SCT], 12, 1e-6);
    assert_true(r.policy.aging_s > 0.01);
    /* What does not help is as it was. */
    assert_int_equal(r.policy.n_levels, 6);
    assert_int_equal(r.policy.order.improve_moves, 200000);
    assert_true(r.policy.order.improve_s == base->order.improve_s);

    tune(w, base, &options, &again);
    assert_int_equal(again.n_evaluations, r.n_evaluations);
    assert_true(again.policy.aging_s == r.policy.aging_s);
    workload_destroy(w);
    policy_destroy(base);
}

static void
leaves_alone_what_has_no_numbers(void **state)
{
    struct policy *base = read_policy("{\"name\": \"p\","
                                      " \"order\": \"fair\"}");
    struct workload *w = long_and_short();
    struct tune_options options = { .evaluations = 40 };
    struct tune_result r;

    tune(w, base, &options, &r);
    assert_false(r.better);
    assert_int_equal(r.n_evaluations, 1);
    assert_memory_equal(&r.policy, base, sizeof *base);
    workload_destroy(w);
    policy_destroy(base);
}

/* What is learnt from one part must hold on the other: here the short ones
 * of the second part come first anyway. */
static void
believes_only_what_holds_later(void **state)
{
    struct policy *base = read_policy(STAGE(
        ", \"aging_s\": 0.01, \"guard_share\": 0"));
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 1));
    struct tune_options options = { .evaluations = 40 };
    struct tune_result r;

    add_coflow(w, "l", 0, 20);
    add_coflow(w, "s", 1, 2);
    add_coflow(w, "t", 100, 2);
    tune(w, base, &options, &r);
    assert_true(r.tuned[TUNE_TRAIN].of[TUNE_MEAN_SCT]
                < r.base[TUNE_TRAIN].of[TUNE_MEAN_SCT] - 1);
    assert_false(r.better);
    workload_destroy(w);
    policy_destroy(base);
}

static void
ends_when_the_time_is_up(void **state)
{
    struct policy *base = read_policy(STAGE(""));
    struct workload *w = long_and_short();
    struct tune_options options = { .budget_s = 1e-9 };
    struct tune_result r;

    tune(w, base, &options, &r);
    assert_int_equal(r.n_evaluations, 1);
    workload_destroy(w);
    policy_destroy(base);
}

/* Whatever the knobs say, a policy reader accepts, and reads as it was. */
static void
knobs_make_policies(void **state)
{
    for (int kind = 0; kind < ORDER_N_KINDS; kind++) {
        char text[64];
        struct tune_space space;
        struct policy *base;

        snprintf(text, sizeof text, "{\"name\": \"p\", \"order\": \"%s\"}",
                 order_names[kind]);
        base = read_policy(text);
        tune_space_init(&space, base, true);
        assert_int_equal(!space.n, kind == ORDER_FAIR);
        for (double x = 0; x <= 1; x += 0.0625) {
            struct policy turned = *base, *read;
            char *rewritten;

            for (size_t k = 0; k < space.n; k++) {
                knob_set(&space.knobs[k], &turned, x);
            }
            rewritten = policy_rewrite(base, &turned, "q", "");
            read = read_policy(rewritten);
            for (size_t k = 0; k < space.n; k++) {
                assert_true(knob_value(&space.knobs[k], read)
                            == knob_value(&space.knobs[k], &turned));
            }
            policy_destroy(read);
            free(rewritten);
        }
        policy_destroy(base);
    }
}

static void
levels_have_no_knobs_where_they_are_not_served(void **state)
{
    struct policy *policy = read_policy("{\"name\": \"p\","
                                        " \"order\": \"tcf\"}");
    struct tune_space space;

    tune_space_init(&space, policy, true);
    assert_int_equal(space.n, 2);       /* Their number, fold; no guard. */
    tune_space_init(&space, policy, false);
    assert_int_equal(space.n, 0);
    policy_destroy(policy);
}

static void
knobs_stand_where_they_were_put(void **state)
{
    struct policy *policy = read_policy(STAGE(
        ", \"levels\": {\"dscp\": [40, 24, 8]}"));
    struct tune_space space;

    tune_space_init(&space, policy, true);
    for (size_t k = 0; k < space.n; k++) {
        const struct knob *knob = &space.knobs[k];
        double value;

        knob_set(knob, policy, 1);
        assert_true(knob_get(knob, policy) == 1);
        knob_set(knob, policy, 0);
        assert_true(knob_get(knob, policy) == 0);
        knob_set(knob, policy, 0.6);
        value = knob_value(knob, policy);
        knob_set(knob, policy, knob_get(knob, policy));
        assert_true(knob_value(knob, policy) == value);
    }
    assert_int_equal(policy->n_levels, policy->order.n_levels);
    assert_in_range(policy->n_levels, 1, 3);
    policy_destroy(policy);
}

static void
splits_by_arrival(void **state)
{
    static const double arrivals[] = { 5, 1, 4, 1, 3 };
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 1));
    struct workload *first, *rest;

    for (int i = 0; i < 5; i++) {
        char name[] = { 'a' + i, '\0' };

        add_coflow(w, name, arrivals[i], 1);
    }
    workload_view_split(w, 0.5, &first, &rest);
    assert_int_equal(first->n_cojobs, 3);
    assert_int_equal(first->n_stages, 3);
    assert_string_equal(first->cojobs[0].name, "b");
    assert_string_equal(first->cojobs[1].name, "d");
    assert_string_equal(first->cojobs[2].name, "e");
    assert_int_equal(rest->n_cojobs, 2);
    assert_string_equal(rest->cojobs[0].name, "c");
    assert_string_equal(rest->cojobs[1].name, "a");
    workload_view_destroy(first);
    workload_view_destroy(rest);
    workload_view_split(w, 1, &first, &rest);
    assert_int_equal(rest->n_cojobs, 1);
    workload_view_destroy(first);
    workload_view_destroy(rest);
    workload_destroy(w);
}

static void
a_policy_weighs_by_user_and_cojob(void **state)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 1));
    struct policy *plain = read_policy(STAGE(", \"guard_share\": 0"));
    struct policy *policy = read_policy(STAGE(
        ", \"guard_share\": 0, \"weights\": {\"users\": {\"ann\": 8},"
        " \"cojobs\": {\"a\": 2}}"));
    struct sim_result r;

    add_coflow(w, "a", 0, 1)->user = strdup("bob");
    add_coflow(w, "b", 0, 2)->user = strdup("ann");
    simulate_by_policy(w, plain, NULL, &r);
    assert_float_equal(r.mean, 2, 1e-6);        /* 1 s and 3 s. */
    sim_result_uninit(&r);
    simulate_by_policy(w, policy, NULL, &r);
    assert_float_equal(r.mean, 2.5, 1e-6);      /* 3 s and 2 s. */
    sim_result_uninit(&r);
    assert_true(w->cojobs[0].weight == 1);
    policy_destroy(plain);
    policy_destroy(policy);
    workload_destroy(w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_better_numbers),
        cmocka_unit_test(leaves_alone_what_has_no_numbers),
        cmocka_unit_test(believes_only_what_holds_later),
        cmocka_unit_test(ends_when_the_time_is_up),
        cmocka_unit_test(knobs_make_policies),
        cmocka_unit_test(levels_have_no_knobs_where_they_are_not_served),
        cmocka_unit_test(knobs_stand_where_they_were_put),
        cmocka_unit_test(splits_by_arrival),
        cmocka_unit_test(a_policy_weighs_by_user_and_cojob),
    };

    return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
