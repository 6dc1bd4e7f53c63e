/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORT_H
#define REPORT_H 1

/* What happened when the same searches ran under several policies.
 *
 *
 * Motivation
 * ==========
 *
 * The lab and the simulator both compare policies.  Each fills this with what
 * it saw, and from here come the table that people read first, the JSON that
 * programs read, and one HTML page with pictures that needs no network.
 *
 *
 * Usage
 * =====
 *
 *    struct report *r = report_create("quickstart", "lab");
 *    struct report_policy *p = report_add_policy(r, "stage");
 *
 *    report_stage_begin(p, "asha", 0, 1.5, 3);
 *    report_progress(p, "asha", "t0", 1.7, 12, 2.1, 0.3);
 *    report_stage_end(p, "asha", 0, 9.5);
 *    ...
 *    report_finish(r);
 *    report_put_table(r, stdout);
 *    error = report_write(r, "report");  // report.json, report.html
 *
 * All times are seconds from the beginning of the policy's run.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The report owns everything in it and copies what it is given.  A numeric
 * member that nobody has set is NAN and is not shown. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct report_stage {
    char *cojob;
    int rung;
    int n_jobs;
    double start;
    double end;                 /* NAN if it did not end. */
};

struct report_point {
    double time;
    long long iteration;
    double loss;
    double accuracy;            /* NAN if not told. */
};

struct report_job {
    char *cojob, *job;
    char *outcome;              /* NULL until it has ended. */
    long long iteration;
    double loss, accuracy;      /* The last ones told. */

    /* Of its stages, from their beginnings to the last iteration told. */
    double time;                /* When 'iteration' was told, or its stage
                                 * began. */
    double busy_s;              /* The sum, of... */
    long long n_iterations;     /* ...so many. */
    size_t n_points, allocated_points;
    struct report_point *points;
};

struct report_search {
    char *cojob;
    double start;
    double end;                 /* NAN if it did not end. */
    char *best;                 /* Name of the best job, or NULL. */
    double accuracy, loss;      /* Of the best job. */
};

/* A cojob of commands, which tell no accuracy. */
struct report_cojob {
    char *cojob;
    double tagged;              /* Bytes that its hosts sent for it, and for
                                 * nobody meanwhile. */
    double untagged;
};

/* What faults did that a lab made, see lab/run/faults.h. */
struct report_ha {
    unsigned int faults;        /* 0 if the lab made none. */
    unsigned int back;          /* After which the order came back. */
    double order_back_s;        /* The longest time that took. */
    unsigned int switch_changes;        /* That came to the switch. */
    unsigned int switch_refused;        /* Roles and changes it refused. */
    unsigned int double_masters;        /* Changes that the switch took from
                                         * who was not its primary. */
    unsigned int same_leads;    /* Looks at which two had one generation. */
    double overlap_s;           /* The longest time that one did not know yet
                                 * that another one led. */
    unsigned int flows_flushed; /* Of the switch. */
    unsigned int stages_lost;   /* That ended, but not for the controller. */
};

/* One policy's run. */
struct report_policy {
    char *name;
    char *failure;              /* Why the run did not complete, or NULL. */

    size_t n_stages, allocated_stages;
    struct report_stage *stages;
    size_t n_jobs, allocated_jobs;
    struct report_job *jobs;
    size_t n_searches, allocated_searches;
    struct report_search *searches;
    size_t n_cojobs, allocated_cojobs;
    struct report_cojob *cojobs;

    /* Use of each link direction, 0 to 1, at each of 'n_samples' times. */
    size_t n_ports;
    char **ports;
    size_t n_samples, allocated_samples;
    double *sample_times;
    float *use;                 /* n_samples rows of n_ports. */

