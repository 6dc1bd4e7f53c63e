/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/trainer/keys/localize-world.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/keys/localize.h"

#define KEY_SPACE 64            /* To find keys of the homes that are asked
                                 * for. */

struct world world;

void
world_fail(const char *what)
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
        world_fail("an operation was answered twice");
    }
    p->done[op] = true;
    if (item->kind == ITEM_PULLED) {
        p->seen[op] = *item->values;
    }
}

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
    put(b, l->round ? &l->round[key] : &(uint32_t) { 0 }, sizeof *l->round);
    put(b, vector ? vector : &(float) { 0 }, sizeof *vector);
    for (struct localize_waiter *w = coming ? coming->first : NULL; w;
         w = w->next) {
        put_item(b, &w->item, w->item.values ? *w->item.values : 0);
    }
}

void
world_save(struct bytes *b)
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
    uint32_t round;
    float value;

    clear_key(l, key);
    get(b, at, fields, sizeof fields);
    get(b, at, &next, 1);
    get(b, at, &round, sizeof round);
    get(b, at, &value, sizeof value);
    l->where[key] = fields[0];
    if (l->round) {
        l->round[key] = round;
    }
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

void
world_load(const struct bytes *b)
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

void
world_deliver(int from, int to, int i)
{
    struct queue *q = &world.queues[from][to];
    struct message_to m = q->messages[i];

    q->n--;
    memmove(q->messages + i, q->messages + i + 1,
            (q->n - i) * sizeof q->messages[0]);
    m.item.values = has_value(m.item.kind) ? &m.value : NULL;
    if (!localize_take(&world.nodes[to], from, &m.item)) {
        world_fail("a message was not understood");
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

void
world_open(const struct scene *scene)
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
        local_store_init(&world.stores[i], &range, 1, 2);
        localize_init(&world.nodes[i],
                      &(struct localize_config){
                          .rank = i,
                          .n = scene->n,
                          .moves = scene->moves,
                          .shared = scene->shared,
                          .class = &class,
                          .aux = &world.ranks[i],
                      },
                      &world.stores[i]);
    }
    while (world.n_workers < MAX_JOB_PROCESSES
           && scene->programs[world.n_workers].ops) {
        const char *op = scene->programs[world.n_workers++].ops;

        assert_true(strlen(op) < MAX_OPS);
        for (; *op; op++) {
            world.n_pushes += is_push(*op);
        }
    }
}

void
world_close(void)
{
    for (int i = 0; i < world.scene->n; i++) {
        for (int k = 0; k < N_KEYS; k++) {
            clear_key(&world.nodes[i], world.keys[k]);
        }
        localize_uninit(&world.nodes[i]);
        local_store_uninit(&world.stores[i]);
    }
}
