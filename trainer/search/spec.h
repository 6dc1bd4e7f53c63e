/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_SPEC_H
#define SEARCH_SPEC_H 1

/* Specification of a search, in JSON.
 *
 * A search file has the hyper-parameters to choose from, the rungs with the
 * number of jobs to keep, and the hosts of the jobs:
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
 * "learning_rate" is a list or a range.  "batch" is the number of samples of
 * an iteration over all workers.  Trial i uses placement i modulo their
 * number.  "sync" is a value of the trainer's '--sync', or a scheme without a
 * server, such as "adpsgd" or "prague,group=2": placements have no "servers"
 * then, and the workers are peers.  struct search_model lists other
 * models and data, wire/rungs.h has "rungs" and how
 * a search judges.
 *
 * A file by itself:
 *
 *    error = search_spec_from_file(file, hosts, &spec);
 *
 * A search inside another document.  The reader of the document reports the
 * errors:
 *
 *    search_spec_from_json(at, &spec);
 *    search_spec_check(at, spec, hosts);
 *    error = json_check_close(jc);
 *
 * Plain data, owned by the caller, immutable after parsing.  After an error a
 * specification is incomplete: use it only for search_spec_destroy() and
 * search_spec_check(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/data/dataset.h"
#include "trainer/models/shape.h"
#include "trainer/schemes/sync.h"
#include "wire/rungs.h"

struct json_at;
struct search_hosts;

enum search_data {
    SEARCH_GENERATED,
    SEARCH_MNIST,
    SEARCH_CIFAR10,
    SEARCH_LIBSVM,
};

enum search_model_kind {
    SEARCH_MLP,
    SEARCH_CIFARNET,
    SEARCH_RESNET32,
    SEARCH_LINEAR,
};

/* Model and data of a search: its members "model" and "data".
 *
 * Planning and simulating a search needs the number of parameters that are
 * transferred, but not the arithmetic.  So this module has only the options
 * and the size of each model:
 *
 *    {"inputs": 64, "hidden_layers": 2, "classes": 10}     "name": "mlp"
 *    {"name": "cifarnet", "image": [32, 32, 3]}            or "resnet32"
 *    {"name": "linear", "features": 1000, "loss": "hinge"}
 *
 *    {"kind": "generated", "samples": 8192}
 *    {"kind": "mnist", "path": FOLDER}                     or "cifar10"
 *    {"kind": "libsvm", "path": FILE}
 *
 * Images have the size that the files have; "image" is for generated ones.
 * Only "mlp" has a width to search. */
struct search_model {
    enum search_model_kind kind;
    int n_inputs, n_hidden, n_classes; /* Dimensions of an MLP. */
    struct image image;                /* Dimensions of images. */
    int64_t n_features;                /* Features of a linear model. */
    const char *loss;                  /* "logistic" or "hinge".  Static. */

    enum search_data data;
    int64_t n_samples; /* Training samples; of files: maximum. */
    char *path;        /* Folder or file; NULL if generated. */
};

/* Hosts of the jobs of some trials. */
struct search_placement {
    size_t n_workers;
    size_t n_servers;           /* 0 if the workers are peers. */
    char **workers, **servers;  /* Names of hosts; may repeat. */
};

struct search_spec {
    char *name;                 /* Name of the cojob. */
    double weight;              /* Weight of the search, 1 by default. */
    int64_t seed;               /* Seed of the choices and of all jobs. */
    int n_trials;

    /* Learning rates: a list, or a range if 'n_rates' is 0. */
    size_t n_rates;
    double *rates;
    double rate_min, rate_max;
    bool rate_log;              /* The range is logarithmic. */
    size_t n_widths, n_batches; /* A model without widths has one, 0. */
    int64_t *widths, *batches;

    struct search_method method;
    size_t n_rungs;
    struct search_rung *rungs;
    size_t n_placements;
    struct search_placement *placements;

    struct search_model model;
    char *sync;                 /* Synchronisation of the jobs; NULL for the
                                 * trainer's default. */
    struct sync_spec scheme;    /* Of 'sync'. */
    double momentum;
    double sample_cost_us;      /* Emulated time of one sample. */
    int64_t eval_every;         /* Iterations between evaluations. */
    char *congestion;           /* TCP congestion control, NULL for the
                                 * system's default. */
    const char *backend;        /* Backend of workers: "auto", "cpu" or
                                 * "cuda".  Static. */
};

/* The hyper-parameters of one job. */
struct search_trial {
    double learning_rate;
    int width, batch;
    const struct search_placement *placement;
};

/* Returns true if its trials have a width. */
bool search_model_has_width(const struct search_model *);

/* Returns the number of parameters with hidden layers of 'width'. */
size_t search_model_n_parameters(const struct search_model *, int width);

/* Passes each option for the trainer to 'add', which gets ownership of
 * 'value'. */
void search_model_options(const struct search_model *, int width,
                          void (*add)(void *aux, const char *name,
                                      char *value),
                          void *aux);

void search_spec_from_json(const struct json_at *, struct search_spec **);
void search_spec_destroy(struct search_spec *);

/* Reports unknown hosts, and hosts with too few slots for all jobs of the
 * search. */
void search_spec_check(const struct json_at *, const struct search_spec *,
                       const struct search_hosts *);

/* Returns the largest number of processes of the search on 'host': all of its
 * trials, or of as many as have places. */
int search_spec_processes(const struct search_spec *, const char *host);

/* Reads a file, and checks it against 'hosts' unless that is NULL.  Returns
 * NULL or a message. */
char *search_spec_from_file(const char *file, const struct search_hosts *,
                            struct search_spec **);

/* Returns the choices of trial 'i', which depend on 'i' and the seed only, are
 * spread evenly over the space, and do not repeat before it is exhausted. */
struct search_trial search_spec_trial(const struct search_spec *, int i);

#endif /* trainer/search/spec.h */
