/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/stage-trials.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "util.h"

void
stage_trials_uninit(struct stage_trials *t)
{
    for (size_t i = 0; i < t->n; i++) {
        trial_rung_uninit(&t->rungs[i]);
    }
    free(t->rungs);
}

void
stage_trials_set(struct stage_trials *t, const int64_t *iterations, size_t n)
{
    struct trial_rung *rungs = xcalloc(MAX(n, 1), sizeof *rungs);
    size_t old = 0;

    for (size_t i = 0; i < n; i++) {
        while (old < t->n && t->rungs[old].iterations < iterations[i]) {
            old++;
        }
        if (old < t->n && t->rungs[old].iterations == iterations[i]) {
            rungs[i] = t->rungs[old];
            t->rungs[old].metrics = NULL;
        }
        rungs[i].iterations = iterations[i];
    }
    stage_trials_uninit(t);
    t->rungs = rungs;
    t->n = n;
}

void
stage_trials_note(struct job *job, int64_t iteration)
{
    struct stage_trials *t = job->stage ? &job->stage->trials : NULL;

    for (size_t i = t ? t->n : 0; i-- > 0;) {
        struct trial_rung *rung = &t->rungs[i];

        if (rung->iterations <= job->judged) {
            return;
        } else if (rung->iterations <= iteration) {
            job->judged = rung->iterations;
            trial_rung_judge(rung, job->progress.value, t->eta);
            return;
        }
    }
}

const struct trial_rung *
stage_next_rung(const struct stage *stage, const struct job *job)
{
    size_t i = 0;

    while (i + 1 < stage->trials.n
           && stage->trials.rungs[i].iterations <= job->iteration) {
        i++;
    }
    return &stage->trials.rungs[i];
}

int64_t
stage_target(const struct stage *stage, const struct job *job)
{
    return (stage->trials.n ? stage_next_rung(stage, job)->iterations
                            : stage->iterations);
}

double
stage_iterations_after(const struct stage *stage, const struct job *job)
{
    const struct stage_trials *t = &stage->trials;
    const struct trial_rung *next;

    if (!t->n) {
        return stage->announcement.later / stage->n_jobs;
    }
    next = stage_next_rung(stage, job);
    return (next->iterations > job->iteration
                ? trials_after(next, &t->rungs[t->n] - next, t->eta)
                : 0);
}

double
stage_trials_done(const struct stage *stage)
{
    const struct shash_node *node;
    double done = 0;

    SHASH_FOR_EACH (node, &stage->cojob->jobs) {
        const struct job *job = node->data;

        done += job->stage == stage ? MAX(job->iteration, 0) : 0;
    }
    return done;
}

double
stage_iterations(const struct stage *stage)
{
    double sum;

    if (!stage->trials.n) {
        return ((double) (stage->iterations - stage->first_iteration)
                * stage->n_jobs);
    }
    sum = stage_trials_done(stage);
    for (size_t i = 0; i < stage->n_jobs; i++) {
        const struct job *job = stage->jobs[i];

        sum += MAX(stage_target(stage, job) - MAX(job->iteration, 0), 0)
               + stage_iterations_after(stage, job);
    }
    return sum;
}

double
stage_trials_left(const struct stage *stage)
{
    return (stage->trials.n
                ? stage_iterations(stage) + stage_trials_later(&stage->trials)
                      - stage_trials_done(stage)
                : 0);
}

/* Returns the iterations that are expected of a trial. */
static double
expected_of_trial(const struct stage_trials *t)
{
    return t->rungs->iterations + trials_after(t->rungs, t->n, t->eta);
}

double
stage_trials_later(const struct stage_trials *t)
{
    return t->n ? t->to_come * expected_of_trial(t) : 0;
}

void
stage_trials_announced(struct stage *stage)
{
    struct stage_trials *t = &stage->trials;
    double each = t->n ? expected_of_trial(t) : 0;
    const struct shash_node *node;
    int64_t begun = 0, hidden;

    if (!t->n) {
        return;
    }
    SHASH_FOR_EACH (node, &stage->cojob->jobs) {
        begun += ((const struct job *) node->data)->stage == stage;
    }
    if (!t->known) {
        t->known = begun + t->to_come;
        t->begun = begun;
    }
    hidden = MAX(begun + t->to_come - t->known, 0);
    stage->announcement.later = each * t->to_come;
    stage->announcement.after_first = each * (begun - t->begun);
    stage->announcement.hidden = each * hidden;
}
