/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-recording.h"

#include <cjson/cJSON.h>
#include <float.h>
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
#define MAX_JOBS 1000 /* Of a stage. */
#define MAX_HOSTS 5000
#define MAX_PARTS 8 /* With more, both directions are nearly at once. */
#define MAX_SECONDS 1e9
#define MAX_BYTES 1e18
#define MAX_MS 1e16             /* Since 1970. */
#define DUST 1e-9               /* Share of a demand that is rounding. */
#define TOLERANCE                                       \
    0.05 /* By which what servers send and what workers \
          * receive may differ. */
#define CHAIN_MS                                        \
    5000 /* Longest time from the end of a stage to the \
          * begin of the next one of its search. */

enum { TX, RX };

/* The hosts as they are found. */
struct hosts {
    size_t n, allocated;
    char **names;
};

/* What one host sends and receives: bytes, then seconds of its ports. */
struct need {
    size_t host;
    double amount[2];
    bool serves; /* As was announced. */
};

struct needs {
    struct need *of; /* Each host once. */
    size_t n, allocated;
};

struct job {
    char *name;
    struct needs needs;
    double moving; /* Seconds in which the host with most bytes moved
                    * some, without waiting; 0 if unknown. */
    size_t rungs;  /* That it has taken part in, in its search. */
};

/* A stage that has ended. */
struct stage {
    char *cojob;
    int rung;
    double began, ended;        /* Milliseconds since 1970. */
    double iterations;          /* At least 1. */
    double compute;             /* Seconds of an iteration. */
    struct needs ports;         /* Of all jobs. */
    struct job *jobs;
    size_t n_jobs;
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
    for (size_t i = 0; i < stage->n_jobs; i++) {
        free(stage->jobs[i].name);
        free(stage->jobs[i].needs.of);
    }
    free(stage->jobs);
    free(stage->ports.of);
    free(stage->cojob);
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

static struct need *
get_need(struct needs *needs, size_t host)
{
    size_t i = 0;

    while (i < needs->n && needs->of[i].host != host) {
        i++;
    }
    if (i == needs->n) {
        needs->of = order_grow(needs->of, ++needs->n, &needs->allocated,
                               sizeof *needs->of);
        needs->of[i] = (struct need){ .host = host };
    }
    return &needs->of[i];
}

/* Reads 'ports', {"h0:tx": amount, ...}, of at most 'max' each.  'item' is the
 * same object: its members have the writer's names, which only cJSON lists. */
static void
read_ports(struct recording *r, const struct json_at *ports, const cJSON *item,
           double max, struct needs *needs)
{
    for (const cJSON *m = item ? item->child : NULL; m && json_ok(r->jc);
         m = m->next) {
        const char *colon = strrchr(m->string, ':');
        double amount;

        if (!colon || colon == m->string
            || (strcmp(colon, ":tx") && strcmp(colon, ":rx"))) {
            json_fail(ports, m->string,
                      "no port; expected a name such as \"h0:tx\" "
                      "or \"h0:rx\"");
            return;
        }
        amount = json_number(ports, m->string, 0, max);
        get_need(needs, find_host(&r->hosts, m->string, colon - m->string))
            ->amount[colon[1] == 't' ? TX : RX] += amount;
        if (r->hosts.n > MAX_HOSTS) {
            json_fail(ports, m->string, "host %zu; expected at most %d",
                      r->hosts.n, MAX_HOSTS);
        }
    }
}

static void
read_servers(struct recording *r, const struct json_at *servers,
             struct needs *needs)
{
    for (size_t i = 0; i < json_n(servers) && json_ok(r->jc); i++) {
        char *host = json_at_name(json_element(servers, i));

        if (host) {
            get_need(needs, find_host(&r->hosts, host, strlen(host)))->serves =
                true;
        }
        free(host);
    }
}

static void
read_job(struct recording *r, const struct json_at *at, const cJSON *item,
         struct job *job)
{
    double busy = json_number_or(at, "busy_s", 0, MAX_SECONDS, 0);

