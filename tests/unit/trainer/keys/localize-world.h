/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOCALIZE_WORLD_H
#define LOCALIZE_WORLD_H 1

/* A few nodes that run localize.c, and all that is on its way between them, as
 * a state that can be saved and made again: for a test that tries everything
 * that can come next.
 *
 *    world_open(&scene);
 *    world_save(&bytes);
 *    ...localize_access(&world.nodes[i], ...), world_deliver(from, to, 0)...
 *    world_load(&bytes);
 *    world_close();
 *
 * There is one world; what goes wrong is in 'world.wrong'. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/keys/key-message.h"
#include "trainer/keys/local-store.h"
#include "trainer/keys/localize.h"

#define MAX_NODES 3
#define MAX_JOB_PROCESSES 3
#define MAX_OPS 16              /* Of a worker. */
#define MAX_QUEUE 24            /* Messages from one node to another. */
#define MAX_STATE 4096
#define N_KEYS 2

/* A worker's program, one letter an operation.  Of the first key: l localize,
 * + push, r pull; of the second: L, P, R; w waits for all before. */
struct program {
    int node;
    const char *ops;
};

static inline bool
is_push(char op)
{
    return op == '+' || op == 'P';
}

struct scene {
    const char *name;
    int n;                      /* Nodes. */
    int homes[N_KEYS];
    bool moves, shared;
    bool unordered;             /* Messages may overtake each other. */
    struct program programs[MAX_JOB_PROCESSES];
};

struct message_to {
    struct key_item item;
    float value;
};

struct queue {
    int n;
    struct message_to messages[MAX_QUEUE];
};

struct progress {
    int next;                   /* Operation to be called. */
    bool done[MAX_OPS];
    float seen[MAX_OPS];        /* By a pull. */
};

/* All of it. */
struct world {
    const struct scene *scene;
    uint64_t keys[N_KEYS];
    int n_workers, n_pushes;
    struct local_store stores[MAX_NODES];
    struct localize nodes[MAX_NODES];
    int ranks[MAX_NODES];       /* What the callbacks get. */
    struct queue queues[MAX_NODES][MAX_NODES];
    struct progress progress[MAX_JOB_PROCESSES];
    const char *wrong;          /* First thing that must not be. */
};

extern struct world world;

/* A state as bytes, from which it can be made again. */
struct bytes {
    size_t n;
    uint8_t bytes[MAX_STATE];
};

void world_open(const struct scene *);
void world_close(void);
void world_save(struct bytes *);
void world_load(const struct bytes *);

/* Takes message 'i' out of a queue. */
void world_deliver(int from, int to, int i);

/* Notes the first thing that must not be. */
void world_fail(const char *what);

#endif /* tests/unit/trainer/keys/localize-world.h */
