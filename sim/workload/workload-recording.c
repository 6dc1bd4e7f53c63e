/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-recording.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "base/stage-name.h"
#include "order/problem/memory.h"
#include "sim/workload/workload.h"

#define LINK_CAPACITY 1.25e9    /* What seconds are counted in bytes by. */
#define MAX_STAGES 20000
#define MAX_HOSTS 5000
#define MAX_SECONDS 1e9
#define MAX_MS 1e16             /* Since 1970. */
#define DUST 1e-9               /* Share of a demand that is rounding. */
#define NOISE                                            \
    0.01 /* Share of the demand of an iteration by which \
          * the iterations of a job differ. */
#define CHAIN_MS                                        \
    5000 /* Longest time from the end of a stage to the \
          * begin of the next one of its search. */

enum { TX, RX };

/* The hosts as they are found. */
struct hosts {
    size_t n, allocated;
    char **names;
};

/* A stage that has ended. */
struct stage {
    char *cojob;
    int rung;
    double began, ended;        /* Milliseconds since 1970. */
    double iterations;          /* At least 1. */
    double compute;             /* Seconds of an iteration. */
    double *seconds[2];         /* Of each host's TX and RX, 'n' of them. */
    size_t n, allocated[2];
};

struct recording {
    struct json_check *jc;
    struct hosts hosts;
    size_t n_stages;
    struct stage *stages;
};

static void
stage_uninit(struct stage *stage)
{
    free(stage->cojob);
    free(stage->seconds[TX]);
    free(stage->seconds[RX]);
}

static size_t
find_host(struct hosts *hosts, const char *name, size_t length)
{
    for (size_t i = 0; i < hosts->n; i++) {
        if (strlen(hosts->names[i]) == length
            && !strncmp(hosts->names[i], name, length)) {
            return i;
        }
    }
    hosts->names = order_grow(hosts->names, hosts->n + 1, &hosts->allocated,
                              sizeof *hosts->names);
    hosts->names[hosts->n] = order_must(strndup(name, length));
    return hosts->n++;
}

static void
stage_add(struct stage *stage, size_t host, int direction, double seconds)
{
    if (host >= stage->n) {
        for (int d = TX; d <= RX; d++) {
            stage->seconds[d] = order_grow(stage->seconds[d], host + 1,
                                           &stage->allocated[d],
                                         sizeof *stage->seconds[d]);
            memset(&stage->seconds[d][stage->n], 0,
                   (host + 1 - stage->n) * sizeof *stage->seconds[d]);
        }
        stage->n = host + 1;
    }
    stage->seconds[direction][host] += seconds;
}

/* Reads "demand" into 'stage'.  'item' is the same object: its members have
 * the writer's names, which only cJSON lists. */
static void
read_demand(struct recording *r, const struct json_at *demand,
            const cJSON *item, struct stage *stage)
{
    for (const cJSON *m = item ? item->child : NULL; m && json_ok(r->jc);
         m = m->next) {
        const char *colon = strrchr(m->string, ':');
        double seconds;

        if (!colon || colon == m->string
            || (strcmp(colon, ":tx") && strcmp(colon, ":rx"))) {
            json_fail(demand, m->string, "no port, a name such as \"h0:tx\" "
                      "or \"h0:rx\" is allowed");
            return;
        }
        seconds = json_number(demand, m->string, 0, MAX_SECONDS);
        stage_add(stage, find_host(&r->hosts, m->string, colon - m->string),
                  colon[1] == 't' ? TX : RX, seconds);
        if (r->hosts.n > MAX_HOSTS) {
            json_fail(demand, m->string, "host %zu, at most %d are allowed",
                      r->hosts.n, MAX_HOSTS);
        }
    }
}

