/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-survivors.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "order/problem/memory.h"
#include "sim/workload/workload.h"

/* Accepts the members of 'at' that are none of 'read', which ends with NULL.
 */
static void
ignore_others(const struct json_at *at, const char *const read[])
{
    const char *name = NULL;

    for (size_t i = 0; i < json_n(at); i++) {
        size_t k = 0;

        json_member(at, i, &name);
        while (read[k] && strcmp(read[k], name)) {
            k++;
        }
        if (!read[k]) {
            json_ignore(at, name);
        }
    }
}

static struct workload_cojob *
find_cojob(struct workload *w, const char *name)
{
    for (size_t i = 0; i < w->n_cojobs; i++) {
        if (!strcmp(w->cojobs[i].name, name)) {
            return &w->cojobs[i];
        }
    }
    return NULL;
}

/* Returns the index of a job, or the number of jobs. */
static size_t
find_job(const struct workload_cojob *cojob, const char *name)
{
    size_t i = 0;

    while (i < cojob->n_jobs && strcmp(cojob->jobs[i].name, name)) {
        i++;
    }
    return i;
}

/* Moves the job at 'from' to 'to' <= 'from'. */
static void
move_job(struct workload_cojob *cojob, size_t from, size_t to)
{
    struct workload_job job = cojob->jobs[from];

    memmove(&cojob->jobs[to + 1], &cojob->jobs[to], (from - to) * sizeof job);
    cojob->jobs[to] = job;
}

/* The last iterations of a search's jobs that have been read, which are its
 * first jobs, the longest first. */
struct ends {
    size_t n;
    int64_t *iterations; /* One for each job. */
};

static void
place_job(struct workload_cojob *cojob, struct ends *e, size_t from,
          int64_t iteration)
{
    size_t to = e->n++;

    for (; to > 0 && e->iterations[to - 1] < iteration; to--) {
        e->iterations[to] = e->iterations[to - 1];
    }
    e->iterations[to] = iteration;
    move_job(cojob, from, to);
}

static void
read_job(struct workload *w, const struct json_at *at, struct ends *ends,
         char **policyp)
{
    char *policy = json_string(at, "policy");
    char *search = json_string(at, "cojob"), *name = json_string(at, "job");
    int64_t iteration = json_integer(at, "iteration", 0, INT64_MAX);
    struct workload_cojob *cojob = find_cojob(w, search);
    size_t job = cojob ? find_job(cojob, name) : 0;
    struct ends *e = cojob ? &ends[cojob - w->cojobs] : NULL;

    ignore_others(at, (const char *const[]){ "policy", "cojob", "job",
                                             "iteration", NULL });
    if (!cojob) {
        json_fail(at, "cojob", "\"%s\" is no search of the workload", search);
    } else if (*policyp && strcmp(*policyp, policy)) {
        /* A further policy, under which the same jobs are kept. */
    } else if (job < e->n || job == cojob->n_jobs) {
        json_fail(at, "job", "\"%s\" is no job of %s, or a second time", name,
                  search);
    } else {
        place_job(cojob, e, job, iteration);
    }
    if (!*policyp) {
        *policyp = policy;
    } else {
        free(policy);
    }
    free(search);
    free(name);
}

char *
workload_keep_as(struct workload *w, const char *file)
{
    char *text, *policy = NULL, *error = json_read_file(file, &text);
    struct ends *ends;
    struct json_check *jc;
    const struct json_at *top, *jobs;

    if (error) {
        return error;
    }
    ends = order_alloc(w->n_cojobs, sizeof *ends);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        ends[i].iterations =
            order_alloc(w->cojobs[i].n_jobs, sizeof *ends[i].iterations);
    }
    jc = json_check_open(file, text);
    top = json_check_top(jc);
    jobs = json_array(top, "jobs", 1, SIZE_MAX);
    ignore_others(top, (const char *const[]){ "jobs", NULL });
    for (size_t i = 0; i < json_n(jobs) && json_ok(jc); i++) {
        read_job(w, json_element_object(jobs, i), ends, &policy);
    }
    for (size_t i = 0; i < w->n_cojobs; i++) {
        free(ends[i].iterations);
    }
    free(ends);
    free(policy);
    free(text);
    return json_check_close(jc);
}
