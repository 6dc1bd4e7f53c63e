/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-generate.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "order/problem/memory.h"
#include "sim/fabric/line-reader.h"
#include "sim/workload/random.h"
#include "sim/workload/settings.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"

#define LINK_CAPACITY 1.25e9    /* 10 Gbit/s, in bytes per second. */
#define MIN_MODEL 1e6           /* Bytes: of the middle of a search... */
#define MAX_MODEL 256e6
#define MODEL_SPREAD 1.1        /* ...from which its jobs differ little: they
                                 * train the same under other
                                 * hyper-parameters. */
#define MAX_SEED 0x1p53
#define MAX_HOSTS_OF_JOB 8      /* Workers and servers, or ring. */
#define N_USERS 5

static const char *const placements[] = { "ps", "ring", "mixed", NULL };

void
generate_options_draw(struct generate_options *options, uint64_t seed)
{
    struct sim_random r = { seed };

    *options =
        (struct generate_options){ .seed = seed,
                                   .n_hosts = sim_random_integer(&r, 8, 64),
                                   .n_cojobs = sim_random_integer(&r, 4, 32),
                                   .n_rungs = 3,
                                   .placement = GENERATE_MIXED,
                                   .compute = sim_random_between(&r, 0, 0.8),
                                   .load = 2 };
}

char *
generate_options_parse(const char *text, struct generate_options *o)
{
    const struct setting settings[] = {
        { .name = "hosts", .integer = &o->n_hosts, .min = 2, .max = 4096 },
        { .name = "cojobs", .integer = &o->n_cojobs, .min = 1, .max = 10000 },
        { .name = "jobs", .integer = &o->n_jobs, .min = 1, .max = 256 },
        { .name = "iterations",
          .integer = &o->iterations,
          .min = 1,
          .max = 100000 },
        { .name = "rungs", .integer = &o->n_rungs, .min = 1, .max = 8 },
        { .name = "placement", .integer = &o->placement, .names = placements },
        { .name = "compute", .number = &o->compute, .min = 0, .max = 0.95 },
        { .name = "load", .number = &o->load, .min = 0.01, .max = 10 },
    };
    int length = strcspn(text, ",");
    unsigned long long seed;
    char *end, *error;

    errno = 0;
    seed = strtoull(text, &end, 10);
    if (!isdigit((unsigned char) *text) || end != text + length || errno
        || seed >= MAX_SEED) {
        char *copy = order_must(strndup(text, length));

        if (asprintf(&error, "generate: seed \"%s\" is not an integer from 0 "
                     "to 9007199254740991", line_reader_shown(copy)) < 0) {
            abort();
        }
        free(copy);
        return error;
    }
    generate_options_draw(o, seed);
    return settings_read("generate", *end ? end + 1 : end, settings,
                         sizeof settings / sizeof *settings);
}

/* What the jobs of a search have in common. */
struct shape {
    double model;               /* Bytes. */
    int n_workers;
    int n_servers;              /* 0: a ring of the workers. */
};

static struct shape
draw_shape(const struct generate_options *o, struct sim_random *r)
{
    int max = o->n_hosts < MAX_HOSTS_OF_JOB ? o->n_hosts : MAX_HOSTS_OF_JOB;
    double model = sim_random_log_between(r, MIN_MODEL, MAX_MODEL);
    int n = sim_random_integer(r, 2, max);
    bool ring = o->placement == GENERATE_RING
                || (o->placement == GENERATE_MIXED
                    && sim_random_next(r) >> 63);
    int n_servers = ring ? 0 : sim_random_integer(r, 1, (n + 2) / 3);

    return (struct shape) { model, n - n_servers, n_servers };
}

static void
add_job(struct workload *w, struct workload_cojob *cojob,
        const struct generate_options *o, struct sim_random *r,
        const struct shape *shape)
{
    double bytes = shape->model * sim_random_log_between(r, 1 / MODEL_SPREAD,
                                                         MODEL_SPREAD);
    struct workload_job *job;
    char name[16];

    snprintf(name, sizeof name, "t%zu", cojob->n_jobs);
    job = workload_add_job(cojob, name, 0);
    workload_draw_exchange(job, r, o->n_hosts, shape->n_workers,
                           shape->n_servers, bytes);
    workload_draw_rest(job, r, w->fabric, o->compute);
}

/* Rungs of a successive halving: the first takes some iterations, each next
 * one twice as many, with half of the jobs. */
static void
add_rungs(struct workload *w, struct workload_cojob *cojob,
          const struct generate_options *o, struct sim_random *r)
{
    int64_t iterations = o->iterations ? o->iterations
        : sim_random_integer(r, 4, 12);
    size_t n = cojob->n_jobs;

    for (int i = 0; i < o->n_rungs; i++) {
        workload_add_rung(w, cojob, iterations * ((2 << i) - 1), n);
        n = (n + 1) / 2;
    }
    workload_keep_best(cojob);
}

struct workload *
workload_generate(const struct generate_options *o)
{
    struct workload *w = workload_create(
        "stage", sim_fabric_create(o->n_hosts, LINK_CAPACITY));
    struct sim_random r = { ~o->seed };
    double arrival = 0;

    for (int i = 0; i < o->n_cojobs; i++) {
        int n = o->n_jobs ? o->n_jobs : sim_random_integer(&r, 8, 24);
        struct shape shape = draw_shape(o, &r);
        struct workload_cojob *cojob;
        char name[16];

        snprintf(name, sizeof name, "s%d", i);
        cojob = workload_add_cojob(w, name, 1, arrival);
        snprintf(name, sizeof name, "u%d", sim_random_integer(&r, 1, N_USERS));
        cojob->user = order_strdup(name);
        for (int j = 0; j < n; j++) {
            add_job(w, cojob, o, &r, &shape);
        }
        add_rungs(w, cojob, o, &r);
        arrival += sim_random_gap(&r);
    }
    workload_spread_arrivals(w, o->load);
    return w;
}