static void
read_stage(struct recording *r, const struct json_at *at, const cJSON *item)
{
    struct stage *stage = &r->stages[r->n_stages];
    const struct json_at *demand;

    stage->cojob = json_name(at, "cojob");
    stage->rung = json_integer(at, "rung", 0, 1000000);
    demand = json_object(at, "demand");
    stage->began = json_integer(at, "began", 0, MAX_MS);
    stage->ended = json_integer(at, "ended", 0, MAX_MS);
    if (stage->ended > 0 && stage->ended < stage->began) {
        json_fail(at, "ended",
                  "%.0f is before the stage began, 0 or from "
                  "%.0f on is allowed",
                  stage->ended, stage->began);
    }
    stage->iterations = json_integer_or(at, "iterations", 1, 1e15, 1);
    stage->compute = json_number_or(at, "compute_s", 0, MAX_SECONDS, 0);
    json_ignore(at, "policy");        /* Of a history. */
    json_ignore(at, "jobs");          /* Parts of the demand. */
    r->n_stages++;
    read_demand(r, demand, cJSON_GetObjectItemCaseSensitive(item, "demand"),
                stage);
    if (!(stage->ended > 0)) { /* It runs: what it needs is not known. */
        r->n_stages--;
        stage_uninit(stage);
        *stage = (struct stage){ .cojob = NULL };
    }
}

/* Returns the host with most left other than 'not', which may be -1. */
static int
most(const double *left, size_t n, int not)
{
    int best = -1;

    for (int i = 0; i < (int) n; i++) {
        if (i != not && left[i] > 0 && (best < 0 || left[i] > left[best])) {
            best = i;
        }
    }
    return best;
}

static void
carry(struct workload_job *job, struct stage *stage, int src, int dst,
      double seconds)
{
    workload_add_transfer(job, src, dst, seconds * LINK_CAPACITY, 0, 0);
    if (src < (int) stage->n) {
        stage->seconds[TX][src] -= seconds;
    }
    if (dst < (int) stage->n) {
        stage->seconds[RX][dst] -= seconds;
    }
}

/* Lets an iteration of 'job' put the stage's seconds on the ports of 'n_hosts'
 * hosts, each of which has one that was not measured that many further on.
 * Uses the stage's seconds up. */
static void
add_transfers(struct workload_job *job, struct stage *stage, int n_hosts)
{
    double *tx = stage->seconds[TX], *rx = stage->seconds[RX];
    int src, dst;

    while ((src = most(tx, stage->n, -1)) >= 0) {
        dst = most(rx, stage->n, src);
        if (dst < 0) {
            break;
        }
        if (fabs(tx[src] - rx[dst]) <= DUST * tx[src]) {
            carry(job, stage, src, dst, tx[src]);
            rx[dst] = 0;
        } else {
            carry(job, stage, src, dst, fmin(tx[src], rx[dst]));
        }
    }
    for (int i = 0; i < (int) stage->n; i++) {
        carry(job, stage, i, n_hosts + i, tx[i]);
        carry(job, stage, n_hosts + i, i, rx[i]);
    }
}

/* Replaces the seconds of 'stage' by those of an iteration, after merging
 * 'merged' into one. */
static void
make_iteration(struct stage *stage, double merged)
{
    double n = fmax(1, floor(stage->iterations / fmax(1, merged)));

    stage->compute *= stage->iterations / n;
    stage->iterations = n;
    for (size_t i = 0; i < stage->n; i++) {
        stage->seconds[TX][i] /= n;
        stage->seconds[RX][i] /= n;
    }
}

/* Subtracts an iteration of 'next' from one of 'stage': some of its jobs
 * continue. */
static void
keep_losers(struct stage *stage, const struct stage *next)
{
    for (int d = TX; d <= RX; d++) {
        for (size_t i = 0; i < stage->n && i < next->n; i++) {
            double left = stage->seconds[d][i] - next->seconds[d][i];

            stage->seconds[d][i] =
                left > NOISE * stage->seconds[d][i] ? left : 0;
        }
    }
}

