/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_OPTIONS_H
#define ORDER_OPTIONS_H 1

/* The kinds of order and their parameters. */

#include <stdbool.h>

enum order_kind {
    ORDER_FAIR,        /* No order: every stage at level 0. */
    ORDER_PLAIN,       /* The same without shims: TCP shares. */
    ORDER_MLTCP,       /* MLTCP: hosts share by weights. */
    ORDER_STAGE,       /* Where jobs iterate, iterations by a key of
                        * remaining work and urgency, bounded by the
                        * primal-dual permutation; else stages by
                        * the permutation and local search. */
    ORDER_EARLY,       /* Ends of early phases, then of stages. */
    ORDER_MAIF,        /* JPAS: most improvement first. */
    ORDER_STAGE_EARLY, /* Ends of stages and of early phases. */
    ORDER_FIFO,        /* First come, first served. */
    ORDER_FIFO_LM,     /* Baraat: heavy stages share with the next. */
    ORDER_GROUPER,     /* Primal-dual permutation of whole stages. */
    ORDER_SINCRONIA,   /* BSSI on the remaining demand. */
    ORDER_SEBF_STATIC, /* Varys, bottleneck at arrival. */
    ORDER_SEBF,        /* Varys, remaining bottleneck. */
    ORDER_DCLAS,       /* Aalo: queues by bytes sent so far. */
    ORDER_LAS,         /* Least bytes sent so far. */
    ORDER_TCF,         /* Least total remaining bytes. */
    ORDER_WORK,        /* Stages by their remaining work. */
    ORDER_INTENSITY,   /* Crux: most computing per communication. */
    ORDER_N_KINDS
};

/* Returns true if the jobs of a stage share its rank and its level, and if the
 * order is computed only when a stage begins or ends. */
static inline bool
order_is_whole(enum order_kind kind)
{
    return kind == ORDER_GROUPER;
}

/* How trials of a search that judges them one by one are ordered, see
 * trials.h. */
enum order_trials { ORDER_TRIALS_NEUTRAL, ORDER_TRIALS_PROMISING };

/* Parameters.  Each order reads only its own. */
struct order_options {
    enum order_kind kind;
    int n_levels;               /* Number of levels, >= 1; INT_MAX is no
                                 * limit. */
    bool iterations;            /* stage: the stages of the problem are single
                                 * iterations. */
    enum order_trials trials;   /* stage, early, stage+early. */
    bool truncate;              /* Assign levels by rank in the whole order, as
                                 * Sincronia does, not by neighborhood. */
    int improve_moves;          /* Maximum number of orders that the local
                                 * search tries; 0 disables it. */
    double improve_s;           /* Maximum seconds of the local search. */
    double slack_share;         /* Share of a job's isolated time that counts
                                 * for its slack, see slack.h; 0 to 1. */
    double early_theta;         /* A job is early below this share of its final
                                 * metric value. */
    double early_boost;         /* stage+early: weight of the mean end of the
                                 * early phases of a search's jobs, relative to
                                 * the end of the search. */
    double epoch_s;             /* sincronia: seconds of the first epoch; 0
                                 * orders at every event. */
    double heavy_bytes;         /* fifo-lm: bytes from which on a stage is
                                 * heavy. */
    double first_bytes;         /* dclas: byte limit of the first queue. */
    double factor;              /* dclas: growth of the limit from queue to
                                 * queue. */
    int n_queues;               /* dclas: number of queues. */
    bool uncertified;           /* Do not compute a bound. */
};

#define ORDER_OPTIONS_INIT(KIND)                                           \
    {                                                                      \
        .kind = (KIND), .n_levels = 6, .improve_moves = 200000,            \
        .improve_s = 0.005, .slack_share = 0.85, .early_theta = 0.95,      \
        .early_boost = 0.1, .heavy_bytes = 100e6, .first_bytes = 10485760, \
        .factor = 10, .n_queues = 10,                                      \
    }

#endif /* order/problem/options.h */
