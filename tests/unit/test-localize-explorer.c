/* SPDX-License-Identifier: Apache-2.0 */

/* All that can happen to small numbers of nodes, keys and operations: the
 * state machine of localize.c itself, under every order in which messages can
 * come (those from one node to another in their order) and workers can act.
 *
 * Each push adds a power of two of its own, so a pull says which pushes were
 * before it.  For a key there is one order of all accesses that everybody's
 * program agrees with if and only if
 *
 *  - of any two pulls one saw all that the other one saw,
 *  - a pull saw its worker's earlier pushes and none of the later ones, and
 *    all that the worker's pull before it saw,
 *  - whoever saw a push also saw the same worker's earlier ones.
 *
 * At the end each push must have counted once, each key must have one owner,
 * whom its home knows, and nobody may wait. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "trainer/message.h"
#include "trainer/ps/local-store.h"
#include "trainer/ps/localize-private.h"

#define MAX_NODES 3
#define MAX_WORKERS 3
#define MAX_OPS 16              /* Of a worker. */
#define MAX_QUEUE 24            /* Messages from one node to another. */
#define MAX_STATE 4096
#define N_KEYS 2
#define KEY_SPACE 64            /* To find keys of the homes that are asked
                                 * for. */

/* A worker's program, one letter an operation.  Of the first key: l localize,
 * + push, r pull; of the second: L, P, R; w waits for all before. */
struct program {
    int node;
    const char *ops;
};

struct scene {
    const char *name;
    int n;                      /* Nodes. */
    int homes[N_KEYS];
    bool moves, shared, caches;
    bool unordered;             /* Messages may overtake each other. */
    struct program programs[MAX_WORKERS];
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

/* All of it; nodes' own states are in their modules. */
static struct world {
    const struct scene *scene;
    uint64_t keys[N_KEYS];
    int n_workers, n_pushes;
    struct local_store stores[MAX_NODES];
    struct localize nodes[MAX_NODES];
    int ranks[MAX_NODES];       /* What the callbacks get. */
    struct queue queues[MAX_NODES][MAX_NODES];
    struct progress progress[MAX_WORKERS];
    const char *wrong;          /* First thing that must not be. */

    uint64_t *visited;          /* Hash table of states' sums. */
    size_t n_visited, n_slots;
    size_t n_ends;
} world;

static void
fail_with(const char *what)
{
    world.wrong = world.wrong ? world.wrong : what;
}

static void
send(void *rank, int to, const struct key_item *item)
{
    struct queue *q = &world.queues[*(int *) rank][to];

    assert_true(q->n < MAX_QUEUE);
    q->messages[q->n].item = *item;
    q->messages[q->n++].value = item->values ? *item->values : 0;
}

static void
answer(void *rank, const struct key_item *item)
{
    struct progress *p = &world.progress[item->op / MAX_OPS];
    int op = item->op % MAX_OPS;

    if (p->done[op]) {
        fail_with("an operation was answered twice");
    }
    p->done[op] = true;
    if (item->kind == ITEM_PULLED) {
        p->seen[op] = *item->values;
    }
}

/* A state as bytes, from which it can be made again. */
struct bytes {
    size_t n;
    uint8_t bytes[MAX_STATE];
};

static void
put(struct bytes *b, const void *from, size_t n)
{
    assert_true(b->n + n <= MAX_STATE);
    memcpy(b->bytes + b->n, from, n);
    b->n += n;
}

static void
put_item(struct bytes *b, const struct key_item *item, float value)
{
    const uint8_t fields[4] = {
        item->kind, item->origin, item->op, item->key,
    };

    put(b, fields, sizeof fields);
    put(b, &value, sizeof value);
}

static void
put_key(struct bytes *b, const struct localize *l, uint64_t key)
{
    const float *vector = local_store_peek(l->store, key);
    const struct localize_coming *coming = l->coming[key];
    uint8_t fields[4] = { l->where[key], vector != NULL, coming != NULL, 0 };
    int8_t next = coming ? coming->next_owner : -1;

    for (struct localize_waiter *w = coming ? coming->first : NULL; w;
         w = w->next) {
        fields[3]++;
    }
    put(b, fields, sizeof fields);
    put(b, &next, 1);
    put(b, vector ? vector : &(float) { 0 }, sizeof *vector);
    for (struct localize_waiter *w = coming ? coming->first : NULL; w;
         w = w->next) {
        put_item(b, &w->item, w->item.values ? *w->item.values : 0);
    }
}

static void
save(struct bytes *b)
{
    int n = world.scene->n;

    b->n = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < N_KEYS; k++) {
            put_key(b, &world.nodes[i], world.keys[k]);
        }
        for (int j = 0; j < n; j++) {
            const struct queue *q = &world.queues[i][j];
            uint8_t length = q->n;

            put(b, &length, 1);
            for (int k = 0; k < q->n; k++) {
                put_item(b, &q->messages[k].item, q->messages[k].value);
            }
        }
    }
    put(b, world.progress, world.n_workers * sizeof world.progress[0]);
}