    job->name = json_name(at, "job");
    job->moving = busy - json_number_or(at, "waited_s", 0, MAX_SECONDS, 0);
    json_ignore(at, "gpus");
    json_ignore(at, "devices");
    json_ignore(at, "hosts");
    read_ports(r, json_object(at, "bytes"),
               cJSON_GetObjectItemCaseSensitive(item, "bytes"), MAX_BYTES,
               &job->needs);
    read_servers(r, json_array_or_null(at, "servers", 0, MAX_HOSTS),
                 &job->needs);
}

/* Turns the bytes of the jobs of 'stage' into seconds: at each port, a job has
 * the part of the stage's seconds that it has of the bytes. */
static void
share_seconds(struct stage *stage, size_t n_hosts)
{
    double(*bytes)[2] = order_alloc(n_hosts, sizeof *bytes);
    double(*seconds)[2] = order_alloc(n_hosts, sizeof *seconds);

    for (size_t j = 0; j < stage->n_jobs; j++) {
        const struct needs *needs = &stage->jobs[j].needs;

        for (size_t i = 0; i < needs->n; i++) {
            for (int d = TX; d <= RX; d++) {
                bytes[needs->of[i].host][d] += needs->of[i].amount[d];
            }
        }
    }
    for (size_t i = 0; i < stage->ports.n; i++) {
        memcpy(seconds[stage->ports.of[i].host], stage->ports.of[i].amount,
               sizeof *seconds);
    }
    for (size_t j = 0; j < stage->n_jobs; j++) {
        struct needs *needs = &stage->jobs[j].needs;

        for (size_t i = 0; i < needs->n; i++) {
            size_t host = needs->of[i].host;

            for (int d = TX; d <= RX; d++) {
                if (bytes[host][d] > 0) {
                    needs->of[i].amount[d] *=
                        seconds[host][d] / bytes[host][d];
                }
            }
        }
    }
    free(bytes);
    free(seconds);
}

static struct job *
find_job(const struct stage *stage, const char *name)
{
    for (size_t i = 0; i < stage->n_jobs; i++) {
        if (!strcmp(stage->jobs[i].name, name)) {
            return &stage->jobs[i];
        }
    }
    return NULL;
}

/* A stage without a known job is one job. */
static void
add_only_job(struct stage *stage)
{
    struct job *job = &stage->jobs[stage->n_jobs++];

    job->name = order_must(strdup("jobs"));
    for (size_t i = 0; i < stage->ports.n; i++) {
        *get_need(&job->needs, stage->ports.of[i].host) = stage->ports.of[i];
    }
}

static void
read_jobs(struct recording *r, const struct json_at *at, const cJSON *item,
          struct stage *stage)
{
    const struct json_at *jobs = json_array_or_null(at, "jobs", 0, MAX_JOBS);

    stage->jobs = order_alloc(json_n(jobs) + 1, sizeof *stage->jobs);
    item = item ? item->child : NULL;
    for (size_t i = 0; i < json_n(jobs) && json_ok(r->jc); i++) {
        struct job *job = &stage->jobs[i];

        read_job(r, json_element_object(jobs, i), item, job);
        if (json_ok(r->jc) && find_job(stage, job->name)) {
            json_fail(
                json_element(jobs, i), "job",
                "\"%s\" is the name of another job; expected another name",
                job->name);
        }
        stage->n_jobs++;
        item = item->next;
    }
    if (!stage->n_jobs) {
        add_only_job(stage);
    }
    if (json_ok(r->jc)) {
        share_seconds(stage, r->hosts.n);
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
                  "%.0f is before the stage began; expected 0 or from "
                  "%.0f on",
                  stage->ended, stage->began);
    }
    stage->iterations = json_integer_or(at, "iterations", 1, 1e15, 1);
    stage->compute = json_number_or(at, "compute_s", 0, MAX_SECONDS, 0);
    json_ignore(at, "policy");        /* Of a history. */
    json_ignore(at, "plain_s");
    r->n_stages++;
    read_ports(r, demand, cJSON_GetObjectItemCaseSensitive(item, "demand"),
               MAX_SECONDS, &stage->ports);
    if (stage->ended > 0) {
        read_jobs(r, at, cJSON_GetObjectItemCaseSensitive(item, "jobs"),
                  stage);
    } else { /* It runs: what it needs is not known. */
        json_ignore(at, "jobs");
        r->n_stages--;
        stage_uninit(stage);
        *stage = (struct stage){ .cojob = NULL };
    }
}

/* What a job's transfers are made of. */
struct maker {
    struct workload_job *job;
    struct needs *left;     /* Seconds of an iteration... */
    const struct need *all; /* ...before the transfers. */
    int n_hosts;
    int n_servers; /* The first ones of 'left'; 0 if all hosts send and
                    * receive at once. */
    int n_parts;   /* That a server answers one by one. */
};

