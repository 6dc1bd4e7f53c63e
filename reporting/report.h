/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORTING_REPORT_H
#define REPORTING_REPORT_H 1

/* Results of the same searches under several policies.
 *
 * The lab and the simulator both compare policies.  Each stores its results in
 * a report, which is printed as a table, written as JSON for programs, and
 * written as an HTML page with charts that needs no network.
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
 * All times are seconds since the start of the policy's run.
 *
 * The report owns all its data and copies its arguments.  A numeric member is
 * NAN until it is set, and is not shown then. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "reporting/interval.h"

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
    double accuracy;            /* NAN if not reported. */
};

struct report_job {
    char *cojob, *job;
    char *outcome;              /* NULL until it has ended. */
    long long iteration;
    double loss, accuracy;      /* Last reported values. */
    double exchange_s;          /* Seconds that its workers spent in exchanges
                                 * without computing, all added up. */

    /* Times within stages, for the mean time of an iteration. */
    double time;                /* Time of the last iteration, or of the start
                                 * of the stage. */
    double busy_s;              /* Sum of the time of 'n_iterations'
                                 * iterations. */
    long long n_iterations;
    size_t n_points, allocated_points;
    struct report_point *points;
    double begin, end; /* Between them it held 'devices'; NAN until
                        * it has ended. */
    int devices;
};

struct report_search {
    char *cojob;
    double start;
    double end;                 /* NAN if it did not end. */
    char *best;                 /* Name of the best job, or NULL. */
    double accuracy, loss;      /* Values of the best job. */
};

/* The times of searches, each from its begin to its end, relative to those
 * under the baseline. */
enum report_search_ratio {
    REPORT_SEARCH_MEAN,  /* Mean of the ratios. */
    REPORT_SEARCH_WORST, /* The largest ratio. */
    REPORT_SEARCH_LATER, /* Share of the searches that take more than
                          * 5 % longer. */
    REPORT_N_SEARCH_RATIOS
};

/* Members of JSON. */
extern const char *const report_search_ratios[REPORT_N_SEARCH_RATIOS];

/* A cojob of commands, which report no accuracy. */
struct report_cojob {
    char *cojob;
    double tagged;              /* Bytes that its hosts sent in its class. */
    double untagged;            /* Unclassified bytes that they sent
                                 * meanwhile. */
};

/* A figure of the simulator. */
struct report_figure {
    const char *title;
    int width; /* Characters in a table. */
    int decimals;
};

struct cJSON;

/* The run of one policy. */
struct report_policy {
    char *name;
    char *failure;              /* Reason why the run did not complete, or
                                 * NULL. */

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

    double coverage;            /* Share of the hosts' IP bytes that was sent
                                 * in the class of a job. */
    double coverage_fabric;     /* Share of the bytes in the switch that had a
                                 * level of a job. */
    double cpu_busy;            /* Mean CPU load of the machine, 0 to 1. */
    double bound_mean_s;        /* Lower bound on the mean SCT. */
    double bound_strict_mean_s; /* Its strict form, see order/fluid/fluid.h;
                                 * NAN if it has none. */
    char *bound_kind;           /* Name of that bound, or NULL: one of
                                 * order_bound_names. */
    double decision_us_max;     /* Longest decision of the controller, us. */
    double decisions;           /* Orders that the controller computed. */
    unsigned int restarts;      /* Restarts of daemons. */
    unsigned int stalls;        /* Stalls of jobs
                                 * (lab/measure/stall-watch.h). */
    char *remark;               /* One line about the run, or NULL. */
    struct cJSON *details;      /* Members of the policy in the JSON that only
                                 * this kind of run has, or NULL. */
    double startup_s;           /* Sum over the jobs of searches of the seconds
                                 * from the begin of the search until the job
                                 * can train. */
    double tcp_timeouts;        /* TCP retransmission timeouts of all hosts. */
    double retransmitted_share; /* Share of TCP's segments with data that were
                                 * sent again. */
    double queue_p99_bytes;     /* 99th percentile of the bytes that wait at a
                                 * port of the switch. */
    char *queues;               /* One line: what chose the queue of a packet
                                 * in the switch, or NULL. */
    const char *congestion_control;     /* "shims" or "tcp" (TCP alone), or
                                 * NULL. */
    char *tcp_congestion_control; /* Name of TCP's between the hosts, such
                                   * as "cubic", or NULL. */

    /* Set by report_finish(). */
    size_t n_ended;             /* Number of ended stages. */
    double mean_sct_s, p95_sct_s, makespan_s;
    double accuracy;            /* Mean over searches of the accuracy of the
                                 * best job. */
    double iteration_s;         /* Mean over jobs of the time of an
                                 * iteration. */
    double exchange_s;          /* Sum over the jobs that reported it. */
    double early_s;             /* Mean over jobs of the seconds from the begin
                                 * of the search until they reported 0.9 of
                                 * their last accuracy. */
    double target_s;            /* Mean over searches of the seconds until a
                                 * job reported 0.99 of the best last accuracy.
                                 */
    double device_s, device_s_to_target; /* Device seconds of their jobs: in
                                          * all, and until then. */
    double ratio; /* mean_sct_s divided by mean_sct_s of the
                   * baseline. */
    double searches_vs_baseline[REPORT_N_SEARCH_RATIOS];

