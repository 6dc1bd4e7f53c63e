/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_SPEC_H
#define SEARCH_SPEC_H 1

/* What a search shall try, read from JSON.
 *
 *
 * Motivation
 * ==========
 *
 * A search file says which hyper-parameters to choose from, when to judge the
 * jobs and how many to keep, and where the jobs run:
 *
 *    {"name": "asha", "weight": 1, "seed": 1, "trials": 9,
 *     "space": {"learning_rate": {"min": 0.001, "max": 1, "scale": "log"},
 *               "width": [256, 512], "batch": [64]},
 *     "rungs": [{"iterations": 20, "keep": 3}, {"iterations": 60}],
 *     "placements": [{"workers": ["h0", "h1"], "servers": ["h2"]}],
 *     "model": {"inputs": 64, "hidden_layers": 2, "classes": 10},
 *     "data": {"kind": "generated", "samples": 8192},
 *     "sync": "ssp,staleness=3", "momentum": 0.9, "sample_cost_us": 0,
 *     "eval_every": 10, "congestion": "cubic", "backend": "cpu"}
 *
 * "learning_rate" is a list or a range.  "batch" is an iteration's samples of
 * all workers together.  "iterations" counts from a job's beginning, "keep" of
 * the last rung is 1 unless given.  Trial i uses placement i modulo their
 * number.  "sync" is what the trainer's '--sync' takes.  model.h has the other
 * models and data.
 *
 *
 * Usage
 * =====
 *
 * A file by itself:
 *
 *    error = search_spec_from_file(file, hosts, &spec);
 *
 * A search inside of something else, whose reader reports the errors:
 *
 *    search_spec_from_json(at, &spec);
 *    search_spec_check(at, spec, hosts);
 *    error = json_check_close(jc);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, owned by the caller, immutable after it is read.  After an error
 * of the JSON a specification is incomplete: good for search_spec_destroy(),
 * search_spec_check() and nothing else. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/search/model.h"

struct json_at;
struct search_hosts;

/* Where the jobs of some trials run. */
struct search_placement {
    size_t n_workers, n_servers;
    char **workers, **servers;  /* Names of hosts; may repeat. */
};

/* One judgement. */
struct search_rung {
    int64_t iterations;         /* Since a job's beginning; rising. */
    int keep;                   /* Jobs that go on, at least 1. */
};

struct search_spec {
    char *name;                 /* Of the cojob. */
    double weight;              /* 1 is an ordinary search. */
    int64_t seed;               /* Of the choices, and of all jobs. */
    int n_trials;

    /* Learning rates: a list, or if 'n_rates' is 0 a range. */
    size_t n_rates;
    double *rates;
    double rate_min, rate_max;
    bool rate_log;              /* The range is even in the logarithm. */
    size_t n_widths, n_batches; /* A model without widths has one, 0. */
    int64_t *widths, *batches;

    size_t n_rungs;
    struct search_rung *rungs;
    size_t n_placements;
    struct search_placement *placements;

    struct search_model model;
    char *sync;                 /* Of the jobs; NULL: the trainer's own. */
    double momentum;
    double sample_cost_us;      /* Emulated, of one sample. */
    int64_t eval_every;         /* Iterations. */
    char *congestion;           /* TCP's, NULL for the system's. */
    const char *backend;        /* Where workers compute: "auto", "cpu" or
                                 * "cuda".  Static. */
};

/* The hyper-parameters of one job. */
struct search_trial {
    double learning_rate;
    int width, batch;
    const struct search_placement *placement;
};

void search_spec_from_json(const struct json_at *, struct search_spec **);
void search_spec_destroy(struct search_spec *);

/* Reports hosts that do not exist, or have too few slots for all of the
 * search's jobs at once. */
void search_spec_check(const struct json_at *, const struct search_spec *,
                       const struct search_hosts *);

/* Processes that the search has at most on 'host'. */
int search_spec_processes(const struct search_spec *, const char *host);

/* Reads a file, and checks it against 'hosts' if that is nonnull.  Returns
 * NULL or a message. */
char *search_spec_from_file(const char *file, const struct search_hosts *,
                            struct search_spec **);

/* The choices of trial 'i', the same whenever asked, spread evenly over the
 * space and without repetition while it lasts. */
struct search_trial search_spec_trial(const struct search_spec *, int i);

/* Of the model of 'trial'. */
size_t search_spec_n_parameters(const struct search_spec *,
                                const struct search_trial *);

#endif /* trainer/search/spec.h */
