/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/run/tune-space.h"
#include "sim/run/tune.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload-view.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define STAGE(MEMBERS) "{\"name\": \"p\", \"order\": \"stage\"" MEMBERS "}"

static struct policy *
read_policy(const char *text)
{
    struct policy *policy;

    assert_no_error(policy_from_string("p.json", text, &policy));
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

/* Tunes on a set of single workloads. */
static void
tune_on(const struct workload *train, const struct workload *held_back,
        const struct policy *base, const struct tune_options *options,
        struct tune_result *r)
{
    const struct workload *workloads[] = { train, held_back };
    struct tune_set sets[TUNE_N_PARTS] = {
        { 1, &workloads[0] }, { 1, &workloads[1] },
    };

    tune(sets, base, options, r);
}

#define OLD_FIRST                                  \
    STAGE(", \"aging_s\": 0.01, \"min_share\": 0," \
          " \"hysteresis\": 0")

UNIT_TEST(finds_better_numbers)
{
    struct policy *base = read_policy(OLD_FIRST);
    struct workload *w = long_and_short();
    struct tune_options options = { .evaluations = 200 };
    struct tune_result r, again;

    tune_on(w, w, base, &options, &r);
    assert_true(r.better);
    assert_in_range(r.n_simulations, 2, 220);
    /* 20 s and 21 s, or 22 s and 2 s. */
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        assert_float_equal(r.base[p].of[TUNE_MEAN_SCT], 20.5, 1e-6);
        assert_float_equal(r.tuned[p].of[TUNE_MEAN_SCT], 12, 1e-6);
        assert_float_equal(r.gain[p][TUNE_MEAN_SCT].mean, 8.5 / 20.5, 1e-6);
    }
    assert_true(r.policy.aging_s != 0.01);
    /* What does not help is as it was. */
    assert_int_equal(r.policy.n_levels, 6);
    assert_int_equal(r.policy.order.improve_moves, 200000);
    assert_true(r.policy.order.improve_s == base->order.improve_s);

    tune_on(w, w, base, &options, &again);
    assert_int_equal(again.n_simulations, r.n_simulations);
    assert_true(again.policy.aging_s == r.policy.aging_s);
    workload_destroy(w);
    policy_destroy(base);
}

/* A budget of one simulation tries no knob on its own. */
UNIT_TEST(a_knob_that_was_not_tried_is_not_ineffective)
{
    struct policy *base = read_policy("{\"name\": \"p\", \"order\":"
                                      " \"stage\"}");
    struct workload *w = workload_create("stage", sim_fabric_create(2, 1e6));
    struct tune_options options = { .evaluations = 1 };
    bool ineffective = false;
    struct tune_result r;

    add_coflow(w, "l", 0, 300e6);
    add_coflow(w, "s", 1, 20e6);
    tune_on(w, w, base, &options, &r);
    assert_true(r.space.n > 0);
    for (size_t k = 0; k < r.space.n; k++) {
        assert_int_equal(r.effects[k].n, 0);
        assert_false(r.effects[k].ineffective);
    }
    options.evaluations = 1000;
    tune_on(w, w, base, &options, &r);
    for (size_t k = 0; k < r.space.n; k++) {
        ineffective |= r.effects[k].ineffective;
        assert_true(r.effects[k].ineffective == !r.effects[k].n);
    }
    assert_true(ineffective);
    workload_destroy(w);
    policy_destroy(base);
}

/* The optimum needs two knobs: of many workloads that few are tried at first
 * must not matter. */
UNIT_TEST(finds_an_optimum_by_halving)
{
    struct policy *base = read_policy("{\"name\": \"p\", \"order\":"
        " \"dclas\", \"min_share\": 0, \"dclas\": {\"first_mb\": 0.001,"
        " \"queues\": 2}}");
    struct workload *w[12];
    struct tune_set sets[TUNE_N_PARTS] = {
        { 9, (const struct workload **) w },
        { 3, (const struct workload **) &w[9] },
    };
    struct tune_options options = { .evaluations = 2000 };
    struct tune_result r;
    const struct tune_effect *e = r.effects;

    for (int i = 0; i < 12; i++) {
        w[i] = workload_create("stage", sim_fabric_create(2, 1e6));
        add_coflow(w[i], "l", 0, 300e6);
        add_coflow(w[i], "s", 1 + 5 * i, 20e6);
        add_coflow(w[i], "m", 2 + 5 * i, 60e6);
    }
    tune(sets, base, &options, &r);
    assert_true(r.better);
    for (size_t k = 0; k < r.space.n; k++) {
        assert_true(r.gain[TUNE_TRAIN][TUNE_MEAN_SCT].mean
                    >= e[k].gain - 0.0011 * r.space.n);
        if (!strcmp(e[k].knob->name, "/dclas/first_mb")) {
            assert_int_equal(e[k].n, 9);
            assert_true(e[k].gain > 0.05 && e[k].held_back.low > 0);
            assert_int_equal(e[k].held_back.n, 3);
        }
    }
    for (int i = 0; i < 12; i++) {
        workload_destroy(w[i]);
    }
    policy_destroy(base);
}

UNIT_TEST(leaves_alone_what_has_no_numbers)
{
    struct policy *base = read_policy("{\"name\": \"p\","
                                      " \"order\": \"fair\"}");
    struct workload *w = long_and_short();
    struct tune_options options = { .evaluations = 40 };
    struct tune_result r;

    tune_on(w, w, base, &options, &r);
    assert_false(r.better);
    assert_int_equal(r.n_simulations, 2);
    assert_memory_equal(&r.policy, base, sizeof *base);
    workload_destroy(w);
    policy_destroy(base);
}

