/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_RUN_H
#define LAB_RUN_H 1

/* Runs a scenario, its searches and its cojobs.
 *
 * The lab runs searches as an engineer would, with "stagecoach search run",
 * and reads the events that it prints (docs/interfaces.md).
 *
 * The commands of a cojob do not know about stages.  The lab does what an
 * engineer would do: it announces the cojob, starts each process with
 * "stagecoach run" in the namespace of its host, and reads the iteration count
 * of the jobs from the agents, which is reported by the job or estimated from
 * its traffic.  A stage ends when all jobs have reached its iterations.
 *
 *    run = search_run_create(plan, search, policy, epoch, begin);
 *    error = run->class->start(run);
 *    while (!run->over) {
 *        run->class->run(run);
 *        run->class->wait(run);
 *        poll_block();
 *    }
 *    ...run->error...
 *    run->class->destroy(run);           // Ends it, if it still runs.
 *
 * Main thread only.  The arguments of search_run_create() and
 * cojob_run_create() must outlive the run. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeval.h"

struct cluster;
struct ds;
struct plan;
struct report_policy;
struct run;
struct scenario;
struct scenario_cojob;
struct scenario_search;

/* A job that trains now.  Its strings belong to the run. */
struct run_job {
    const char *cojob, *job;
    uint64_t hosts;             /* Bit i: the job has a process on host i. */
    long long iteration;
    long long target;           /* Iteration at which the stage ends. */
};

struct run_class {
    /* Returns NULL or a malloc()'d message. */
    char *(*start)(struct run *);
    void (*run)(struct run *);
    void (*wait)(struct run *);

    /* Stores at most 'max' jobs of the running stage that have not reached the
     * target.  Returns their number. */
    size_t (*jobs)(const struct run *, struct run_job jobs[], size_t max);

    /* Appends the state of a run that is not over, such as " rung 1 34/80". */
    void (*status)(const struct run *, struct ds *);
    void (*destroy)(struct run *);
    bool of_commands;           /* Its jobs may compute for a long time. */
};

/* A search or a cojob. */
struct run {
    const struct run_class *class;
    const char *cojob;          /* Its name. */
    double start_s;             /* When to start, seconds of the run. */
    const struct plan *plan;
    struct report_policy *policy;       /* Gets the results. */
    long long epoch_ms;         /* Wall time of second 0, for the times in
                                 * events of searches. */
    long long begin_ms;         /* time_msec() of second 0. */
    bool started, over;
    char *error;                /* Reason of the failure, or NULL. */
};

/* Returns the seconds since second 0.  Setting the clock does not matter. */
static inline double
run_elapsed(const struct run *run)
{
    return (time_msec() - run->begin_ms) / 1000.0;
}

struct run *search_run_create(const struct plan *,
                              const struct scenario_search *,
                              struct report_policy *, long long epoch_ms,
                              long long begin_ms);
struct run *cojob_run_create(const struct plan *, const struct scenario *,
                             const struct scenario_cojob *,
                             struct report_policy *, long long begin_ms);

/* Handles an event of the search, one line of JSON.  Other lines and unknown
 * events are ignored. */
void search_run_event(struct run *, const char *line);

/* Starts the cluster, runs the searches of 'scenario', stores the results in
 * 'policy' and stops the cluster.  If 'log_dir' is nonnull, it gets a copy of
 * all logs.
 *
 * Returns NULL if every search has ended normally, otherwise a malloc()'d
 * message, which is also stored in 'policy->failure'. */
char *policy_run(struct cluster *, const struct plan *,
                 const struct scenario *, const char *policy_file,
                 const char *log_dir, struct report_policy *policy);

#endif /* lab/run/run.h */
