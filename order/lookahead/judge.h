/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOOKAHEAD_JUDGE_H
#define LOOKAHEAD_JUDGE_H 1

/* What follows from an order: a simulation of the live jobs.
 *
 * The estimate of an order adds up what stages need of single ports.  It does
 * not see that a job that waits at one port leaves others idle, that jobs
 * overlap if their hosts differ, and that later rungs follow.  The judge does:
 * it goes from event to event until all announced rungs have ended.
 *
 *    struct judge *judge = judge_create(&situation);
 *
 *    cost = judge_run(judge, NULL, places, INFINITY, ends);
 *    cost = judge_run(judge, factors, places, cost, NULL);
 *    judge_destroy(judge);
 *
 * It follows single flows as the simulator (sim/) does, but it is made for few
 * jobs and many runs: a run does not allocate, and its state is plain data
 * that is copied from the situation.  Jobs are ordered as agents and switches
 * serve them: each 'refresh_s' the keys of all jobs are computed again, the
 * smallest first; an order becomes effective 'late_s' after a job begins or
 * ends; ports are served strictly by levels, and the flows of a level share
 * them.  With INT_MAX levels each rank is served exactly.
 *
 * Ten searches of the main scenario that begin together take 15 ms; what is
 * live in it takes 1 ms in the mean.  The sum of the stages' times is 0.995 to
 * 1.005 of the simulator's under "stage", "work" and "plain", in the mean over
 * seeds (test-outlook.c).  If an exchange is one rigid block that all its
 * ports serve at one rate, it is 0.98, 0.96 and 0.93, and 1.19, 1.18 and 1.10
 * if that holds for each phase: flows that do not wait for others matter.
 *
 * The situation is the caller's and must not change while the judge exists.
 * One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/problem/announcement.h"
#include "order/problem/lateness.h"

struct judge;

/* A transfer of an iteration. */
struct judge_flow {
    const int *ports;
    int n_ports;
    double bytes; /* > 0. */
    int shard;
    int phase;   /* It begins when all flows of the phases
                  * before it in its shard have ended. */
    double left; /* Bytes left, if the job exchanges at the
                  * begin of a run. */
};

/* What one iteration of a job needs of a port. */
struct judge_demand {
    int port;
    double bytes; /* > 0. */
};

enum judge_state {
    JUDGE_COMPUTING,
    JUDGE_EXCHANGING,
    JUDGE_DONE, /* It waits for the end of the stage. */
};

struct judge_job {
    const struct judge_demand *demands;
    size_t n_demands;
    const struct judge_flow *flows; /* By shard, then by phase. */
    size_t n_flows;
    double compute;  /* Seconds of an iteration before its
                      * exchange. */
    double exchange; /* Seconds of its exchange without
                      * competitors. */

    /* At the begin of a run. */
    enum judge_state state;
    double wait;        /* Seconds until it exchanges, while it
                         * computes. */
    int64_t iterations; /* To the end of the rung, the current one
                         * included. */
    double to_early;    /* Iterations to the end of its early phase; 0 if
                         * it is over or unknown. */
    int level;          /* Before the first order. */
    bool first;         /* Pinned: before all that are not. */
};

/* A search and its running stage. */
struct judge_search {
    double weight;
    double age;   /* Seconds since the begin of its stage. */
    bool unknown; /* What its jobs need is not known yet, so that
                   * the plain network does not have it. */
    struct plain_times plain;
    size_t first_job, n_jobs;           /* Jobs of its stage. */
    const struct announced_rung *rungs; /* The running one, those to come,
                                         * and what the search owes. */
    size_t n_rungs;
    uint64_t id; /* Decides which guesses of surviving jobs a plan
                  * makes. */
    const struct judge_search *after; /* It begins when that one ends; until
                                       * then its jobs are JUDGE_DONE.  NULL:
                                       * it runs. */
};

struct judge_situation {
    int n_ports;
    const double *capacity; /* Of each port, bytes per second. */
    struct judge_search *searches;
    size_t n_searches;
    const struct judge_job *jobs; /* By search. */
    size_t n_jobs;

    /* Service; see struct sim_options. */
    int n_levels;
    double min_share;
    double refresh_s; /* 0 orders only when jobs begin or end. */
    double late_s;
    double aging_s, aging_slowdown;
    double latest; /* See lateness.h. */

    /* The number of ends of a search that count as much as the mean end of the
     * early phases of its jobs. */
    double early_boost;

    /* Computes the keys of all jobs that are not done.  NULL is the key of
     * iterations: the seconds of the busiest port over the weight of
     * iteration-weight.h, and of early-order.c for jobs in their early
     * phase. */
    void (*keys)(const struct judge *, double keys[]);
};

struct judge *judge_create(const struct judge_situation *);
void judge_destroy(struct judge *);

/* Runs until all announced rungs have ended.  The key of each job is
 * multiplied by its element of 'factors', unless that is null.  The jobs of a
 * search with the smallest 'places', 0 to its 'n_jobs' - 1, continue after a
 * rung.  Stores in 'ends', unless it is null, the end of each rung by search,
 * in seconds from now.  Returns the weighted sum of the ends of the searches
 * and of early phases, or INFINITY as soon as it must exceed 'limit'.  Each
 * second by which a search takes longer than 'latest' times its time in the
 * plain network counts JUDGE_LATE times in addition. */
#define JUDGE_LATE 10
double judge_run(struct judge *, const double factors[], const size_t places[],
                 double limit, double ends[]);

/* Stores the keys of the jobs at the begin of a run. */
void judge_keys(struct judge *, const size_t places[], double keys[]);

/* For 'keys': a job at this moment of a run. */
struct judge_job_state {
    enum judge_state state;
    double until; /* Time at which it exchanges. */
    int64_t iterations;
    double to_early;
    size_t n_moving; /* Flows. */
    size_t n_shards; /* Shards that have not ended. */
    int level;
};

const struct judge_job_state *judge_job(const struct judge *, size_t i);

/* Returns the seconds that job 'i' needs without competitors until its rung
 * ends. */
double judge_alone(const struct judge *, size_t i);

#endif /* order/lookahead/judge.h */