    double coverage;            /* IP bytes of jobs that were tagged. */
    double coverage_fabric;     /* The same as the switch saw it. */
    double cpu_busy;            /* Of the machine, mean, 0 to 1. */
    double cpu_daemons_s;       /* Processor time of our programs... */
    double cpu_jobs_s;          /* ...and of the training. */
    double bound_mean_s;        /* Certificate: lower bound on the mean SCT. */
    double gap_mean;            /* Of the orders: estimate / bound. */
    double decision_us_max;     /* Of the controller. */
    double decisions;           /* Orders that the controller computed. */
    unsigned int restarts;      /* Daemons that had to be started again. */
    unsigned int stalls;        /* Times a job stood still, see the lab. */
    struct report_ha ha;
    double tcp_timeouts;        /* TCP retransmission timeouts of all hosts. */

    /* From report_finish(). */
    size_t n_ended;             /* Stages that ended. */
    double mean_sct_s, p95_sct_s, makespan_s;
    double accuracy;            /* Mean over searches of the best job's. */
    double iteration_s;         /* Mean over jobs of an iteration's time. */
    double ratio;               /* mean_sct_s / that of the baseline. */
};

struct report {
    char *title;
    char *kind;                 /* "lab" or "sim". */
    char *description;          /* NULL if there is none. */
    char *setting;              /* Hosts, rate...: one line, or NULL. */
    long long when;             /* Seconds since the epoch. */
    size_t n_policies;
    struct report_policy **policies;

    /* From report_finish(): "fair" or else the first is what others are
     * compared with, NULL if there is only one policy. */
    const struct report_policy *baseline;
    const struct report_policy *candidate;  /* The last other one, or NULL. */
};

struct report *report_create(const char *title, const char *kind);
void report_destroy(struct report *);
void report_set(char **member, const char *value);
struct report_policy *report_add_policy(struct report *, const char *name);

void report_search_begin(struct report_policy *, const char *cojob, double t);
void report_search_end(struct report_policy *, const char *cojob, double t,
                       const char *best);
void report_stage_begin(struct report_policy *, const char *cojob, int rung,
                        double t, int n_jobs);
void report_stage_end(struct report_policy *, const char *cojob, int rung,
                      double t);
void report_progress(struct report_policy *, const char *cojob,
                     const char *job, double t, long long iteration,
                     double loss, double accuracy);
void report_job_end(struct report_policy *, const char *cojob,
                    const char *job, const char *outcome);

void report_cojob(struct report_policy *, const char *cojob, double tagged,
                  double untagged);

void report_set_ports(struct report_policy *, const char *const names[],
                      size_t n);
void report_links(struct report_policy *, double t, const float use[]);

/* Sorts stages by search and rung, and computes the summaries.  Must be called
 * once, after all other changes. */
void report_finish(struct report *);

/* Returns NULL if the policy's run has no such stage. */
const struct report_stage *report_find_stage(const struct report_policy *,
                                             const char *cojob, int rung);

/* Returns the sorted completion times of the stages that ended, which the
 * caller must free, and stores their number in '*n'. */
double *report_stage_times(const struct report_policy *, size_t *n);

/* Returns the mean use of a port, 0 to 1, and stores the maximum in '*max'.
 * Both are NAN without samples. */
double report_port_use(const struct report_policy *, size_t port,
                       double *max);

/* A column of the comparison of policies, which a table and a page show. */
struct report_column {
    const char *title;
    int width;                  /* Characters in a table. */
    int decimals;
    const char *unit;           /* Such as " s". */
    double scale;               /* The value's factor for 'unit'. */
    size_t offset;              /* Of a double in struct report_policy. */
};

extern const struct report_column report_columns[];
extern const size_t report_n_columns;
double report_column_value(const struct report_column *,
                           const struct report_policy *);

/* Write lines of text: problems of a run, and the results of the comparison. */
void report_put_remarks(const struct report_policy *, FILE *);
void report_put_conclusion(const struct report *, FILE *);

void report_put_table(const struct report *, FILE *);
void report_put_json(const struct report *, FILE *);
void report_put_page_json(const struct report *, FILE *);
void report_put_html(const struct report *, FILE *);

/* Makes directory 'dir' and in it report.json and report.html.  Returns NULL
 * or a malloc()'d message. */
char *report_write(const struct report *, const char *dir);

#endif /* reporting/report.h */
