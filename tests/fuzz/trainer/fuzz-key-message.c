/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes messages about keys from malicious nodes: frames pass through the
 * reader into the state machine of a node.  The node may reject them, but its
 * state must stay consistent: each key is local, or requested, or neither. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/must.h"
#include "trainer/keys/key-message.h"
#include "trainer/keys/local-store.h"
#include "trainer/keys/localize.h"

#define N_NODES 3
#define FRAME_BYTES 6           /* Kind, origin, sender, operation, and the
                                 * body's length in floats. */

static const struct key_range ranges[] = { { 6, 1 }, { 3, 5 } };

struct node {
    struct local_store store;
    struct localize localize;
    uint64_t n_sent;
};

/* Checks that a sent message can be parsed again, with the same contents. */
static void
send(void *node_, int to, const struct key_item *item)
{
    static uint8_t body[FRAME_MAX_UPDATE];
    struct node *node = node_;
    struct key_message m;
    struct key_item again;
    struct frame frame;

    must(to >= 0 && to < N_NODES);
    must(item->key < node->store.n_keys);
    key_message_begin(&m, body);
    must(key_message_add(&m, item,
                         item->values ? local_store_width(&node->store,
                                                          item->key) : 0));
    must(key_message_add(&m, item,
                         item->values ? local_store_width(&node->store,
                                                          item->key) : 0));
    frame = m.frame;
    key_message_open(&m, &frame, body);
    for (int i = 0; i < (item->kind == ITEM_PUSHED ? 1 : 2); i++) {
        must(key_message_next(&m, &node->store, N_NODES, &again));
        must(again.kind == item->kind && again.origin == item->origin
             && again.op == item->op && !item->values == !again.values);
        must(item->kind == ITEM_PUSHED ? again.n_keys == 2 * item->n_keys
                                       : again.key == item->key);
    }
    must(!key_message_next(&m, &node->store, N_NODES, &again) && !m.wrong);
    node->n_sent++;
}

static void
answer(void *node, const struct key_item *item)
{
    must(item->kind == ITEM_PULLED || item->kind == ITEM_PUSHED
         || item->kind == ITEM_LANDED);
}

static void
check_keys(const struct node *node)
{
    for (uint64_t key = 0; key < node->store.n_keys; key++) {
        const struct localize_coming *coming = node->localize.coming[key];

        must(!coming || !local_store_peek(&node->store, key));
        must(!coming || coming->next_owner < N_NODES);
        must(node->localize.where[key] < N_NODES);
    }
}

/* Performs an access by a worker of the node itself. */
static void
act(struct node *node, enum item_kind kind, uint64_t key)
{
    static const float values[5] = { 1, 2, 3, 4, 5 };

    localize_access(&node->localize, &(struct key_item) {
        .kind = kind, .key = key % node->store.n_keys,
        .values = kind == ITEM_PUSH ? values : NULL,
    });
}

/* Returns the number of bytes consumed. */
static size_t
take_frame(struct node *node, const uint8_t *data, size_t size)
{
    static float body[256];
    size_t n = data[5] < (size - FRAME_BYTES) / 4
               ? data[5] : (size - FRAME_BYTES) / 4;
    struct frame frame = {
        .type = FRAME_KEY_ITEMS,
        .items = {
            .kind = data[0], .origin = data[1], .op = data[3], .n = n,
        },
    };
    struct key_message m;
    struct key_item item;

    memcpy(body, data + FRAME_BYTES, n * 4);
    key_message_open(&m, &frame, body);
    while (key_message_next(&m, &node->store, N_NODES, &item)) {
        must(item.key < node->store.n_keys && item.origin < N_NODES);
        m.wrong = !localize_take_pushes(&node->localize, &m, &item)
                  && !localize_take(&node->localize, data[2] % N_NODES, &item);
        must(m.at <= m.end);
        check_keys(node);
    }
    return FRAME_BYTES + n * 4;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct localize_class class = { send, answer };
    struct localize_config config = { 0, N_NODES, true, .class = &class };
    struct node node = { .n_sent = 0 };

    if (!size) {
        return 0;
    }
    local_store_init(&node.store, ranges, 2, 2);
    config.shared = data[0] & 1;
    config.aux = &node;
    localize_init(&node.localize, &config, &node.store);
    for (data++, size--; size >= FRAME_BYTES;) {
        if (data[4] % 4 < 3) {
            act(&node, data[4] % 4 == 0 ? ITEM_PULL
                       : data[4] % 4 == 1 ? ITEM_PUSH : ITEM_LOCALIZE,
                data[4] / 4);
            check_keys(&node);
        }
        size_t n = take_frame(&node, data, size);

        data += n;
        size -= n;
    }
    localize_uninit(&node.localize);
    local_store_uninit(&node.store);
    return 0;
}
