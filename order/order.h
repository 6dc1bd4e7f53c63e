/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_H
#define ORDER_H 1

/* In which order search stages get the network, and how good that order is.
 *
 *
 * Motivation
 * ==========
 *
 * A rung of a hyper-parameter search cannot be judged until its slowest job
 * gets there, so what the network should minimise is the weighted sum of the
 * stages' completion times.  That is coflow scheduling with a whole stage as
 * the coflow: ports are machines, a stage needs so many seconds of each, and
 * it is done when the last port has served it.  A primal-dual algorithm gives
 * an order within a constant of the best one and, with it, a lower bound on
 * the best one: a certificate.
 *
 *
 * Usage
 * =====
 *
 *    struct order_problem *op = order_problem_create(n_ports);
 *    int s = order_problem_add_stage(op, weight, id);
 *    order_problem_add_demand(op, s, port, seconds);
 *
 *    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
 *    struct order_result result;
 *    order_result_init(&result);
 *    order_compute(&options, op, &result);
 *    ...result.order[0] is the index of the stage that is served first...
 *    ...result.estimate / result.bound is at least how good it is...
 *    order_result_uninit(&result);
 *    order_problem_destroy(op);
 *
 * The problem is the input of every order by whatever name, and the result is
 * the output of every one.  What is ordered is called a stage throughout; the
 * orders that were published for jobs or coflows get those in its place, see
 * 'enum order_unit'.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain C with no dependency but libm: the controller, the simulator and the
 * tests link the same code.  A result's arrays belong to the result and are
 * reused by the next order_compute() into it.  So is what a problem needs to
 * be ordered, which belongs to the problem.  Whoever orders for each event
 * keeps both: once they have been as large as they get, neither changes to the
 * problem nor order_compute() allocate anything.  Nothing here is shared
 * between problems, so different threads may work on different ones. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More seconds than any stage needs of a port.  A demand is at most so large,
 * so that a port that has lost its capacity makes an order, not a NaN. */
#define ORDER_MAX_SECONDS 1e9

/* Less than the time of one bit.  A demand below that is none. */
#define ORDER_MIN_SECONDS 1e-12

/* A stage's weight is at most so large, and at least one such part of 1. */
#define ORDER_MAX_WEIGHT 1e100

enum order_kind {
    ORDER_FAIR,                 /* No order: every stage at level 0. */
    ORDER_STAGE,                /* Primal-dual permutation of stages, improved
                                 * by local search. */
    ORDER_EARLY,                /* Most early improvement first (JPAS). */
    ORDER_STAGE_EARLY,          /* Stages, early ones weighted up. */
    ORDER_FIFO,                 /* First come, first served. */
    ORDER_FIFO_LM,              /* Baraat: heavy ones share with the next. */
    ORDER_SINCRONIA,            /* BSSI on remaining demand. */
    ORDER_SEBF_STATIC,          /* Varys, bottleneck at arrival. */
    ORDER_SEBF,                 /* Varys, remaining bottleneck. */
    ORDER_DCLAS,                /* Aalo: queues by bytes sent so far. */
    ORDER_LAS,                  /* Least bytes sent so far. */
    ORDER_TCF,                  /* Least total bytes left. */
    ORDER_INTENSITY,            /* Crux: most computing per communication. */
    ORDER_INTERLEAVE,           /* ORDER_STAGE, refined by time shifts. */
    ORDER_N_KINDS
};

/* What takes the place of a stage in the problem. */
enum order_unit {
    ORDER_UNIT_STAGE,           /* All jobs of a rung, to the rung's end. */
    ORDER_UNIT_JOB,             /* One job, to the rung's end. */
    ORDER_UNIT_COFLOW,          /* One job's running iteration. */
};

/* How the simulator hands out rates unless it is told otherwise. */
enum order_service {
    ORDER_SERVICE_SHARE,        /* Levels as computed, max-min inside; the
                                 * order inside a level has no meaning. */
    ORDER_SERVICE_RANK,         /* Strictly by rank, whole ports to one flow
                                 * at a time. */
    ORDER_SERVICE_FILL,         /* Strictly by rank, all flows of a stage in
                                 * proportion to what they have left. */
    ORDER_SERVICE_MADD,         /* By rank, each just fast enough to end with
                                 * its bottleneck; what is left by rank. */
};

