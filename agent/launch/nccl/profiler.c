/* SPDX-License-Identifier: Apache-2.0 */

/* Profiler plug-in of NCCL that reports to the agent what a job transfers.
 *
 * NCCL reports each step of a transfer between hosts with its bytes, whatever
 * carries it, so bytes of RDMA count, which no packet counter sees; and each
 * call of a collective with its arguments, so iterations count exactly
 * (repeats.h).  Transfers by the GPU itself (GIN), and within a host, are not
 * reported, and the calls of a CUDA graph only when it is recorded.
 *
 * NCCL loads one profiler.  Another one is chained: STAGECOACH_NCCL_PROFILER
 * names it, and it gets the events that NCCL would report to it alone.
 * Its handles are passed to NCCL as they are; an event that it does not want
 * has this plug-in's only handle, which it never sees.
 *
 * Versions 4 to 6 of the interface.  As with net-gate.c, a version exists if
 * the chained profiler has it. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/launch/nccl/door.h"
#include "agent/launch/nccl/repeats.h"

/* Kinds of events, and states in which the bytes of a step are known. */
enum {
    GROUP = 1 << 0,
    COLLECTIVE = 1 << 1,
    P2P = 1 << 2,
    OPERATION = 1 << 3,
    STEP = 1 << 4,
    CHANNEL = 1 << 6,
    NETWORK = 1 << 7,
    GROUP_CALL = 1 << 8,
    COLLECTIVE_CALL = 1 << 9,
    P2P_CALL = 1 << 10,
    LAUNCH = 1 << 11,
    COPY = 1 << 12,
    COPY_PARTS = 3 << 13
};
enum { SEND_POSTED = 9, RECEIVED = 11 };

#define OUT_OF_MEMORY 2 /* Ends the profiler, not the job. */

/* Begin of the description of an event.  Version 4 writes only the first byte
 * of 'kind'. */
struct event {
    uint64_t kind;
    void *parent;
    int rank;
    union {
        struct {
            uint64_t number;
            const char *name;
            const void *from;
            void *to;
            size_t count;
            int root;
            const char *type;
        } collective;
        struct {
            const char *name;
            void *data;
            const char *type;
            size_t count;
            int peer;
        } p2p;
    };
};

/* Argument of a state of a step. */
struct step_state {
    size_t bytes;
};

/* Table of a plug-in, of each version.  Version 4 has another order of the
 * arguments of 'init'. */
struct table {
    const char *name;
    union {
        int (*init)(void **, uint64_t, int *, const char *, int, int, int,
                    void *);
        int (*init_v4)(void **, int *, const char *, uint64_t, int, int, int,
                       void *);
    };
    int (*start)(void *, void **, struct event *);
    int (*stop)(void *);
    int (*state)(void *, int, struct step_state *);
    int (*finalize)(void *);
};

/* A communicator. */
struct comm {
    struct comm *next;
    bool chained; /* The chained profiler has it, as 'inner'. */
    void *inner;
    int kinds;          /* That the chained profiler wants. */
    double elements;    /* Of all calls. */
    size_t largest;     /* Elements of the largest call. */
    int64_t iterations; /* -1 if unknown. */
    struct repeats repeats;
};

/* Part of the elements of the largest communicator from which one counts, and
 * of those of its largest call: others are barriers, flags and losses, which
 * are not in every iteration. */
#define LEAST_PART 0.01
#define LEAST_CALL 0.001

static void *library;             /* The chained plug-in, or NULL. */
static const struct table *inner; /* Its table, or NULL. */
static char own;                  /* Its address is the own handle. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct comm *comms; /* Guarded by 'mutex', as what they count. */

__attribute__((constructor)) static void
open_inner(void)
{
    library = door_open_inner("STAGECOACH_NCCL_PROFILER", "profiler");
}

/* Of the communicators that carry a part of the data, the one with the fewest
 * iterations is right: the others count parts of an iteration. */
static int64_t
count(void)
{
    int64_t least = -1;
    double most = 0;

    for (const struct comm *c = comms; c; c = c->next) {
        most = c->elements > most ? c->elements : most;
    }
    for (const struct comm *c = comms; c; c = c->next) {
        if (c->iterations >= 0 && c->elements >= most * LEAST_PART
            && (least < 0 || c->iterations < least)) {
            least = c->iterations;
        }
    }
    return least;
}