static void
get(const struct bytes *b, size_t *at, void *to, size_t n)
{
    memcpy(to, b->bytes + *at, n);
    *at += n;
}

static void
get_item(const struct bytes *b, size_t *at, struct key_item *item,
         float *value)
{
    uint8_t fields[4];

    get(b, at, fields, sizeof fields);
    *item = (struct key_item) {
        .kind = fields[0], .origin = fields[1], .op = fields[2],
        .key = fields[3],
    };
    get(b, at, value, sizeof *value);
}

static bool
has_value(enum item_kind kind)
{
    return kind == ITEM_PUSH || kind == ITEM_PULLED || kind == ITEM_TRANSFER;
}

/* Takes away what a key is at a node. */
static void
clear_key(struct localize *l, uint64_t key)
{
    struct localize_coming *coming = l->coming[key];

    if (local_store_peek(l->store, key)) {
        local_store_recycle(l->store, key, local_store_remove(l->store, key));
    }
    while (coming && coming->first) {
        struct localize_waiter *w = coming->first;

        if (w->item.values) {
            local_store_recycle(l->store, key, (float *) w->item.values);
        }
        coming->first = w->next;
        free(w);
    }
    free(coming);
    l->coming[key] = NULL;
}

static void
get_waiter(const struct bytes *b, size_t *at, struct localize *l,
           struct localize_coming *coming)
{
    struct localize_waiter *w = allocate(1, sizeof *w);
    float value;

    get_item(b, at, &w->item, &value);
    if (has_value(w->item.kind)) {
        float *vector = local_store_vector(l->store, w->item.key);

        *vector = value;
        w->item.values = vector;
    }
    *coming->last = w;
    coming->last = &w->next;
}

static void
get_key(const struct bytes *b, size_t *at, struct localize *l, uint64_t key)
{
    uint8_t fields[4];
    int8_t next;
    float value;

    clear_key(l, key);
    get(b, at, fields, sizeof fields);
    get(b, at, &next, 1);
    get(b, at, &value, sizeof value);
    l->where[key] = fields[0];
    if (fields[1]) {
        float *vector = local_store_vector(l->store, key);

        *vector = value;
        local_store_install(l->store, key, vector);
    }
    if (fields[2]) {
        struct localize_coming *coming = allocate(1, sizeof *coming);

        coming->next_owner = next;
        coming->last = &coming->first;
        l->coming[key] = coming;
        for (int i = 0; i < fields[3]; i++) {
            get_waiter(b, at, l, coming);
        }
    }
}

static void
load(const struct bytes *b)
{
    int n = world.scene->n;
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        for (int k = 0; k < N_KEYS; k++) {
            get_key(b, &at, &world.nodes[i], world.keys[k]);
        }
        for (int j = 0; j < n; j++) {
            struct queue *q = &world.queues[i][j];
            uint8_t length;

            get(b, &at, &length, 1);
            q->n = length;
            for (int k = 0; k < q->n; k++) {
                get_item(b, &at, &q->messages[k].item, &q->messages[k].value);
            }
        }
    }
    get(b, &at, world.progress, world.n_workers * sizeof world.progress[0]);
    assert_int_equal(at, b->n);
}

static char
op_of(int worker, int i)
{
    return world.scene->programs[worker].ops[i];
}

