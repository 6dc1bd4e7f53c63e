/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_WORLD_H
#define DECIDE_WORLD_H 1

/* Cojobs, jobs and stages for which a test lets "decide" decide. */

#include <stddef.h>
#include <stdint.h>

struct cluster;
struct decide;
struct job;
struct json;
struct policy;

struct fixture {
    struct cluster *c;
    struct decide *d;
    struct policy *stage, *fair;
    struct policy *set[32]; /* By set_order(). */
    size_t n_set;
    int64_t began;              /* Of all stages, epoch ms. */
};

/* Of a cmocka test. */
int set_up(void **state);
int tear_down(void **state);

/* Gives cojobs "a", "b", ..., each with one job "j" that one worker on one
 * host makes, and a stage of 'iterations[i]' iterations, which ended at
 * 'ended[i]' unless that is 0 or 'ended' is null. */
void give(struct fixture *, const char *hosts, const int64_t *iterations,
          const int64_t *ended);

/* One job of a stage that has just begun, of 'iterations' of 1 ms on its
 * host. */
struct given {
    const char *cojob, *job, *host;
    int64_t iterations;
};

/* Gives the jobs; those of a cojob come together and are one stage. */
void give_jobs(struct fixture *, const struct given *, size_t n);

/* Lets decisions follow a policy of 'order' with 'members', each after a
 * comma, from now on. */
struct policy *set_order(struct fixture *, const char *order,
                         const char *members);

struct job *find_job(struct fixture *, const char *name);
int level(struct fixture *, const char *job);
int rank(struct fixture *, const char *job);

/* Decides at 'now', and checks jobs, each "JOB RANK", "JOB RANK/LEVEL" or
 * "JOB -/LEVEL". */
void decides(struct fixture *, long long now, const char *places);

/* The number 'name' of an object. */
double member(struct json *, const char *name);

#endif /* tests/unit/controller/decide/decide-world.h */