/* By search, then by begin. */
static int
compare_stages(const void *a_, const void *b_)
{
    const struct stage *a = a_, *b = b_;
    int cmp = strcmp(a->cojob, b->cojob);

    return (cmp ? cmp
            : a->began != b->began
                ? (a->began < b->began ? -1 : 1)
                : (a->rung > b->rung) - (a->rung < b->rung));
}

/* Returns true if 'stage' began when the one before it in the recording ended,
 * as the next rung of its search. */
static bool
follows(const struct stage *stage)
{
    return (stage->rung == stage[-1].rung + 1
            && !strcmp(stage->cojob, stage[-1].cojob)
            && fabs(stage->began - stage[-1].ended) <= CHAIN_MS);
}

/* Adds the search of 'n' stages that follow each other. */
static void
add_search(struct workload *w, struct stage *stages, size_t n, double first,
           int n_hosts)
{
    struct workload_cojob *cojob;
    double iterations = 0;
    char *name;

    if (asprintf(&name, STAGE_NAME_FMT, stages->cojob, stages->rung) < 0) {
        abort();
    }
    cojob = workload_add_cojob(w, name, 1, (stages->began - first) / 1000);
    free(name);
    for (size_t i = 0; i + 1 < n; i++) {
        keep_losers(&stages[i], &stages[i + 1]);
    }
    for (size_t i = n; i-- > 0;) {
        add_transfers(workload_add_job(cojob, "jobs", stages[i].compute),
                      &stages[i], n_hosts);
    }
    for (size_t i = 0; i < n; i++) {
        iterations += stages[i].iterations;
        workload_add_rung(w, cojob, iterations, n - i);
    }
}

static struct workload *
make_workload(struct recording *r)
{
    int n_hosts = r->hosts.n;
    struct workload *w = workload_create(
        "stage", sim_fabric_create(n_hosts ? 2 * n_hosts : 1, LINK_CAPACITY));
    double first = INFINITY, iterations = 0;
    size_t n;

    for (size_t i = 0; i < r->n_stages; i++) {
        first = fmin(first, r->stages[i].began);
        iterations += r->stages[i].iterations;
    }
    for (size_t i = 0; i < r->n_stages; i++) {
        make_iteration(&r->stages[i], iterations / RECORDING_MAX_ITERATIONS);
    }
    qsort(r->stages, r->n_stages, sizeof *r->stages, compare_stages);
    for (size_t i = 0; i < r->n_stages; i += n) {
        n = 1;
        while (i + n < r->n_stages && follows(&r->stages[i + n])) {
            n++;
        }
        add_search(w, &r->stages[i], n, first, n_hosts);
    }
    return w;
}

static void
recording_uninit(struct recording *r)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        stage_uninit(&r->stages[i]);
    }
    free(r->stages);
    free_strings(r->hosts.names, r->hosts.n);
}

char *
workload_recording_from_string(const char *name, const char *text,
                               struct workload **wp)
{
    static const char *const others[] = {
        "bound_mean_s", "bound_kind", "gap_mean", "gap_worst", "decisions",
    };
    struct recording r = { .jc = json_check_open(name, text) };
    const struct json_at *top = json_check_top(r.jc);
    const struct json_at *stages = json_array(top, "stages", 1, MAX_STAGES);
    cJSON *root = cJSON_Parse(text);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, "stages");
    char *error;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        json_ignore(top, others[i]);
    }
    r.stages = order_alloc(json_n(stages), sizeof *r.stages);
    item = item ? item->child : NULL;
    for (size_t i = 0; i < json_n(stages) && json_ok(r.jc); i++) {
        read_stage(&r, json_element_object(stages, i), item);
        item = item->next;
    }
    if (!r.n_stages) {
        json_fail(top, "stages", "no stage has ended, at least one is needed");
    }
    error = json_check_close(r.jc);
    *wp = error ? NULL : make_workload(&r);
    cJSON_Delete(root);
    recording_uninit(&r);
    return error;
}
