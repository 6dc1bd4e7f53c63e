/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-recording.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

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

enum { TX, RX };

/* The hosts as they are found. */
struct hosts {
    size_t n, allocated;
    char **names;
};

/* A stage that has ended. */
struct stage {
    char *name;
    double began;               /* Milliseconds since 1970. */
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
    char *cojob = json_name(at, "cojob");
    int rung = json_integer(at, "rung", 0, 1000000);
    const struct json_at *demand = json_object(at, "demand");
    double ended;

    stage->began = json_integer(at, "began", 0, MAX_MS);
    ended = json_integer(at, "ended", 0, MAX_MS);
    if (ended > 0 && ended < stage->began) {
        json_fail(at, "ended", "%.0f is before the stage began, 0 or from "
                  "%.0f on is allowed", ended, stage->began);
    }
    if (asprintf(&stage->name, STAGE_NAME_FMT, cojob ? cojob : "", rung) < 0) {
        abort();
    }
    free(cojob);
    stage->iterations = json_integer_or(at, "iterations", 1, 1e15, 1);
    stage->compute = json_number_or(at, "compute_s", 0, MAX_SECONDS, 0);
    json_ignore(at, "policy");        /* Of a history. */
    r->n_stages++;
    read_demand(r, demand, cJSON_GetObjectItemCaseSensitive(item, "demand"),
                stage);
    if (!(ended > 0)) {         /* It runs: what it needs is not known. */
        r->n_stages--;
        free(stage->name);
        free(stage->seconds[TX]);
        free(stage->seconds[RX]);
        *stage = (struct stage) { .name = NULL };
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
    workload_add_transfer(job, src, dst,
                          seconds / stage->iterations * LINK_CAPACITY, 0, 0);
    if (src < (int) stage->n) {
        stage->seconds[TX][src] -= seconds;
    }
    if (dst < (int) stage->n) {
        stage->seconds[RX][dst] -= seconds;
    }
}

/* Lets 'job' put the stage's seconds on the ports of 'n_hosts' hosts, each of
 * which has one that was not measured that many further on.  Uses the stage's
 * seconds up. */
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

static struct workload *
make_workload(struct recording *r)
{
    int n_hosts = r->hosts.n;
    struct workload *w = workload_create(
        "stage", sim_fabric_create(n_hosts ? 2 * n_hosts : 1, LINK_CAPACITY));
    double first = INFINITY, iterations = 0, merged;

    for (size_t i = 0; i < r->n_stages; i++) {
        first = fmin(first, r->stages[i].began);
        iterations += r->stages[i].iterations;
    }
    merged = fmax(1, iterations / RECORDING_MAX_ITERATIONS);
    for (size_t i = 0; i < r->n_stages; i++) {
        struct stage *stage = &r->stages[i];
        struct workload_cojob *cojob = workload_add_cojob(
            w, stage->name, 1, (stage->began - first) / 1000);

        double all = stage->compute * stage->iterations;

        stage->iterations = fmax(1, floor(stage->iterations / merged));
        add_transfers(workload_add_job(cojob, "jobs", all / stage->iterations),
                      stage, n_hosts);
        workload_add_rung(w, cojob, stage->iterations, 1);
    }
    return w;
}

static void
recording_uninit(struct recording *r)
{
    for (size_t i = 0; i < r->n_stages; i++) {
        free(r->stages[i].name);
        free(r->stages[i].seconds[TX]);
        free(r->stages[i].seconds[RX]);
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