/* Returns what 'left->of[i]' has left, without what is rounding. */
static double
left_of(const struct maker *m, int i, int direction)
{
    double left = m->left->of[i].amount[direction];

    return left > DUST * m->all[i].amount[direction] ? left : 0;
}

/* Returns the index of the host with most left other than 'not', which may be
 * -1; -1 without one. */
static int
most(const struct maker *m, int direction, int not )
{
    double largest = 0;
    int best = -1;

    for (int i = 0; i < (int) m->left->n; i++) {
        double left = i != not ? left_of(m, i, direction) : 0;

        if (left > largest) {
            largest = left;
            best = i;
        }
    }
    return best;
}

/* Moves 'seconds' from 'left->of[src]' to 'left->of[dst]'; the host that was
 * not measured that belongs to 'dst' sends if 'src' is -1, and vice versa.
 * Each server has a shard. */
static void
carry(struct maker *m, int src, int dst, int phase, double seconds)
{
    struct need *of = m->left->of;
    int server = src >= 0 && src < m->n_servers ? src : dst;

    workload_add_transfer(
        m->job, src < 0 ? m->n_hosts + (int) of[dst].host : (int) of[src].host,
        dst < 0 ? m->n_hosts + (int) of[src].host : (int) of[dst].host,
        seconds * LINK_CAPACITY,
        server >= 0 && server < m->n_servers ? server : 0, phase);
    if (src >= 0) {
        of[src].amount[TX] -= seconds;
    }
    if (dst >= 0) {
        of[dst].amount[RX] -= seconds;
    }
}

/* The host with most to send sends to the host with most to receive. */
static void
carry_at_once(struct maker *m)
{
    int src, dst;

    while ((src = most(m, TX, -1)) >= 0 && (dst = most(m, RX, src)) >= 0) {
        carry(m, src, dst, 0, fmin(left_of(m, src, TX), left_of(m, dst, RX)));
    }
}

/* Servers use 'direction' of their ports: each moves to or from each worker in
 * proportion to what both have.  It sends a part when it has received it. */
static void
carry_in_turn(struct maker *m, int direction)
{
    double servers = 0, workers = 0, larger;

    for (int i = 0; i < (int) m->left->n; i++) {
        *(i < m->n_servers ? &servers : &workers) +=
            m->all[i].amount[i < m->n_servers ? direction : !direction];
    }
    larger = fmax(fmax(servers, workers), DBL_MIN);
    for (int s = 0; s < m->n_servers; s++) {
        for (int w = m->n_servers; w < (int) m->left->n; w++) {
            double seconds = m->all[s].amount[direction]
                             * m->all[w].amount[!direction] / larger;

            for (int p = 0; p < m->n_parts && seconds > 0; p++) {
                carry(m, direction == TX ? s : w, direction == TX ? w : s,
                      p + (direction == TX), seconds / m->n_parts);
            }
        }
    }
}

/* Servers first, then those that send most. */
static int
compare_servers(const void *a_, const void *b_)
{
    const struct need *a = a_, *b = b_;

    return (a->serves != b->serves ? b->serves - a->serves
            : a->amount[TX] != b->amount[TX]
                ? (a->amount[TX] > b->amount[TX] ? -1 : 1)
                : (a->host > b->host) - (a->host < b->host));
}

/* Puts the servers first: those that were announced, otherwise as many of the
 * hosts that send most as send what the others receive.  Returns their number.
 */
static int
find_servers(struct needs *left)
{
    double received = 0, sent = 0;
    size_t n = 0;

    qsort(left->of, left->n, sizeof *left->of, compare_servers);
    while (n < left->n && left->of[n].serves) {
        n++;
    }
    if (n) {
        return n;
    }
    for (size_t i = 0; i < left->n; i++) {
        received += left->of[i].amount[RX];
    }
    while (n + 1 < left->n && sent < received * (1 - TOLERANCE)) {
        sent += left->of[n].amount[TX];
        received -= left->of[n++].amount[RX];
    }
    return n;
}

/* Lets an iteration of 'job' put the seconds of 'left' on the ports of
 * 'n_hosts' hosts.  Each has a partner without measurements, 'n_hosts' places
 * after it.  Servers answer 'n_parts' parts, 0 is without servers.  Uses
 * 'left' up. */