/* An order as a policy names it. */
struct order_class {
    const char *name;
    const char *summary;        /* One line for people. */
    enum order_unit unit;
    enum order_service service;
    bool certified;             /* Comes out of the primal-dual. */
};

/* Indexed by enum order_kind. */
extern const struct order_class order_classes[ORDER_N_KINDS];

/* Their names, null-terminated. */
extern const char *const order_names[];

/* What can be tuned.  Every order reads the members that concern it. */
struct order_options {
    enum order_kind kind;
    int n_levels;               /* At least 1; INT_MAX is no limit. */
    bool truncate;              /* Levels by rank in the whole order, as
                                 * Sincronia does, not by neighbourhood. */
    int improve_moves;          /* Orders that the improvement step tries, */
    double improve_s;           /* and the seconds that it takes, at most; 0
                                 * is no improvement. */
    double early_theta;         /* Early: below so much of the final value. */
    double early_boost;         /* stage+early: how much a stage's weight
                                 * grows by its early jobs at most. */
    double epoch_s;             /* sincronia: first epoch; 0 orders at every
                                 * event. */
    double heavy_bytes;         /* fifo-lm: heavy from here on. */
    double first_bytes;         /* dclas: what the first queue sends, */
    double factor;              /* and each next one so many times as much. */
    int n_queues;               /* dclas: how many queues. */
    bool uncertified;           /* No certificate: 'bound' is 0. */
};

#define ORDER_OPTIONS_INIT(KIND)                                            \
    {                                                                       \
        .kind = (KIND), .n_levels = 6, .improve_moves = 200000,               \
        .improve_s = 0.005, .early_theta = 0.95, .early_boost = 1,          \
        .heavy_bytes = 100e6, .first_bytes = 10485760, .factor = 10,        \
        .n_queues = 10,                                                     \
    }

/* One (stage, port) pair with demand. */
struct order_demand {
    int port;                   /* 0 .. n_ports - 1. */
    double seconds;             /* Of that port at full capacity, from
                                 * ORDER_MIN_SECONDS to ORDER_MAX_SECONDS. */
    double inverse;             /* 1 / seconds. */
};

/* What the peers look at besides demand.  All 0 if not known. */
struct order_traits {
    double arrival;             /* Seconds before the problem's time 0. */
    double sent;                /* Bytes that have gone so far. */
    double bytes;               /* That are left. */
    double initial;             /* Seconds that the busiest port needed when
                                 * the stage arrived. */
    double intensity;           /* Seconds of computing, times devices, per
                                 * second of its busiest port. */
    double gain;                /* Predicted improvement of its metric in the
                                 * next period, of its largest so far; see
                                 * early.h.  INFINITY before there are
                                 * samples. */
    bool early;                 /* Below theta of its final metric, */
    double ahead;               /* and iterations until it is there, as
                                 * predicted; 0 if not known. */
    double period;              /* Seconds from iteration to iteration alone,
                                 * 0 if it is not periodic, */
    double burst;               /* and those of them that it communicates. */
};

/* One stage.  Read-only outside this module. */
struct order_stage {
    uint64_t id;                /* Breaks ties: the smaller is served first. */
    double weight;              /* 1 is an ordinary search; at most
                                 * ORDER_MAX_WEIGHT, at least 1 / that. */
    double release;             /* Seconds from the problem's time 0; 0 if the
                                 * stage has begun. */
    double isolated;            /* Seconds it takes alone, computing included,
                                 * 0 if not known.  Less than the longest
                                 * demand counts as that. */
    struct order_traits traits;
    size_t n_demands, allocated_demands;
    struct order_demand *demands;   /* Sorted by port, each port once. */
};

struct order_problem {
    int n_ports;
    double now;                 /* The problem's time 0 in seconds of whatever
                                 * clock; only for epochs. */
    size_t n_stages, allocated_stages;
    struct order_stage *stages; /* Those after 'n_stages' only keep memory. */
    int *by_id;                 /* The stages, the smallest id first. */
    int *n_on_port;             /* Of each port: stages that need it. */
    int *next_level;            /* Memory of levels, */
    struct permuter *permuter;  /* of permute() and */
    struct scratch *scratch;    /* of all others. */
    int allocated_ports;
};

