/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPTIONS_H
#define OPTIONS_H 1

/* Command line of the trainer; stagecoach-trainer(1) describes it. */

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "trainer/data/dataset.h"
#include "trainer/models/shape.h"
#include "trainer/schemes/sync.h"

#define OPTIONS_MAX_SERVERS 64

/* Processes of a job that one command starts on this machine. */
#define TEAM_MAX_SERVERS 8
#define TEAM_MAX_WORKERS 64

enum role {
    ROLE_SERVER = 1 << 0,
    ROLE_WORKER = 1 << 1,
    ROLE_LOCAL = 1 << 2,    /* Both in one process, no network. */
    ROLE_PEER = 1 << 3,     /* One of several without a server. */
    ROLE_NODE = 1 << 4,     /* One of those that share keys. */
    ROLE_TRAIN = 1 << 5,    /* Starts servers and workers. */
    ROLE_EVALUATE = 1 << 6, /* Judges a checkpoint. */
    ROLE_EXPORT = 1 << 7,   /* Writes its weights. */
};

struct options {
    enum role role;             /* 0 if no role was given. */
    struct option_outcome given;        /* Options on the command line. */
    const char *address;
    int64_t port;
    const char *servers[OPTIONS_MAX_SERVERS];
    int n_servers;
    int64_t n_workers, rank;
    int64_t n_team_servers;     /* Servers that "train" starts. */
    bool json;                  /* Output of "train" and "evaluate". */
    const char *congestion;     /* NULL: the system's. */
    struct sync_spec sync;
    const char *peers;          /* HOST[:PORT] of each, by commas. */
    const char *nodes;          /* Likewise. */
    const char *store;          /* A word of key_variant_find(), or "manual".
                                 */
    int64_t staleness;          /* Of ssp and essp. */
    const char *scheme;         /* A word of peer.h. */
    const char *shards;         /* "iid" or "by-label"; NULL is "iid". */
    int64_t group;              /* Peers of one, under prague. */
    double policy_every;        /* Seconds, under netmax-published. */
    int64_t control_port;
    const char *central;        /* "HOST:PORT": serve a group; or NULL. */
    bool group_servers_elsewhere;       /* Not ours to start. */
    double reconnect_timeout;   /* Time to wait for a broken connection to be
                                 * re-established, seconds. */
    double heartbeat_timeout;   /* Time without a heartbeat after which a
                                 * process counts as dead, seconds; 0 is
                                 * none. */
    const char *token_file;     /* File with the secret of the job, or NULL. */
    const char *checkpoint;     /* Folder, or NULL. */
    int64_t checkpoint_every;
    bool no_resume;
    bool new_rate;      /* Other than the checkpoint's. */
    const char *output; /* File of "export". */
    bool outputs;       /* Are printed by "evaluate". */

    const char *model;          /* A word of model_class_find(). */
    struct shape shape;         /* Of an MLP. */
    struct image image;         /* Of what sees images. */
    int64_t features;           /* Of a linear model. */
    const char *loss;           /* Of it: "logistic" or "hinge". */
    const char *data;           /* As it was given; what it means: */
    char *(*read_data)(const struct dataset_config *, const char *path,
                       struct dataset **);      /* NULL if generated. */
    const char *data_path;      /* NULL if generated. */
    int64_t samples, validation; /* Training and validation samples;
                                  * DATASET_ALL if all of files. */
    int64_t batch;
    int64_t max_batch; /* Of this device; 0: by its memory. */
    double learning_rate, momentum;
    struct rate_schedule schedule;
    const char *optimiser;      /* A word of optimiser_find(). */
    int64_t seed;
    int64_t target;             /* Iterations, of nodes epochs, to train. */
    int64_t eval_every;         /* Iterations. */
    double sample_cost_us;
    const char *speed_profile;  /* A file; NULL: that instead. */
    const char *backend;        /* A word of backend_open_named(). */
    const char *tf32;           /* "on", "convolutions" or "off". */
    const char *overlap;        /* "on" or "off". */
    int64_t n_threads;

    const char *task;           /* A word of node_task_find(). */
    double epoch_limit;         /* Seconds; 0: none. */
    int64_t dimension;          /* Of vectors. */
    int64_t rows, columns;      /* Of a matrix that is generated. */
    double weight_decay;        /* L2 coefficient of both factors. */
    const char *embedding;      /* "rescal" or "complex". */
    int64_t entities, relations;        /* Of a graph that is generated. */
    int64_t vocabulary;         /* Of a text that is generated. */
    int64_t min_count;          /* Of words of a text that is read. */
    double subsample;           /* Relative frequency above which words are
                                 * randomly skipped; 0 keeps all. */
    int64_t window;             /* Words on each side that are near. */
    int64_t negatives;          /* Wrong ones beside each right one. */
    int64_t draws;              /* Of a wrong one, until one is here. */
    int64_t exchange;           /* Ratings that are exchanged at once. */
    int64_t prefetch;           /* Samples with keys that are requested in
                                 * advance. */
};

/* Reads "ROLE --option value ...".  Returns NULL or a message.  Strings stay
 * those of 'argv'.  '*help' is true if help was asked for instead. */
char *options_parse(int argc, char *argv[], struct options *, bool *help);

/* Prints the options of the role, or the roles without one. */
void options_help(const struct options *);

/* Calls add() with each option that was given and that 'role' has, as a
 * malloc()'d argument "--NAME=VALUE" or "--NAME". */
void options_arguments(const struct options *, enum role,
                       void (*add)(void *aux, char *argument), void *aux);

/* Of the samples, as model and data have it. */
int options_n_inputs(const struct options *);
int options_n_classes(const struct options *);

/* Whether each peer has samples of few labels. */
bool options_by_label(const struct options *);

#endif /* trainer/process/options.h */