    double *figures; /* 'n_figures' of the report, NAN if
                      * unknown. */
};

struct report {
    char *title;
    char *kind;                 /* "lab" or "sim". */
    char *description;          /* NULL if missing. */
    char *setting;              /* One line about hosts and rates, or NULL. */
    char *inputs;               /* Digest of the files that decide the result,
                                 * or NULL. */
    char *about;                /* See about.h. */
    long long when;             /* Seconds since the epoch. */
    size_t n_figures;           /* If not 0, the page shows these figures in
                                 * place of report_columns. */
    const struct report_figure *figures;
    const char *legend; /* Explains the titles of the columns. */
    size_t n_policies;
    struct report_policy **policies;

    /* Set by report_finish(): see report_baseline_rank(); NULL with only one
     * policy. */
    const struct report_policy *baseline;
    const struct report_policy *candidate;  /* Last policy other than the
                                             * baseline, or NULL. */
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
void report_job_ready(struct report_policy *, const char *cojob,
                      const char *job, double t, double startup);
void report_progress(struct report_policy *, const char *cojob,
                     const char *job, double t, long long iteration,
                     double loss, double accuracy);
void report_job_end(struct report_policy *, const char *cojob, const char *job,
                    const char *outcome, double exchange_s);

/* Notes that a job of a search held 'devices' computing devices from 'begin'
 * to 'end'. */
void report_job_devices(struct report_policy *, const char *cojob,
                        const char *job, double begin, double end,
                        int devices);

void report_cojob(struct report_policy *, const char *cojob, double tagged,
                  double untagged);

void report_set_ports(struct report_policy *, const char *const names[],
                      size_t n);
void report_links(struct report_policy *, double t, const float use[]);

/* Sorts stages by search and rung, and computes the summaries.  Must be called
 * once, after all other changes. */
void report_finish(struct report *);

/* The baseline of a comparison is its first policy with the highest rank: a
 * network without us ("plain"), otherwise "fair", otherwise any. */
int report_baseline_rank(const char *policy);

/* Compares searches with those of the same name in 'base'.  All ratios are
 * NAN if no search has ended in both. */
void report_compare_searches(const struct report_search searches[], size_t n,
                             const struct report_search base[], size_t n_base,
                             double ratios[REPORT_N_SEARCH_RATIOS]);

/* Returns NULL if the policy's run has no such stage. */
const struct report_stage *report_find_stage(const struct report_policy *,
                                             const char *cojob, int rung);

/* Returns the sorted completion times of the stages that ended, which the
 * caller must free, and stores their number in '*n'. */
double *report_stage_times(const struct report_policy *, size_t *n);

/* Returns the mean use of a port, 0 to 1, and stores the maximum in '*max'.
 * Both are NAN without samples. */
double report_port_use(const struct report_policy *, size_t port, double *max);

/* A column of the comparison of policies, which a table and a page show. */
struct report_column {
    const char *title;
    int width;                  /* Characters in a table. */
    int decimals;
    const char *unit;           /* Such as " s". */
    double scale;               /* Factor from the member to 'unit'. */
    size_t offset;              /* Offset of a double in struct
                                 * report_policy. */
};

extern const struct report_column report_columns[];
extern const char report_legend[];
extern const size_t report_n_columns;
double report_column_value(const struct report_column *,
                           const struct report_policy *);

/* Prints what 'policy' gains, in one sentence: 'ratio' is its mean SCT over
 * the one of 'baseline'.  Without a ratio it prints nothing.  'policy' may be
 * NULL if it is the only one. */
void report_put_gain(const char *policy, const char *baseline,
                     struct interval ratio, FILE *);

/* Prints "-" for NAN. */
void report_put_figure(const struct report_figure *, double value, FILE *);

/* Print lines of text: the gain of the candidate; what chose the queues of the
 * switch, once if it is the same for all policies; problems of a run; the
 * result of the comparison. */
void report_put_headline(const struct report *, FILE *);
void report_put_queues(const struct report *, FILE *);
void report_put_remarks(const struct report_policy *, FILE *);
void report_put_conclusion(const struct report *, FILE *);

void report_put_table(const struct report *, FILE *);
void report_put_json(const struct report *, FILE *);
void report_put_page_json(const struct report *, FILE *);
void report_put_html(const struct report *, FILE *);

/* Writes 'text' into a page, where it is no markup. */
void report_put_text(FILE *, const char *text);

/* Writes the page.  Returns NULL or a malloc()'d message. */
char *report_write_html(const struct report *, const char *file);

/* Creates directory 'dir' with report.json and report.html.  Returns NULL or a
 * malloc()'d message. */
char *report_write(const struct report *, const char *dir);

#endif /* reporting/report.h */
