/* SPDX-License-Identifier: Apache-2.0 */

/* All that can happen to small numbers of nodes, keys and operations: the
 * state machine of localize.c itself, under every order in which messages can
 * come (those from one node to another in their order) and workers can act.
 *
 * Each push adds a power of two of its own, so a pull shows which pushes were
 * before it.  For a key there is one order of all accesses that all programs
 * agree with if and only if
 *
 *  - of any two pulls one saw all that the other one saw,
 *  - a pull saw its worker's earlier pushes and none of the later ones, and
 *    all that the worker's pull before it saw,
 *  - a pull that saw a push also saw the same worker's earlier ones.
 *
 * At the end each push must have counted once, each key must have one owner,
 * known to its home, and no node may wait. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "tests/unit/trainer/keys/localize-world.h"
#include "tests/unit/unit-test.h"

/* States that have been, as a hash table of their sums. */
static struct {
    uint64_t *sums;
    size_t n, n_slots;
} table;

static size_t n_ends;           /* Ways in which all can be over. */

static char
op_of(int worker, int i)
{
    return world.scene->programs[worker].ops[i];
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
            world_fail("a pull is out of its worker's order");
        }
        if (is_pull(op_of(worker, i)) && i < pull
            && (int) world.progress[worker].seen[i] & ~set) {
            world_fail("a later pull saw less");
        }
    }
    for (int w = 0; w < world.n_workers; w++) {
        if (!has_first_ones(set, w, key)) {
            world_fail("a push was seen before an earlier one");
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
        world_fail("two pulls saw different orders");
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
                world_fail("a worker waits for ever");
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
                    world_fail("the home does not know the owner");
                }
            }
            if (world.nodes[i].coming[world.keys[k]]) {
                world_fail("a key never comes");
            }
        }
        if (n_owners != 1) {
            world_fail("a key has not one owner");
        }
    }
    if (sum != (1 << world.n_pushes) - 1) {
        world_fail("not every push counted once");
    }
    check_history();
    n_ends++;
}

/* Whether the state is a new one. */
static bool
visit(const struct bytes *b)
{
    uint64_t sum = XXH3_64bits(b->bytes, b->n) | 1;
    size_t slot;

    if (2 * table.n >= table.n_slots) {
        uint64_t *old = table.sums;
        size_t n = table.n_slots;

        table.n_slots = n ? 2 * n : 1 << 16;
        table.sums = allocate(table.n_slots, sizeof *table.sums);
        for (size_t i = 0; i < n; i++) {
            for (slot = old[i]; old[i]; slot++) {
                if (!table.sums[slot & (table.n_slots - 1)]) {
                    table.sums[slot & (table.n_slots - 1)] = old[i];
                    break;
                }
            }
        }
        free(old);
    }
    for (slot = sum; table.sums[slot & (table.n_slots - 1)]; slot++) {
        if (table.sums[slot & (table.n_slots - 1)] == sum) {
            return false;
        }
    }
    table.sums[slot & (table.n_slots - 1)] = sum;
    table.n++;
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
        world_load(before);
    }
}

static void
explore(void)
{
    struct bytes here;
    bool stuck = true;

    world_save(&here);
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
                world_deliver(from, to, i);
                follow(&here);
            }
        }
    }
    if (stuck && !world.wrong) {
        check_end();
    }
}

/* Returns what can go wrong, or NULL. */
static const char *
explore_scene(const struct scene *scene)
{
    memset(&table, 0, sizeof table);
    n_ends = 0;
    world_open(scene);
    explore();
    print_message("%s: %zu states, %zu ends%s%s\n", scene->name,
                  table.n, n_ends, world.wrong ? ": " : "",
                  world.wrong ? world.wrong : "");
    world_close();
    free(table.sums);
    return world.wrong;
}

#define MOVES .moves = true, .shared = true

static const struct scene right[] = {
    { "a key between two nodes, asynchronous",
      2,
      { 0, 0 },
      MOVES,
      .programs = { { 0, "l+r+lr" }, { 1, "+lr+r" } } },
    { "the same, its home elsewhere",
      3,
      { 2, 2 },
      MOVES,
      .programs = { { 0, "l+r+l" }, { 1, "+lr+" } } },
    { "three nodes that call for one key",
      3,
      { 0, 0 },
      MOVES,
      .programs = { { 0, "l+r" }, { 1, "+lr" }, { 2, "l+r" } } },
    { "again, after it has gone",
      3,
      { 1, 1 },
      MOVES,
      .programs = { { 0, "lwl+r" }, { 1, "lwr" }, { 2, "+lr" } } },
    { "two workers of one node",
      3,
      { 2, 2 },
      MOVES,
      .programs = { { 0, "+r+r" }, { 0, "l+lr" }, { 1, "l+r" } } },
    { "who does not localize",
      3,
      { 0, 0 },
      MOVES,
      .programs = { { 1, "+r+r+" }, { 2, "lwl" }, { 0, "+l" } } },
    { "two keys",
      2,
      { 0, 1 },
      MOVES,
      .programs = { { 0, "lL+P" }, { 1, "Ll+RP" } } },
    { "synchronous",
      3,
      { 0, 0 },
      MOVES,
      .programs = { { 0, "+wlw+wrw" }, { 1, "lw+wrw" }, { 2, "+wrwlwrw" } } },
    { "keys that move and are reached by messages",
      2,
      { 0, 0 },
      .moves = true,
      .programs = { { 0, "l+r+lr" }, { 1, "+lr+r" } } },
    { "the same, its home elsewhere",
      3,
      { 2, 2 },
      .moves = true,
      .programs = { { 0, "l+r+l" }, { 1, "+lr+" } } },
    { "the same, two workers of one node",
      3,
      { 2, 2 },
      .moves = true,
      .programs = { { 0, "+r+" }, { 0, "lwlr" }, { 1, "l+r" } } },
    { "a server that is reached by messages",
      2,
      { 0, 1 },
      .programs = { { 0, "+rP+R" }, { 1, "+rPr" } } },
    { "a server that is reached in memory",
      2,
      { 0, 1 },
      .shared = true,
      .programs = { { 0, "+rP+R" }, { 1, "+rPr" }, { 0, "+r" } } },
};

UNIT_TEST(accesses_of_a_key_have_one_order)
{
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_null(explore_scene(&right[i]));
        assert_true(n_ends > 0);
    }
}

/* That messages stay in order is needed, and its lack is found. */
UNIT_TEST(without_order_of_messages_it_fails)
{
    struct scene scene = right[0];

    scene.name = "without order";
    scene.unordered = true;
    assert_non_null(explore_scene(&scene));
}
