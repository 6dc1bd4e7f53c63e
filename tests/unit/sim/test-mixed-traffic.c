/* SPDX-License-Identifier: Apache-2.0 */

/* The policy "stage" with traffic that does not iterate, and with searches
 * that try to gain by the form of their traffic.  Times are relative: to the
 * plain network, or to the honest search in the same workload.
 *
 * $LOOKAHEAD_RUNS is the number of runs of plans a second
 * (order/lookahead/plan.h), which takes minutes. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "order/problem/memory.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/random.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define N_SEEDS 20
#define N_HOSTS 6
#define BYTES_PER_S (50e6 / 8)
#define N_SEARCHES 4
#define LATE_S 0.04             /* Time from a change to the hosts' levels. */

/* Form of the exchanges of a search, and what it announces of them. */
struct form {
    int parts;                  /* Iterations that an honest iteration is
                                 * split into. */
    double padding;             /* Bytes by those of an honest exchange. */
    double elsewhere;           /* Useless bytes to a host that the job does
                                 * not use, by those of an honest exchange. */
    double hidden;              /* Share of the iterations of its later rungs,
                                 * and of its bytes, that it leaves out. */
    double understated;
};

static const struct form honest = { 1, 1, 0, 0, 0 };

static int lookahead_runs;

/* Least time of a search that cheats, relative to the honest one's. */
static double least = 0.99;

/* Adds a search of three jobs on random hosts that keeps one. */
static void
add_search(struct workload *w, struct sim_random *r, double arrival,
           double bytes, const struct form *form)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "s", 1, arrival);

    cojob->hidden = form->hidden;
    cojob->understated = form->understated;
    for (int i = 0; i < 3; i++) {
        struct workload_job *job = workload_add_job(cojob, "t",
                                                    0.0048 / form->parts);
        int hosts[N_HOSTS];

        sim_random_pick(r, N_HOSTS, 5, hosts);
        workload_add_ps(job, hosts, 2, &hosts[2], 2,
                        bytes * form->padding / form->parts);
        if (form->elsewhere > 0) {
            workload_add_transfer(job, hosts[4], hosts[0],
                                  bytes * form->elsewhere / form->parts,
                                  job->n_shards, 0);
        }
    }
    workload_add_rung(w, cojob, 30 * form->parts, 3);
    workload_add_rung(w, cojob, 80 * form->parts, 1);
}

/* Searches on the hosts of 'seed'; the search of index 'which' has 'form'. */
static struct workload *
make_searches(int seed, int which, const struct form *form)
{
    struct workload *w = workload_create(
        "stage", sim_fabric_create(N_HOSTS, BYTES_PER_S));
    struct sim_random r = { seed };

    for (int i = 0; i < N_SEARCHES; i++) {
        add_search(w, &r, 0, 4e5 + 1e5 * i, i == which ? form : &honest);
    }
    return w;
}

/* Adds a transfer of 'seconds' between random hosts. */
static void
add_bulk(struct workload *w, struct sim_random *r, double arrival,
         double seconds)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "b", 1, arrival);
    int hosts[2];

    sim_random_pick(r, N_HOSTS, 2, hosts);
    workload_add_transfer(workload_add_job(cojob, "t", 0), hosts[0], hosts[1],
                          seconds * BYTES_PER_S, 0, 0);
    workload_add_rung(w, cojob, 1, 1);
}

/* Simulates 'w' under the shipped policy called 'name', with the latency of
 * real hosts. */
static void
run(const struct workload *w, const char *name, struct sim_result *result)
{
    struct policy *policy;
    struct sim_options options;
    char file[64];

    snprintf(file, sizeof file, "policies/%s.json", name);
    assert_null(policy_from_file(file, &policy));
    options = sim_policy_options(policy);
    options.late_s = LATE_S;
    options.lookahead_runs = lookahead_runs;
    simulate_by_policy(w, policy, &options, result);
    policy_destroy(policy);
}

/* Returns the mean time of the stages of 'cojob'. */
static double
time_of(const struct sim_result *r, size_t cojob)
{
    double sum = 0;
    int n = 0;

    for (size_t i = 0; i < r->n_stages; i++) {
        if (r->stages[i].cojob == cojob) {
            sum += r->stages[i].end - r->stages[i].begin;
            n++;
        }
    }
    return sum / n;
}

static double
simulated_time(const struct workload *w, size_t cojob)
{
    struct sim_result r;
    double time;

    run(w, "stage", &r);
    time = time_of(&r, cojob);
    sim_result_uninit(&r);
    return time;
}

/* Fails if one of the first 'n' cojobs takes more than 'limit' times as long
 * as in the plain network.  Destroys 'w'. */