/* What is learnt from one part must hold on the other, where there is nothing
 * to order. */
UNIT_TEST(believes_only_what_is_held_back)
{
    struct policy *base = read_policy(OLD_FIRST);
    struct workload *w = long_and_short();
    struct workload *other = workload_create("coflow",
                                             sim_fabric_create(2, 1));
    struct tune_options options = { .evaluations = 200 };
    struct tune_result r;

    add_coflow(other, "t", 100, 2);
    tune_on(w, other, base, &options, &r);
    assert_true(r.gain[TUNE_TRAIN][TUNE_MEAN_SCT].mean > 0.4);
    assert_true(r.gain[TUNE_HELD_BACK][TUNE_MEAN_SCT].mean == 0);
    assert_float_equal(r.base[TUNE_HELD_BACK].of[TUNE_MEAN_SCT], 2, 1e-6);
    assert_false(r.better);
    workload_destroy(w);
    workload_destroy(other);
    policy_destroy(base);
}

UNIT_TEST(leaves_what_is_kept)
{
    static const char *kept[] = { "/aging_s" };
    struct policy *base = read_policy(OLD_FIRST);
    struct workload *w = long_and_short();
    struct tune_options options = {
        .evaluations = 200, .kept = kept, .n_kept = 1,
    };
    struct tune_space space;
    struct tune_result r;

    tune_on(w, w, base, &options, &r);
    assert_true(r.policy.aging_s == 0.01);
    assert_string_equal(r.effects[0].knob->name, "/aging_s");
    assert_true(r.effects[0].gain > 0.4);

    tune_space_init(&space, base, true);
    assert_false(tune_space_keep(&space, "aging_s"));
    workload_destroy(w);
    policy_destroy(base);
}

UNIT_TEST(ends_when_the_time_is_up)
{
    struct policy *base = read_policy(STAGE(""));
    struct workload *w = long_and_short();
    struct tune_options options = { .budget_s = 1e-9 };
    struct tune_result r;

    tune_on(w, w, base, &options, &r);
    assert_int_equal(r.n_simulations, 2);
    workload_destroy(w);
    policy_destroy(base);
}

/* Whatever the knobs say, a policy reader accepts, and reads as it was. */
UNIT_TEST(knobs_make_policies)
{
    for (int kind = 0; kind < ORDER_N_KINDS; kind++) {
        char text[64];
        struct tune_space space;
        struct policy *base;

        snprintf(text, sizeof text, "{\"name\": \"p\", \"order\": \"%s\"}",
                 order_names[kind]);
        base = read_policy(text);
        tune_space_init(&space, base, true);
        assert_int_equal(!space.n, order_is_equal(kind));
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

UNIT_TEST(levels_have_no_knobs_where_they_are_not_served)
{
    struct policy *policy = read_policy("{\"name\": \"p\","
                                        " \"order\": \"tcf\"}");
    struct tune_space space;

    tune_space_init(&space, policy, true);
    assert_int_equal(space.n, 3); /* Their number, fold, minimum share. */
    tune_space_init(&space, policy, false);
    assert_int_equal(space.n, 0);
    policy_destroy(policy);
}

UNIT_TEST(knobs_stand_where_they_were_put)
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

/* Returns the mean of generated searches under 'order' with 'members'. */
static double
mean_with(const char *order, const char *members, enum sim_service service)
{
    struct generate_options generate;
    struct workload *w;
    struct policy *policy;
    struct sim_options options;
    struct sim_result r;
    char text[256];

    assert_null(generate_options_parse("5,hosts=6,cojobs=5,jobs=3",
                                       &generate));
    w = workload_generate(&generate);
    snprintf(text, sizeof text, "{\"name\": \"p\", \"order\": \"%s\", %s}",
             order, members);
    policy = read_policy(text);
    options = sim_policy_options(policy);
    options.service = service;
    simulate_by_policy(w, policy, &options, &r);
    sim_result_uninit(&r);
    policy_destroy(policy);
    workload_destroy(w);
    return r.mean;
}

/* Members that the controller uses have an effect in a simulation, too. */
UNIT_TEST(a_simulation_uses_the_members)
{
    static const struct {
        const char *order, *a, *b;
    } rows[] = {
        { "stage", "\"hysteresis\": 0", "\"hysteresis\": 0.5" },
        { "sincronia", "\"hysteresis\": 0", "\"hysteresis\": 0.5" },
        { "stage", "\"refresh_ms\": 20", "\"refresh_ms\": 60000" },
        { "work", "\"slack_share\": 0", "\"slack_share\": 1" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(mean_with(rows[i].order, rows[i].a, SIM_SERVICE_LEVELS)
                    != mean_with(rows[i].order, rows[i].b,
                                 SIM_SERVICE_LEVELS));
    }
    /* The exact order has no hysteresis. */
    assert_true(mean_with("stage", rows[0].a, SIM_SERVICE_EXACT)
                == mean_with("stage", rows[0].b, SIM_SERVICE_EXACT));
}

UNIT_TEST(splits_by_arrival)
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

UNIT_TEST(a_policy_weighs_by_user_and_cojob)
{
    struct workload *w = workload_create("coflow", sim_fabric_create(2, 1));
    struct policy *plain = read_policy(STAGE(", \"min_share\": 0"));
    struct policy *policy = read_policy(
        STAGE(", \"min_share\": 0, \"weights\": {\"users\": {\"ann\": 8},"
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