struct order_problem *order_problem_create(int n_ports);
void order_problem_destroy(struct order_problem *);
void order_problem_clear(struct order_problem *);
void order_problem_restart(struct order_problem *, int n_ports);

/* Stages have indexes 0, 1, ... in the order in which they are added; when one
 * is removed, the last takes its index.  What order_compute() finds depends on
 * their ids, not on their indexes, as long as ids differ.  Demands for the
 * same port add up; no positive number of seconds is no demand. */
int order_problem_add_stage(struct order_problem *, double weight,
                            uint64_t id);
void order_problem_remove_stage(struct order_problem *, int stage);
void order_problem_set_release(struct order_problem *, int stage,
                               double release, double isolated);
void order_problem_add_demand(struct order_problem *, int stage, int port,
                              double seconds);
void order_problem_set_demand(struct order_problem *, int stage, int port,
                              double seconds);
void order_problem_set_traits(struct order_problem *, int stage,
                              const struct order_traits *);
double order_stage_earliest_end(const struct order_stage *);

/* Lets all stages weigh more by how long they have waited, so that none does
 * for ever: a weight becomes
 *
 *     1 + age / 'aging_s' + (slowdown / 'aging_slowdown')^4
 *
 * times what it was, where the slowdown is the age over the seconds that all
 * of the stage takes alone.  0 is no aging of that kind.
 *
 * The fourth power leaves those alone that wait a little, as most do, and
 * stops those that starve; the square costs a per cent of the mean.  By what
 * is left instead of all, whatever is nearly done would age. */
void order_problem_age(struct order_problem *, double aging_s,
                       double aging_slowdown);

struct improver;

/* What order_compute() found.  Arrays have 'n' elements. */
struct order_result {
    size_t n, allocated;
    int *order;                 /* Stage index at each rank, 0 first. */
    int *rank;                  /* Rank of each stage. */
    int *level;                 /* Level of each stage, 0 .. n_levels - 1, 0
                                 * first; never falls along the order among
                                 * stages that share a port. */
    double *completion;         /* Estimated completion of each stage in
                                 * seconds from the problem's time 0: when the
                                 * last of its ports has served it and what
                                 * goes before it there, each port on its own,
                                 * and not before it would end alone.  For
                                 * ORDER_SERVICE_SHARE, if the stages of a
                                 * level share each port equally. */
    double *sent_limit;         /* When so many bytes have been sent, see
                                 * traits, a stage's level changes though
                                 * nothing else happens; INFINITY: never. */
    double estimate;            /* Weighted sum of 'completion'. */
    double gained;              /* Share of the estimate that the improvement
                                 * step saved, 0 to 1. */
    double bound;               /* Certificate: no schedule has a smaller
                                 * weighted sum of completion times; at most
                                 * 'estimate'.  0 if 'uncertified'. */
    struct improver *improver;  /* Scratch, NULL before it is needed. */
};

void order_result_init(struct order_result *);
void order_result_uninit(struct order_result *);

void order_compute(const struct order_options *, const struct order_problem *,
                   struct order_result *);

/* The rooms behind order_compute(), for tests and for bounds on their own. */

/* Fills 'order' (n_stages elements) and returns a lower bound on the weighted
 * sum of completion times.  'kappa' > 0 uses releases and isolated times: a
 * stage that ends after kappa times the busiest port's load even when alone
 * goes last; 0 ignores them.  Equals go by size, the smaller first, then by
 * id.  (Mastrolilli et al. 2010; Sincronia, SIGCOMM 2018; releases after
 * Ahmadi et al. 2020.) */
double permute(const struct order_problem *, double kappa, int *order);

/* Lets permute() do without the processor's vector instructions, or not.  What
 * comes out is the same to the last bit; for tests. */
void permute_use_portable(bool);

/* The best of the known lower bounds on the weighted sum of completion times:
 * permute() without and with releases for several kappas, the sum of isolated
 * ends and, for equal weights, shortest remaining processing time first on
 * each port. */
double certificate_bound(const struct order_problem *);

/* Levels by conflict neighbourhood, see fold.h: who shares no port with anybody
 * before has level 0, and the level grows with the number of those before, the
 * more slowly the more there are, to 'n_levels' - 1 at most. */
void levels_assign(const struct order_problem *, const int *order,
                   int n_levels, int *level);

#endif /* order/order.h */
