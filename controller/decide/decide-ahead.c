/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-ahead.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "controller/decide/decide-outlook.h"
#include "controller/decide/decide-problem.h"
#include "controller/model/cluster.h"
#include "openvswitch/vlog.h"
#include "order/lookahead/plain-network.h"
#include "order/lookahead/plan.h"
#include "order/order.h"
#include "policies/policy.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(decide_ahead);

/* Limits of a plan. */
#define MAX_RUNS 120
#define MAX_CPU_S 0.1

/* Multiplications of each form of a bound: about 0.2 s. */
#define BOUND_WORK 1e9
#define MIN_BOUND_MS 2000 /* Time from one bound to the next. */

/* Time from one simulation of the plain network to the next. */
#define MIN_PLAIN_MS 500
#define MAX_PLAIN_MS 10000

/* What the two threads exchange. */
struct task {
    struct decide_outlook *outlook;
    struct plain_network *plain; /* NULL if it is not wanted. */
    double plain_s;              /* Time that it took. */
    uint64_t seed;
    long long now;                   /* time_msec() of the outlook. */
    bool plans, bounds;              /* What is wanted. */
    struct plan_result plan;         /* Valid once the plan is ready. */
    struct decide_ahead_bound bound; /* Valid once the bound is ready. */
    double bound_s;                  /* Time that the bound took. */
};

struct decide_ahead {
    /* Both threads. */
    _Atomic(struct task *) inbox; /* For the thread. */
    _Atomic(struct task *) ready;
    atomic_bool stop;
    sem_t wake; /* Of the thread. */

    /* The main thread. */
    bool started, failed;
    pthread_t thread;
    bool waits;     /* A plan of a task is awaited. */
    long long next; /* time_msec() of the next plan at the
                     * earliest. */
    long long next_bound, next_plain;
    long long bounded; /* time_msec() of the outlook of 'bound'. */
    struct decide_ahead_bound bound;
    struct plain_network *plain; /* The thread's while it has a task. */
    long long planned;           /* time_msec() of the outlook of the plan in
                                  * force, LLONG_MIN without one. */
    struct decide_ahead_counts counts;
};

static void
task_destroy(struct task *task)
{
    if (task) {
        decide_outlook_destroy(task->outlook);
        free(task);
    }
}

/* Adds what job 'k' has left.  It has done a part of a real iteration's
 * computing. */
static void
add_job(struct fluid *f, const struct decide_outlook *outlook, size_t k)
{
    const struct judge_situation *sit = &outlook->situation;
    const struct judge_job *job = &sit->jobs[k];
    double done = (job->compute - job->wait) / outlook->grain;

    fluid_add_job(f, outlook->left[k],
                  job->compute + job->exchange - done / outlook->left[k]);
    for (size_t d = 0; d < job->n_demands; d++) {
        fluid_add_demand(f, job->demands[d].port,
                         job->demands[d].bytes
                             / sit->capacity[job->demands[d].port]);
    }
}

/* Returns the bound of the running stages, and what is predicted of them. */
static struct decide_ahead_bound
find_bound(const struct decide_outlook *outlook)
{
    const struct judge_situation *sit = &outlook->situation;
    struct fluid *f = fluid_create(sit->n_ports);
    struct decide_ahead_bound b = { .estimate = outlook->estimate };

    for (size_t i = 0; i < sit->n_searches; i++) {
        const struct judge_search *search = &sit->searches[i];

        size_t end = search->first_job + search->n_jobs, n = 0;

        for (size_t k = search->first_job; k < end; k++) {
            n += outlook->left[k] > 0;
        }
        fluid_add_search(f, search->weight, 0);
        fluid_add_rung(f, n);
        for (size_t k = search->first_job; k < end; k++) {
            if (outlook->left[k] > 0) {
                add_job(f, outlook, k);
            }
        }
    }
    b.bound = fluid_bound(f, BOUND_WORK);
    fluid_destroy(f);
    return b;
}

static void
run_task(struct task *task)
{
    const struct plan_options options = { .n_runs = MAX_RUNS,
                                          .cpu_s = MAX_CPU_S,
                                          .seed = task->seed };
    double began = clock_monotonic_s();

    if (task->plain) {
        plain_network_follow(task->plain, &task->outlook->situation,
                             task->now / 1000.0);
    }
    task->plain_s = clock_monotonic_s() - began;
    if (task->plans) {
        task->plan = plan_improve(&task->outlook->situation, &options,
                                  task->outlook->factors);
    }
    began = clock_monotonic_s();
    if (task->bounds) {
        task->bound = find_bound(task->outlook);
    }
    task->bound_s = clock_monotonic_s() - began;
}

static void *
plan_main(void *a_)
{
    struct decide_ahead *a = a_;

    while (!atomic_load(&a->stop)) {
        struct task *task = atomic_exchange(&a->inbox, NULL);

        if (task) {
            run_task(task);
            atomic_store(&a->ready, task);
        } else {
            while (sem_wait(&a->wake) && errno == EINTR) {
                continue;
            }
        }
    }
    return NULL;
}

struct decide_ahead *
decide_ahead_create(void)
{
    struct decide_ahead *a = xzalloc(sizeof *a);

    sem_init(&a->wake, 0, 0);
    a->plain = plain_network_create();
    a->planned = LLONG_MIN;
    a->bounded = LLONG_MIN / 2;
    return a;
}