static bool
is_push(char op)
{
    return op == '+' || op == 'P';
}

static bool
is_pull(char op)
{
    return op == 'r' || op == 'R';
}

/* Which of the keys an operation is about; -1: none. */
static int
key_of(char op)
{
    return op == 'w' ? -1 : op == 'L' || op == 'P' || op == 'R';
}

/* The power of two that a push adds. */
static float
bit_of(int worker, int i)
{
    int bit = 0;

    for (int w = 0; w <= worker; w++) {
        for (int k = 0; op_of(w, k) && (w < worker || k < i); k++) {
            bit += is_push(op_of(w, k));
        }
    }
    return 1 << bit;
}

static bool
can_act(int worker)
{
    const struct progress *p = &world.progress[worker];
    char op = op_of(worker, p->next);

    for (int i = 0; op == 'w' && i < p->next; i++) {
        if (!p->done[i]) {
            return false;
        }
    }
    return op;
}

static void
act(int worker)
{
    struct progress *p = &world.progress[worker];
    int node = world.scene->programs[worker].node, i = p->next++;
    char op = op_of(worker, i);
    float value = bit_of(worker, i);

    if (op == 'w') {
        p->done[i] = true;
        return;
    }
    localize_access(&world.nodes[node], &(struct key_item) {
        .kind = is_push(op) ? ITEM_PUSH : is_pull(op) ? ITEM_PULL
                : ITEM_LOCALIZE,
        .origin = node, .op = worker * MAX_OPS + i,
        .key = world.keys[key_of(op)],
        .values = is_push(op) ? &value : NULL,
    });
}

/* Takes message 'i' out of a queue. */
static void
deliver(int from, int to, int i)
{
    struct queue *q = &world.queues[from][to];
    struct message_to m = q->messages[i];

    q->n--;
    memmove(q->messages + i, q->messages + i + 1,
            (q->n - i) * sizeof q->messages[0]);
    m.item.values = has_value(m.item.kind) ? &m.value : NULL;
    if (!localize_take(&world.nodes[to], from, &m.item)) {
        fail_with("a message was not understood");
    }
}

/* Whether all pushes in 'set' that 'worker' made to a key are its first
 * ones. */
static bool
has_first_ones(int set, int worker, int key)
{
    bool missing = false;

    for (int i = 0; op_of(worker, i); i++) {
        if (is_push(op_of(worker, i)) && key_of(op_of(worker, i)) == key) {
            bool has = set & (int) bit_of(worker, i);

            if (has && missing) {
                return false;
            }
            missing = missing || !has;
        }
    }
    return true;
}

/* What a pull of 'worker' saw, against its own program. */
static void
check_own(int worker, int pull)
{
    int key = key_of(op_of(worker, pull));
    int set = world.progress[worker].seen[pull];

    for (int i = 0; op_of(worker, i); i++) {
        if (key_of(op_of(worker, i)) != key) {
            continue;
        }
        if (is_push(op_of(worker, i))
            && !(set & (int) bit_of(worker, i)) != (i > pull)) {
            fail_with("a pull is out of its worker's order");
        }
        if (is_pull(op_of(worker, i)) && i < pull
            && (int) world.progress[worker].seen[i] & ~set) {
            fail_with("a later pull saw less");
        }
    }
    for (int w = 0; w < world.n_workers; w++) {
        if (!has_first_ones(set, w, key)) {
            fail_with("a push was seen before an earlier one");
        }
    }
}

static void
check_pair(int worker, int pull, int other, int other_pull)
{
    int a = world.progress[worker].seen[pull];
    int b = world.progress[other].seen[other_pull];

    if (key_of(op_of(worker, pull)) == key_of(op_of(other, other_pull))
        && (a & ~b) && (b & ~a)) {
        fail_with("two pulls saw different orders");
    }
}

static void
check_history(void)
{
    for (int w = 0; w < world.n_workers; w++) {
        for (int i = 0; op_of(w, i); i++) {
            if (!is_pull(op_of(w, i))) {
                continue;
            }
            check_own(w, i);
            for (int v = 0; v <= w; v++) {
                for (int k = 0; op_of(v, k); k++) {
                    if (is_pull(op_of(v, k))) {
                        check_pair(w, i, v, k);
                    }
                }
            }
        }
    }
}