static void
check_against_plain(struct workload *w, size_t n, const char *what,
                    double limit)
{
    struct sim_result plain, stage;

    run(w, "plain", &plain);
    run(w, "stage", &stage);
    for (size_t i = 0; i < n; i++) {
        double ratio = time_of(&stage, i) / time_of(&plain, i);

        if (ratio > limit) {
            fail_msg("%s: cojob %zu takes %.2f times as long as in the "
                     "plain network, more than %.2f",
                     what, i, ratio, limit);
        }
    }
    sim_result_uninit(&plain);
    sim_result_uninit(&stage);
    workload_destroy(w);
}

/* The transfers load the busiest ports for as long as the searches do, or for
 * ten times as long. */
UNIT_TEST(bulk_transfers_and_searches_delay_each_other_in_bounds)
{
    static const struct {
        const char *what;
        int n;
        double gap, seconds;
        double limit;
    } cases[] = {
        { "a transfer", 1, 0, 16, 1.5 },
        { "a long transfer", 1, 0, 160, 1.5 },
        { "many transfers", 40, 1, 3, 2 },
        { "a thousand transfers", 1000, 0.04, 0.1, 2.5 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int seed = 1; seed <= N_SEEDS / 4; seed++) {
            struct workload *w = make_searches(seed, 0, &honest);
            struct sim_random r = { 1000 + seed };

            for (int k = 0; k < cases[i].n; k++) {
                add_bulk(w, &r, k * cases[i].gap, cases[i].seconds);
            }
            check_against_plain(w, w->n_cojobs, cases[i].what, cases[i].limit);
        }
    }
}

/* Short searches use 96 % of a link.  Each has less work than the transfer of
 * 40 s, which would be last for a thousand seconds if it did not age. */
UNIT_TEST(a_stream_of_searches_does_not_starve_a_transfer)
{
    struct workload *w = workload_create(
        "stage", sim_fabric_create(2, BYTES_PER_S));
    struct sim_result r;

    for (int i = 0; i < 201; i++) {
        struct workload_cojob *cojob = workload_add_cojob(w, "s", 1,
                                                          i ? 5.2 * i : 0);

        workload_add_transfer(workload_add_job(cojob, "t", 0.1), 0, 1,
                              (i ? 0.5 : 40) * BYTES_PER_S, 0, 0);
        workload_add_rung(w, cojob, i ? 10 : 1, 1);
    }
    run(w, "stage", &r);
    print_message("the transfer of 40 s takes %.1f s\n", time_of(&r, 0));
    assert_true(time_of(&r, 0) < 400);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* Returns the mean over the seeds of the time of a search of 'form', relative
 * to the same search if it is honest; another one in each seed. */
static double
gain_of(const struct form *form)
{
    double sum = 0;

    for (int seed = 1; seed <= N_SEEDS; seed++) {
        int which = seed % N_SEARCHES;
        struct workload *before = make_searches(seed, which, &honest);
        struct workload *after = make_searches(seed, which, form);

        sum += simulated_time(after, which) / simulated_time(before, which);
        workload_destroy(before);
        workload_destroy(after);
    }
    return sum / N_SEEDS;
}

UNIT_TEST(a_search_gains_nothing_by_its_form_or_announcement)
{
    static const struct {
        const char *what;
        struct form form;
    } cases[] = {
        { "two parts", { 2, 1, 0 } },
        { "four parts", { 4, 1, 0 } },
        { "eight parts", { 8, 1, 0 } },
        { "a tenth of padding", { 1, 1.1, 0 } },
        { "a half of padding", { 1, 1.5, 0 } },
        { "padding elsewhere", { 1, 1, 0.5 } },
        { "four parts and padding elsewhere", { 4, 1, 0.5 } },
        { "a quarter of later rungs hidden", { 1, 1, 0, 0.25, 0 } },
        { "half of later rungs hidden", { 1, 1, 0, 0.5, 0 } },
        { "all later rungs hidden", { 1, 1, 0, 1, 0 } },
        { "a tenth of its bytes announced", { 1, 1, 0, 0, 0.9 } },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double ratio = gain_of(&cases[i].form);

        print_message("%s: %.3f of the honest time\n", cases[i].what, ratio);
        if (ratio < least) {
            fail_msg("%s: %.3f of the honest time", cases[i].what, ratio);
        }
    }
}

/* Adds a search of 'user' with 'n_jobs' jobs of 'iterations' on the hosts that
 * 'r' gives. */
static void
add_flat(struct workload *w, struct sim_random *r, double arrival,
         const char *user, int n_jobs, int64_t iterations)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "s", 1, arrival);

    cojob->user = order_strdup(user);
    for (int i = 0; i < n_jobs; i++) {
        struct workload_job *job = workload_add_job(cojob, "t", 0.0048);
        int hosts[N_HOSTS];

        sim_random_pick(r, N_HOSTS, 4, hosts);
        workload_add_ps(job, hosts, 2, &hosts[2], 2, 5e5);
    }
    workload_add_rung(w, cojob, iterations, n_jobs);
}

