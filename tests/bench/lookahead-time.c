/* SPDX-License-Identifier: Apache-2.0 */

/* Measures what looking ahead costs a controller: the time of a decision, with
 * and without, and the processor time of plans.
 *
 * lookahead-time SECONDS       for each number of jobs
 *
 * Prints members of a JSON object.  Searches of four jobs, each of two workers
 * and two servers, run on a quarter as many hosts as there are jobs; there is
 * a decision each 200 ms, and plans have a tenth of a processor. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

#define CORE_SHARE 0.1
#define PERIOD_S 0.2
#define JOBS_OF_SEARCH 4

struct cost {
    double decision_s; /* Mean. */
    double core_share; /* Processor time of plans / time. */
};

/* Processor time of this thread. */
static double
thread_s(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID) * 1e-9;
}

static void
add_job(struct cluster *c, struct cojob *cojob, struct stage *stage, int i,
        int n_hosts)
{
    char name[32];
    struct job *job;

    snprintf(name, sizeof name, "t%d", i);
    job = cojob_put_job(c, cojob, name, true, 1000, 1000 * 1000);
    for (int k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "h%d", (7 * i + 3 * k) % n_hosts);
        job_put_worker(c, job, name, k < 2 ? ROLE_WORKER : ROLE_SERVER);
    }
    stage_put_job(stage, job);
}

static struct cluster *
make_cluster(int n_jobs)
{
    struct cluster *c = cluster_create();
    struct cojob *cojob = NULL;
    struct stage *stage = NULL;
    char name[32];

    cluster_intent_begin(c);
    for (int i = 0; i < n_jobs; i++) {
        if (i % JOBS_OF_SEARCH == 0) {
            snprintf(name, sizeof name, "s%d", i);
            cojob = cluster_put_cojob(c, name, 1, true);
            stage =
                cojob_put_stage(c, cojob, 0, time_wall_msec(), 0, 1000 + i);
        }
        add_job(c, cojob, stage, i, MAX(n_jobs / 4, 8));
    }
    cluster_intent_end(c);
    return c;
}

static struct policy *
make_policy(double core_share)
{
    struct policy *policy;
    char *error = policy_from_file("policies/stage.json", &policy);

    if (error) {
        ovs_fatal(0, "%s", error);
    }
    policy->lookahead_core_share = core_share;
    return policy;
}

static double
plan_seconds(const struct decide *d)
{
    struct json *json = json_object_create();
    double s;

    decide_status(d, json);
    s = json_real(shash_find_data(json_object(json), "plan_cpu_s"));
    json_destroy(json);
    return s;
}

/* Decides for 'seconds'. */
static struct cost
measure(int n_jobs, double core_share, double seconds)
{
    struct cluster *c = make_cluster(n_jobs);
    struct policy *policy = make_policy(core_share);
    struct decide *d = decide_create(c, NULL);
    struct cost cost = { 0 };
    int n = seconds / PERIOD_S;
    double begin;

    decide_set_policy(d, policy);
    decide_run(d, time_msec());
    begin = clock_monotonic_s();
    for (int i = 1; i <= n; i++) {
        double cpu;

        nanosleep(&(struct timespec){ .tv_nsec = PERIOD_S * 1e9 }, NULL);
        decide_touch(d);
        cpu = thread_s();
        decide_run(d, time_msec());
        cost.decision_s += (thread_s() - cpu) / n;
    }
    cost.core_share = plan_seconds(d) / (clock_monotonic_s() - begin);
    decide_destroy(d);
    policy_destroy(policy);
    cluster_destroy(c);
    return cost;
}

int
main(int argc, char *argv[])
{
    static const int sizes[] = { 24, 100, 1600 };
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    double worst = 0, core_share = 0;

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_ERR);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct cost key = measure(sizes[i], 0, seconds);
        struct cost ahead = measure(sizes[i], CORE_SHARE, seconds);

        printf("\"decision_%d_us\": %.1f, \"decision_ahead_%d_us\": %.1f, "
               "\"core_share_%d\": %.4f, ",
               sizes[i], key.decision_s * 1e6, sizes[i],
               ahead.decision_s * 1e6, sizes[i], ahead.core_share);
        worst = MAX(worst, ahead.decision_s / key.decision_s);
        core_share = MAX(core_share, ahead.core_share);
    }
    printf("\"decision_vs_key\": %.4f, \"core_share\": %.4f", worst,
           core_share);
    return 0;
}
