/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "sim/workload/workload-generate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define SEEDS 30

static struct workload *
generate(const char *text)
{
    struct generate_options options;

    assert_no_error(generate_options_parse(text, &options));
    return workload_generate(&options);
}

static void
assert_same_job(const struct workload_job *a, const struct workload_job *b)
{
    assert_string_equal(a->name, b->name);
    assert_true(a->compute == b->compute);
    assert_memory_equal(&a->curve, &b->curve, sizeof a->curve);
    assert_int_equal(a->n_transfers, b->n_transfers);
    for (size_t i = 0; i < a->n_transfers; i++) {
        assert_int_equal(a->transfers[i].src, b->transfers[i].src);
        assert_int_equal(a->transfers[i].dst, b->transfers[i].dst);
        assert_true(a->transfers[i].bytes == b->transfers[i].bytes);
    }
}

UNIT_TEST(makes_the_same_of_a_seed)
{
    struct workload *a = generate("7");
    struct workload *b = generate("7");
    struct workload *c = generate("8");

    assert_int_equal(a->n_cojobs, b->n_cojobs);
    for (size_t i = 0; i < a->n_cojobs; i++) {
        const struct workload_cojob *x = &a->cojobs[i], *y = &b->cojobs[i];

        assert_true(x->arrival == y->arrival);
        assert_string_equal(x->user, y->user);
        assert_int_equal(x->n_jobs, y->n_jobs);
        for (size_t j = 0; j < x->n_jobs; j++) {
            assert_same_job(&x->jobs[j], &y->jobs[j]);
        }
    }
    assert_true(a->cojobs[0].jobs[0].transfers[0].bytes
                != c->cojobs[0].jobs[0].transfers[0].bytes);
    workload_destroy(a);
    workload_destroy(b);
    workload_destroy(c);
}

static void
assert_between(double x, double min, double max)
{
    if (!(x >= min && x <= max)) {
        fail_msg("%g is not from %g to %g", x, min, max);
    }
}

/* The model's bytes are known by what a job sends at most: a ring of n sends 2
 * (n - 1) / n of them from each host, a server 1 / n of them to each of at
 * most seven workers. */
static void
check_job(const struct workload *w, const struct workload_job *job)
{
    double alone = workload_exchange_time(job, w->fabric);

    assert_between(job->curve.final, 0.5, 0.99);
    assert_between(workload_curve_at(&job->curve, 0), 0, 0.5);
    assert_between(job->compute / (job->compute + alone), 0, 0.85);
    assert_between(job->devices, 1, 8);
    assert_true(job->n_transfers > 0);
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        assert_between(t->src, 0, w->fabric->n_hosts - 1);
        assert_between(t->dst, 0, w->fabric->n_hosts - 1);
        assert_int_not_equal(t->src, t->dst);
        assert_between(t->bytes, 0.5e6 / 3, 512e6 * 2);
    }
}

static void
check_cojob(const struct workload *w, const struct workload_cojob *cojob)
{
    assert_between(cojob->n_jobs, 8, 24);
    assert_int_equal(cojob->n_rungs, 3);
    for (size_t r = 1; r < cojob->n_rungs; r++) {
        const struct workload_rung *rung = &cojob->rungs[r];

        assert_int_equal(rung->n_jobs, (rung[-1].n_jobs + 1) / 2);
        assert_true(rung->iterations > rung[-1].iterations);
    }
    for (size_t j = 0; j < cojob->n_jobs; j++) {
        check_job(w, &cojob->jobs[j]);
    }
}

UNIT_TEST(stays_in_the_ranges)
{
    for (int seed = 0; seed < SEEDS; seed++) {
        struct workload *w;
        char text[16];

        snprintf(text, sizeof text, "%d", seed);
        w = generate(text);
        assert_between(w->fabric->n_hosts, 8, 64);
        assert_between(w->n_cojobs, 4, 32);
        for (size_t i = 0; i < w->n_cojobs; i++) {
            check_cojob(w, &w->cojobs[i]);
        }
        workload_destroy(w);
    }
}

/* The job that goes on has the best metric where the others stopped. */
UNIT_TEST(keeps_the_best)
{
    struct workload *w = generate("3");

    for (size_t i = 0; i < w->n_cojobs; i++) {
        const struct workload_cojob *cojob = &w->cojobs[i];

        for (size_t r = 0; r + 1 < cojob->n_rungs; r++) {
            size_t kept = cojob->rungs[r + 1].n_jobs;
            double k = cojob->rungs[r].iterations;

            for (size_t j = kept; j < cojob->rungs[r].n_jobs; j++) {
                for (size_t best = 0; best < kept; best++) {
                    assert_true(
                        workload_curve_at(&cojob->jobs[best].curve, k)
                        >= workload_curve_at(&cojob->jobs[j].curve, k));
                }
            }
        }
    }
    workload_destroy(w);
}

UNIT_TEST(obeys_the_options)
{
    struct workload *w = generate("1,hosts=4,cojobs=3,jobs=5,rungs=2,"
                                  "placement=ring,compute=0.5,load=0.1");
    struct workload *denser = generate("1,hosts=4,cojobs=3,jobs=5,rungs=2,"
                                       "placement=ring,compute=0.5,load=0.2");
    const struct workload_job *job = &w->cojobs[2].jobs[4];

    assert_int_equal(w->fabric->n_hosts, 4);
    assert_int_equal(w->n_cojobs, 3);
    assert_int_equal(w->n_stages, 6);
    assert_int_equal(w->cojobs[1].n_jobs, 5);
    assert_int_equal(w->cojobs[1].rungs[1].n_jobs, 3);
    assert_int_equal(job->n_phases, 1);
    assert_int_equal(job->n_transfers, job->devices);
    assert_between(job->compute / workload_exchange_time(job, w->fabric),
                    0.8, 1.2);
    assert_between(w->cojobs[2].arrival / denser->cojobs[2].arrival, 2, 3);
    workload_destroy(w);
    workload_destroy(denser);
}

static const struct {
    const char *text, *error;
} mistakes[] = {
    { "", "generate: seed \"\" is not an integer from 0 to 9007199254740991" },
    { "-1",
      "generate: seed \"-1\" is not an integer from 0 to 9007199254740991" },
    { "9007199254740992", "generate: seed \"9007199254740992\" is not an "
                          "integer from 0 to 9007199254740991" },
    { "1,host=3", "generate: \"host\" is not one of \"hosts=\", \"cojobs=\", "
                  "\"jobs=\", \"iterations=\", \"rungs=\", \"placement=\", "
                  "\"compute=\", \"load=\"" },
    { "1\n2,hosts=3",
      "generate: seed \"1?2\" is not an integer from 0 to 9007199254740991" },
    { "1,hosts=3\n",
      "generate: hosts: \"3?\" is not an integer from 2 to 4096" },
    { "1,hosts=1", "generate: hosts: \"1\" is not an integer from 2 to 4096" },
    { "1,hosts", "generate: hosts: \"\" is not an integer from 2 to 4096" },
    { "1,jobs=2.5",
      "generate: jobs: \"2.5\" is not an integer from 1 to 256" },
    { "1,compute=nan",
      "generate: compute: \"nan\" is not a number from 0 to 0.95" },
    { "1,placement=rings,load=1",
      "generate: placement: \"rings\" is not one of "
      "\"ps\", \"ring\", \"mixed\"" },
};

UNIT_TEST(names_what_is_wrong)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct generate_options options;
        char *error = generate_options_parse(mistakes[i].text, &options);

        assert_is(error, mistakes[i].error);
    }
}