/* How an owner announces SLICED iterations: in 'n' searches, one after the
 * other or side by side. */
struct slices {
    int n;
    bool side_by_side;
};

#define SLICED 400

/* Honest searches of a quarter of SLICED that come now and then, and the first
 * cojobs, by 'slices', of one owner. */
static struct workload *
make_slices(int seed, const struct slices *slices)
{
    struct workload *w =
        workload_create("stage", sim_fabric_create(N_HOSTS, BYTES_PER_S));
    struct sim_random r = { seed }, hosts = { 100 + seed };
    int iterations = slices->side_by_side ? 5 : SLICED / slices->n;

    for (int i = 0; i < slices->n; i++) {
        if (!slices->side_by_side) {
            hosts.state = 100 + seed;
        }
        add_flat(w, &hosts, 0, "eve",
                 slices->side_by_side ? SLICED / iterations / slices->n : 1,
                 iterations);
        w->cojobs[i].follows = i && !slices->side_by_side;
    }
    for (int i = 0; i < 40; i++) {
        char user[] = { 'A' + i, '\0' };

        add_flat(w, &r, 8 * (i + sim_random_between(&r, 0, 1)), user, 1,
                 SLICED / 4);
    }
    return w;
}

/* Returns the time until the last of the first 'n' cojobs ends. */
static double
end_of(const struct workload *w, size_t n)
{
    struct sim_result r;
    double end = 0;

    run(w, "stage", &r);
    for (size_t i = 0; i < r.n_stages; i++) {
        end = r.stages[i].cojob < n ? fmax(end, r.stages[i].end) : end;
    }
    sim_result_uninit(&r);
    return end;
}

/* Returns the mean over the seeds of the time of an owner that announces at
 * once, relative to one that announces by 'slices'. */
static double
gain_of_slices(const struct slices *slices)
{
    const struct slices whole = { 1, slices->side_by_side };
    int n_seeds = N_SEEDS / 4;
    double sum = 0;

    for (int seed = 1; seed <= n_seeds; seed++) {
        struct workload *before = make_slices(seed, &whole);
        struct workload *after = make_slices(seed, slices);

        sum += end_of(before, 1) / end_of(after, slices->n);
        workload_destroy(before);
        workload_destroy(after);
    }
    return sum / n_seeds;
}

UNIT_TEST(an_owner_gains_nothing_by_slices)
{
    static const struct slices cases[] = {
        { 4, false }, { 8, false }, { 80, false },
        { 4, true },  { 8, true },  { 80, true },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double gain = gain_of_slices(&cases[i]);

        print_message("%d slices %s: %.3f times as fast\n", cases[i].n,
                      cases[i].side_by_side ? "side by side" : "in sequence",
                      gain);
        assert_true(gain <= 1);
    }
}

/* The second search of an owner is served as if it was somebody else's. */
UNIT_TEST(a_second_search_keeps_its_place)
{
    for (int seed = 1; seed <= N_SEEDS / 4; seed++) {
        struct workload *w = make_slices(seed, &(struct slices){ 2, false });
        double one = end_of(w, 2);

        w->cojobs[1].user[0] = '-';
        assert_float_equal(end_of(w, 2), one, 1e-9);
        workload_destroy(w);
    }
}

/* Where no search announces anything, the first rungs of some do not pass the
 * last ones of others for that. */
UNIT_TEST(silence_of_all_costs_little)
{
    double sum = 0;

    for (int seed = 1; seed <= N_SEEDS; seed++) {
        struct workload *w = make_searches(seed, 0, &honest);
        struct sim_result announced, hidden;

        run(w, "stage", &announced);
        for (size_t i = 0; i < w->n_cojobs; i++) {
            w->cojobs[i].hidden = 1;
        }
        run(w, "stage", &hidden);
        sum += hidden.mean / announced.mean;
        sim_result_uninit(&announced);
        sim_result_uninit(&hidden);
        workload_destroy(w);
    }
    print_message("all hide their later rungs: %.3f of the honest mean\n",
                  sum / N_SEEDS);
    assert_true(sum / N_SEEDS < 1.06);
}

int
unit_test_set_up(void **state)
{
    const char *runs = getenv("LOOKAHEAD_RUNS");

    if (runs) {
        lookahead_runs = atoi(runs);
        least = 0.98;
    }
    return 0;
}