static void
add_transfers(struct workload_job *job, struct needs *left, int n_parts,
              int n_hosts)
{
    struct maker m = { .job = job,
                       .left = left,
                       .n_hosts = n_hosts,
                       .n_servers = n_parts ? find_servers(left) : 0,
                       .n_parts = n_parts };
    struct need *all = order_alloc(left->n, sizeof *all);

    memcpy(all, left->of, left->n * sizeof *all);
    m.all = all;
    if (n_parts) {
        carry_in_turn(&m, RX);
        carry_in_turn(&m, TX);
    } else {
        carry_at_once(&m);
    }
    for (int i = 0; i < (int) left->n; i++) {
        bool serves = i < m.n_servers;

        carry(&m, i, -1, serves ? n_parts : 0, left_of(&m, i, TX));
        carry(&m, -1, i, serves ? 0 : n_parts, left_of(&m, i, RX));
    }
    free(all);
}

/* Merges 'merged' iterations into one. */
static void
merge_iterations(struct stage *stage, double merged)
{
    double n = fmax(1, floor(stage->iterations / fmax(1, merged)));

    stage->compute *= stage->iterations / n;
    stage->iterations = n;
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
 * as the next rung of its search, with some of its jobs. */
static bool
follows(const struct stage *stage)
{
    if (stage->rung != stage[-1].rung + 1
        || strcmp(stage->cojob, stage[-1].cojob)
        || fabs(stage->began - stage[-1].ended) > CHAIN_MS) {
        return false;
    }
    for (size_t i = 0; i < stage->n_jobs; i++) {
        if (!find_job(&stage[-1], stage->jobs[i].name)) {
            return false;
        }
    }
    return true;
}

/* Those that took part in most rungs first, then by name. */
static int
compare_jobs(const void *a_, const void *b_)
{
    const struct job *a = a_, *b = b_;

    return (a->rungs != b->rungs ? (a->rungs > b->rungs ? -1 : 1)
                                 : strcmp(a->name, b->name));
}

/* Returns into how many parts the transfers of 'job' are divided, which a
 * server receives and then sends: with n of them, both directions take (n + 1)
 * / n of the time of the longer one.  0 if they take no longer together, as in
 * a ring. */
static int
count_parts(const struct job *job)
{
    double most = 0;

    for (size_t i = 0; i < job->needs.n; i++) {
        const double *amount = job->needs.of[i].amount;

        most = fmax(most, fmax(amount[TX], amount[RX]));
    }
    if (job->moving * MAX_PARTS < most * (MAX_PARTS + 1)) {
        return 0;
    }
    return fmax(1, round(most / (job->moving - most)));
}

/* Adds job 'first' of the first one of 'stages', with what it needed in all of
 * its rungs. */
static void
add_job(struct workload_cojob *cojob, const struct stage *stages,
        const struct job *first, int n_hosts)
{
    struct needs needs = { .n = 0 };
    double iterations = 0, compute = 0;
    struct workload_job *job;

    for (size_t i = 0; i < first->rungs; i++) {
        const struct needs *own = &find_job(&stages[i], first->name)->needs;

        iterations += stages[i].iterations;
        compute += stages[i].iterations * stages[i].compute;
        for (size_t k = 0; k < own->n; k++) {
            const struct need *of = &own->of[k];
            struct need *sum = get_need(&needs, of->host);

            sum->amount[TX] += of->amount[TX];
            sum->amount[RX] += of->amount[RX];
            sum->serves |= of->serves;
        }
    }
    for (size_t k = 0; k < needs.n; k++) {
        needs.of[k].amount[TX] /= iterations;
        needs.of[k].amount[RX] /= iterations;
    }
    job = workload_add_job(cojob, first->name, compute / iterations);
    if (needs.n) {
        add_transfers(job, &needs, count_parts(first), n_hosts);
    }
    free(needs.of);
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
    for (size_t j = 0; j < stages->n_jobs; j++) {
        struct job *job = &stages->jobs[j];

        while (job->rungs < n && find_job(&stages[job->rungs], job->name)) {
            job->rungs++;
        }
    }
    qsort(stages->jobs, stages->n_jobs, sizeof *stages->jobs, compare_jobs);
    for (size_t j = 0; j < stages->n_jobs; j++) {
        add_job(cojob, stages, &stages->jobs[j], n_hosts);
    }
    for (size_t i = 0; i < n; i++) {
        iterations += stages[i].iterations;
        workload_add_rung(w, cojob, iterations, stages[i].n_jobs);
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
        merge_iterations(&r->stages[i], iterations / RECORDING_MAX_ITERATIONS);
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