void
decide_ahead_destroy(struct decide_ahead *a)
{
    if (!a) {
        return;
    }
    if (a->started) {
        atomic_store(&a->stop, true);
        sem_post(&a->wake);
        pthread_join(a->thread, NULL);
    }
    task_destroy(atomic_load(&a->inbox));
    task_destroy(atomic_load(&a->ready));
    sem_destroy(&a->wake);
    plain_network_destroy(a->plain);
    free(a);
}

static void
forget_factors(struct cluster *c)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &c->jobs) {
        ((struct job *) node->data)->factor = 1;
    }
}

/* Gives the jobs of 'outlook' that are still there their factors. */
static void
copy_factors(const struct decide_outlook *outlook, struct cluster *c)
{
    for (size_t i = 0; i < outlook->situation.n_jobs; i++) {
        struct job *job = shash_find_data(&c->jobs, outlook->jobs[i]);

        if (job) {
            job->factor = outlook->factors[i];
        }
    }
}

/* Gives the stages of 'outlook' that still run their times in the plain
 * network. */
static void
copy_times(const struct decide_outlook *outlook, const struct cluster *c)
{
    const struct judge_situation *sit = &outlook->situation;
    size_t n;
    struct stage **stages = cluster_running_stages(c, &n);

    for (size_t s = 0; s < n; s++) {
        uint64_t id = decide_outlook_id(stages[s]);
        size_t i = 0;

        while (i < sit->n_searches && sit->searches[i].id != id) {
            i++;
        }
        if (i < sit->n_searches) {
            stages[s]->plain = sit->searches[i].plain;
        }
    }
    free(stages);
}

/* Returns the time from a plan that took 'cpu_s' to the next one. */
static long long
next_ms(double cpu_s, double share)
{
    return cpu_s * 1000 / MAX(share, 1e-3);
}

/* Returns the share of a processor that plans may take. */
static double
share_of(const struct policy *policy)
{
    return order_looks_ahead(policy->order.kind) ? policy->lookahead_core_share
                                                 : 0;
}

bool
decide_ahead_take(struct decide_ahead *a, struct cluster *c,
                  const struct policy *policy, long long now)
{
    struct task *task = atomic_exchange(&a->ready, NULL);
    double share = share_of(policy);

    if (task) {
        a->waits = false;
    }
    if (task && task->plain) {
        a->next_plain =
            task->now
            + MIN(MAX(MIN_PLAIN_MS, next_ms(task->plain_s, AHEAD_BOUND_SHARE)),
                  MAX_PLAIN_MS);
        copy_times(task->outlook, c);
    }
    if (task && task->bounds) {
        a->bound = task->bound;
        a->bounded = task->now;
        a->next_bound =
            task->now
            + MIN(MAX(MIN_BOUND_MS, next_ms(task->bound_s, AHEAD_BOUND_SHARE)),
                  AHEAD_BOUND_MAX_AGE_MS / 2);
    }
    if (task && task->plans) {
        a->planned = task->now;
        a->next = task->now + next_ms(task->plan.cpu_s, share);
        a->counts.plans++;
        a->counts.runs += task->plan.n_runs;
        a->counts.cpu_s += task->plan.cpu_s;
        copy_factors(task->outlook, c);
    }
    task_destroy(task);
    if (a->planned > LLONG_MIN
        && (share <= 0 || now - a->planned > AHEAD_MAX_AGE_MS)) {
        a->planned = LLONG_MIN;
        forget_factors(c);
    }
    return a->planned > LLONG_MIN;
}

/* Returns false if the thread does not run. */
static bool
start(struct decide_ahead *a)
{
    if (!a->started && !a->failed) {
        int error = pthread_create(&a->thread, NULL, plan_main, a);

        a->failed = error != 0;
        a->started = !error;
        if (error) {
            VLOG_WARN("no thread to look ahead, jobs are ordered by their "
                      "keys, and there are no bounds and no comparison (%s)",
                      ovs_strerror(error));
        }
    }
    return a->started;
}

void
decide_ahead_offer(struct decide_ahead *a, const struct decide_problem *dp,
                   const struct cluster *c, const struct policy *policy,
                   const double ends[], long long now)
{
    double share = share_of(policy);
    bool weighted = dp->unit == ORDER_UNIT_ITERATION;
    bool plans = weighted && share > 0 && dp->n_stages > 1 && now >= a->next;
    bool bounds = weighted && now >= a->next_bound;
    bool plain = now >= a->next_plain;
    struct task *task;

    if (a->waits || !dp->n_stages || dp->n_jobs > AHEAD_MAX_JOBS) {
        return;
    }
    if (plans && !a->next) { /* Saves for the first one. */
        a->next = now + next_ms(MAX_CPU_S, share);
        plans = false;
    }
    if ((!plans && !bounds && !plain) || !start(a)) {
        return;
    }
    task = xzalloc(sizeof *task);
    task->plans = plans;
    task->bounds = bounds;
    task->plain = plain ? a->plain : NULL;
    task->outlook = decide_outlook_create(dp, c, policy, ends, now);
    task->seed = a->counts.plans;
    task->now = now;
    a->waits = true;
    atomic_store(&a->inbox, task);
    sem_post(&a->wake);
}

bool
decide_ahead_bound(const struct decide_ahead *a, long long now,
                   struct decide_ahead_bound *bound)
{
    *bound = a->bound;
    return now - a->bounded <= AHEAD_BOUND_MAX_AGE_MS;
}

struct decide_ahead_counts
decide_ahead_counts(const struct decide_ahead *a)
{
    return a->counts;
}