/* Nothing more can happen. */
static void
check_end(void)
{
    float sum = 0;

    for (int w = 0; w < world.n_workers; w++) {
        for (int i = 0; op_of(w, i); i++) {
            if (!world.progress[w].done[i]) {
                fail_with("a worker waits for ever");
            }
        }
    }
    for (int k = 0; k < N_KEYS; k++) {
        int home = world.scene->homes[k], n_owners = 0;

        for (int i = 0; i < world.scene->n; i++) {
            float *vector = local_store_peek(&world.stores[i],
                                             world.keys[k]);

            if (vector) {
                n_owners++;
                sum += *vector;
                if (world.nodes[home].where[world.keys[k]] != i) {
                    fail_with("the home does not know the owner");
                }
            }
            if (world.nodes[i].coming[world.keys[k]]) {
                fail_with("a key never comes");
            }
        }
        if (n_owners != 1) {
            fail_with("a key has not one owner");
        }
    }
    if (sum != (1 << world.n_pushes) - 1) {
        fail_with("not every push counted once");
    }
    check_history();
    world.n_ends++;
}

/* Whether the state is a new one. */
static bool
visit(const struct bytes *b)
{
    uint64_t sum = XXH3_64bits(b->bytes, b->n) | 1;
    size_t slot;

    if (2 * world.n_visited >= world.n_slots) {
        uint64_t *old = world.visited;
        size_t n = world.n_slots;

        world.n_slots = n ? 2 * n : 1 << 16;
        world.visited = allocate(world.n_slots, sizeof *world.visited);
        for (size_t i = 0; i < n; i++) {
            for (slot = old[i]; old[i]; slot++) {
                if (!world.visited[slot & (world.n_slots - 1)]) {
                    world.visited[slot & (world.n_slots - 1)] = old[i];
                    break;
                }
            }
        }
        free(old);
    }
    for (slot = sum; world.visited[slot & (world.n_slots - 1)]; slot++) {
        if (world.visited[slot & (world.n_slots - 1)] == sum) {
            return false;
        }
    }
    world.visited[slot & (world.n_slots - 1)] = sum;
    world.n_visited++;
    return true;
}

static void explore(void);

/* Goes on from what a choice has led to, then back. */
static void
follow(const struct bytes *before)
{
    if (!world.wrong) {
        explore();
    }
    if (!world.wrong) {
        load(before);
    }
}

static void
explore(void)
{
    struct bytes here;
    bool stuck = true;

    save(&here);
    if (!visit(&here)) {
        return;
    }
    for (int w = 0; w < world.n_workers && !world.wrong; w++) {
        if (can_act(w)) {
            stuck = false;
            act(w);
            follow(&here);
        }
    }
    for (int pair = 0; pair < MAX_NODES * MAX_NODES; pair++) {
        int from = pair / MAX_NODES, to = pair % MAX_NODES;
        int n = world.queues[from][to].n;

        for (int i = 0; i < n && !world.wrong; i++) {
            stuck = false;
            if (!i || world.scene->unordered) {
                deliver(from, to, i);
                follow(&here);
            }
        }
    }
    if (stuck && !world.wrong) {
        check_end();
    }
}

static uint64_t
find_key(int home, int n, uint64_t from)
{
    while (localize_home(from, n) != home) {
        from++;
    }
    assert_true(from < KEY_SPACE);
    return from;
}

static void
open_world(const struct scene *scene)
{
    static const struct localize_class class = { send, answer };
    const struct key_range range = { KEY_SPACE, 1 };

    memset(&world, 0, sizeof world);
    world.scene = scene;
    for (int k = 0; k < N_KEYS; k++) {
        world.keys[k] = find_key(scene->homes[k], scene->n,
                                 k ? world.keys[k - 1] + 1 : 0);
    }
    for (int i = 0; i < scene->n; i++) {
        world.ranks[i] = i;
        local_store_init(&world.stores[i], &range, 1);
        localize_init(&world.nodes[i], &(struct localize_config) {
            .rank = i, .n = scene->n, .moves = scene->moves,
            .shared = scene->shared, .caches = scene->caches,
            .class = &class, .aux = &world.ranks[i],
        }, &world.stores[i]);
    }
    while (world.n_workers < MAX_WORKERS
           && scene->programs[world.n_workers].ops) {
        const char *op = scene->programs[world.n_workers++].ops;

        assert_true(strlen(op) < MAX_OPS);
        for (; *op; op++) {
            world.n_pushes += is_push(*op);
        }
    }
}