static uint64_t
hash(uint64_t seed, const void *data, size_t n)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i++) { /* FNV-1a. */
        seed = (seed ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return seed;
}

static uint64_t
hash_text(uint64_t seed, const char *text)
{
    for (; text && *text; text++) {
        seed = hash(seed, text, 1);
    }
    return seed;
}

static void
take_call(struct comm *c, const struct event *e, uint64_t kind)
{
    bool is_p2p = kind == P2P;
    size_t n = is_p2p ? e->p2p.count : e->collective.count;
    int other = is_p2p ? e->p2p.peer : e->collective.root;
    uint64_t symbol =
        hash_text(kind, is_p2p ? e->p2p.name : e->collective.name);
    int64_t counted;

    symbol = hash_text(symbol, is_p2p ? e->p2p.type : e->collective.type);
    symbol = hash(hash(symbol, &n, sizeof n), &other, sizeof other);
    pthread_mutex_lock(&mutex);
    c->elements += n;
    c->largest = n > c->largest ? n : c->largest;
    if (n >= c->largest * LEAST_CALL) {
        c->iterations = repeats_add(&c->repeats, symbol);
    }
    counted = count();
    pthread_mutex_unlock(&mutex);
    if (counted >= 0) {
        door_counted(counted);
    }
}

/* Returns the kinds that NCCL reports if a plug-in wants 'kinds': also those
 * of the events that are their parents. */
static uint64_t
with_parents(uint64_t kinds)
{
    static const struct {
        int kinds, parents;
    } rows[] = {
        { NETWORK, STEP },
        { STEP, OPERATION },
        { OPERATION | CHANNEL, COLLECTIVE | P2P },
        { COPY_PARTS, COPY },
        { COLLECTIVE | P2P, GROUP | COLLECTIVE_CALL | P2P_CALL },
        { COPY, COLLECTIVE_CALL },
        { COLLECTIVE_CALL | P2P_CALL | LAUNCH, GROUP_CALL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kinds |= kinds & rows[i].kinds ? rows[i].parents : 0;
    }
    return kinds;
}

static int
start(struct comm *c, void **handle, struct event *e, uint64_t kind)
{
    void *parent = e->parent;
    int error = 0;

    if (kind == COLLECTIVE || kind == P2P) {
        take_call(c, e, kind);
    }
    *handle = &own;
    if (c->chained && kind & with_parents(c->kinds)) {
        e->parent = parent == &own ? NULL : parent;
        error = inner->start(c->inner, handle, e);
        e->parent = parent;
    }
    return error;
}

static int
start_v4(void *context, void **handle, struct event *e)
{
    return start(context, handle, e, (uint8_t) e->kind);
}

static int
start_v5(void *context, void **handle, struct event *e)
{
    return start(context, handle, e, e->kind);
}

static int
stop(void *handle)
{
    return handle && handle != &own ? inner->stop(handle) : 0;
}

static int
state(void *handle, int which, struct step_state *arguments)
{
    if (which == SEND_POSTED && arguments) {
        door_moved(arguments->bytes, 0, 0);
    } else if (which == RECEIVED && arguments) {
        door_moved(0, arguments->bytes, 0);
    }
    return handle && handle != &own ? inner->state(handle, which, arguments)
                                    : 0;
}

static int
finalize(void *context)
{
    struct comm *c = context, **p = &comms;
    int error = c->chained ? inner->finalize(c->inner) : 0;

    pthread_mutex_lock(&mutex);
    while (*p != c) {
        p = &(*p)->next;
    }
    *p = c->next;
    pthread_mutex_unlock(&mutex);
    free(c);
    door_leave();
    return error;
}

/* Begins a communicator whose chained profiler has returned 'error'. */
static int
begin(struct comm *c, int error, void **context, int *kinds)
{
    c->chained = inner && !error;
    c->iterations = -1;
    pthread_mutex_lock(&mutex);
    c->next = comms;
    comms = c;
    pthread_mutex_unlock(&mutex);
    *kinds = c->kinds | COLLECTIVE | P2P | STEP;
    *context = c;
    return 0;
}

static int
init_v4(void **context, int *kinds, const char *name, uint64_t id, int nodes,
        int ranks, int rank, void *log)
{
    struct comm *c = calloc(1, sizeof *c);
    int error = c && inner ? inner->init_v4(&c->inner, &c->kinds, name, id,
                                            nodes, ranks, rank, log)
                           : 0;

    return c ? begin(c, error, context, kinds) : OUT_OF_MEMORY;
}

static int
init_v5(void **context, uint64_t id, int *kinds, const char *name, int nodes,
        int ranks, int rank, void *log)
{
    struct comm *c = calloc(1, sizeof *c);
    int error = c && inner ? inner->init(&c->inner, id, &c->kinds, name, nodes,
                                         ranks, rank, log)
                           : 0;

    return c ? begin(c, error, context, kinds) : OUT_OF_MEMORY;
}

static const struct table table_v4 = { .name = "stagecoach",
                                       .init_v4 = init_v4,
                                       .start = start_v4,
                                       .stop = stop,
                                       .state = state,
                                       .finalize = finalize };
static const struct table table_v5 = { .name = "stagecoach",
                                       .init = init_v5,
                                       .start = start_v5,
                                       .stop = stop,
                                       .state = state,
                                       .finalize = finalize };

/* Returns 'mine' if the chained plug-in has this version, too. */
static void *
find(const char *symbol, const struct table *mine)
{
    inner = library ? dlsym(library, symbol) : NULL;
    return library && !inner ? NULL : (void *) mine;
}

#define VERSION(N, TABLE)                                            \
    __attribute__((used)) static void (*find_v##N(void))(void)       \
    {                                                                \
        return (void (*)(void)) find("ncclProfiler_v" #N, &(TABLE)); \
    }                                                                \
                                                                     \
    __attribute__((visibility("default"),                            \
                   ifunc("find_v" #N))) void ncclProfiler_v##N(void)

VERSION(4, table_v4);
VERSION(5, table_v5);
VERSION(6, table_v5);