/* Returns what can go wrong, or NULL. */
static const char *
explore_scene(const struct scene *scene)
{
    open_world(scene);
    explore();
    print_message("%s: %zu states, %zu ends%s%s\n", scene->name,
                  world.n_visited, world.n_ends, world.wrong ? ": " : "",
                  world.wrong ? world.wrong : "");
    for (int i = 0; i < scene->n; i++) {
        for (int k = 0; k < N_KEYS; k++) {
            clear_key(&world.nodes[i], world.keys[k]);
        }
        localize_uninit(&world.nodes[i]);
        local_store_uninit(&world.stores[i]);
    }
    free(world.visited);
    return world.wrong;
}

#define MOVES .moves = true, .shared = true

static const struct scene right[] = {
    { "a key between two nodes, asynchronous", 2, { 0, 0 }, MOVES,
      .programs = { { 0, "l+r+lr" }, { 1, "+lr+r" } } },
    { "the same, its home elsewhere", 3, { 2, 2 }, MOVES,
      .programs = { { 0, "l+r+l" }, { 1, "+lr+" } } },
    { "three nodes that call for one key", 3, { 0, 0 }, MOVES,
      .programs = { { 0, "l+r" }, { 1, "+lr" }, { 2, "l+r" } } },
    { "again, after it has gone", 3, { 1, 1 }, MOVES,
      .programs = { { 0, "lwl+r" }, { 1, "lwr" }, { 2, "+lr" } } },
    { "two workers of one node", 3, { 2, 2 }, MOVES,
      .programs = { { 0, "+r+r" }, { 0, "l+lr" }, { 1, "l+r" } } },
    { "who does not localize", 3, { 0, 0 }, MOVES,
      .programs = { { 1, "+r+r+" }, { 2, "lwl" }, { 0, "+l" } } },
    { "two keys", 2, { 0, 1 }, MOVES,
      .programs = { { 0, "lL+P" }, { 1, "Ll+RP" } } },
    { "synchronous", 3, { 0, 0 }, MOVES,
      .programs = { { 0, "+wlw+wrw" }, { 1, "lw+wrw" },
                    { 2, "+wrwlwrw" } } },
    { "synchronous, with caches", 3, { 0, 0 }, MOVES, .caches = true,
      .programs = { { 0, "+wrwlw+wrw" }, { 1, "lwrw+wrw" },
                    { 2, "+wrwlw+wrw" } } },
    { "a server that is reached by messages", 2, { 0, 1 },
      .programs = { { 0, "+rP+R" }, { 1, "+rPr" } } },
    { "a server that is reached in memory", 2, { 0, 1 }, .shared = true,
      .programs = { { 0, "+rP+R" }, { 1, "+rPr" }, { 0, "+r" } } },
};

static void
accesses_of_a_key_have_one_order(void **state)
{
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_null(explore_scene(&right[i]));
        assert_true(world.n_ends > 0);
    }
}

/* What is not promised, and found. */
static void
asynchronous_ones_with_caches_may_not(void **state)
{
    assert_non_null(explore_scene(&(struct scene) {
        "asynchronous, with caches", 3, { 0, 0 }, MOVES, .caches = true,
        .programs = { { 1, "rwr+r" }, { 2, "lw" }, { 0, "lw" } },
    }));
}

/* That messages stay in order is needed, and its lack is found. */
static void
without_order_of_messages_it_fails(void **state)
{
    struct scene scene = right[0];

    scene.name = "without order";
    scene.unordered = true;
    assert_non_null(explore_scene(&scene));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_of_a_key_have_one_order),
        cmocka_unit_test(asynchronous_ones_with_caches_may_not),
        cmocka_unit_test(without_order_of_messages_it_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
