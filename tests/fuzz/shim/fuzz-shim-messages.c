/* SPDX-License-Identifier: Apache-2.0 */

/* Messages of a remote shim, half of them with a right hash: of one that is
 * broken or differs from its header.  Those with another hash take no effect,
 * and all queues are released.  The input is a sequence of steps with a head
 * of two bytes: what to do, and how many bytes follow. */

#include <netinet/in.h>

#include "shim/cc/message.h"
#include "shim/cc/segment.h"
#include "shim/cc/takeover-state.h"
#include "tests/fuzz/shim/cc-frames.h"

static const uint8_t local[16] = { 10, 0, 0, 1 }, remote[16] = { 10, 0, 0, 2 };

struct world {
    struct cc *cc;
    uint64_t now;
    uint64_t nonce;  /* That the shim expects. */
    uint64_t number; /* Of the last message. */
    bool has_key;
    uint8_t key[SHIM_KEY_BYTES];
};

/* Writes the headers of a packet between the hosts with 'size' bytes behind
 * the IP header.  Returns where these begin. */
static uint8_t *
put_headers(uint8_t *p, bool from_host, uint8_t protocol, size_t size)
{
    memset(p, 0, 34);
    put_be16(p + 12, 0x0800);
    p[14] = 0x45;
    put_be16(p + 16, 20 + size);
    p[22] = 64;
    p[23] = protocol;
    memcpy(p + 26, from_host ? local : remote, 4);
    memcpy(p + 30, from_host ? remote : local, 4);
    return p + 34;
}

/* A SYN in each direction: there is a flow, and a record of the host. */
static void
open_flow(struct world *w)
{
    for (int from_host = 1; from_host >= 0; from_host--) {
        uint8_t frame[34 + 20] = { 0 };
        uint8_t *tcp = put_headers(frame, from_host, IPPROTO_TCP, 20);

        put_be16(tcp, from_host ? 5001 : 6001);
        put_be16(tcp + 2, from_host ? 6001 : 5001);
        tcp[12] = 5 << 4;
        tcp[13] = SEGMENT_SYN | (from_host ? 0 : SEGMENT_ACK);
        give(w->cc, frame, sizeof frame, from_host, w->now);
    }
}

static void
learn_nonce(struct world *w)
{
    struct takeover_state *state = malloc(CC_TAKEOVER_BYTES);
    const struct takeover_remote *first = (const void *) (state + 1);

    must(state);
    cc_save(w->cc, state);
    must(state->n_remotes == 1 && first->own_nonce);
    w->nonce = first->own_nonce;
    free(state);
}

static uint64_t
n_taken(const struct world *w)
{
    struct shim_stats stats;

    cc_stats(w->cc, &stats);
    return stats.cc_grants_taken;
}

static void
give_message(struct world *w, const uint8_t *message, size_t size)
{
    uint8_t frame[34 + 8 + GRANT_MAX_MESSAGE];
    uint8_t *udp = put_headers(frame, false, IPPROTO_UDP, 8 + size);

    put_be16(udp, GRANT_PORT);
    put_be16(udp + 2, GRANT_PORT);
    put_be16(udp + 4, 8 + size);
    put_be16(udp + 6, 0);
    memcpy(udp + 8, message, size);
    give(w->cc, frame, 34 + 8 + size, 0, w->now);
}

/* Gives the bytes as a message, or as its parts with a right hash. */
static void
step(struct world *w, const uint8_t *data, size_t size, bool right)
{
    struct grant_message m = { .to = w->nonce };
    uint8_t bytes[GRANT_MAX_MESSAGE] = { 0 }, key[SHIM_KEY_BYTES];
    struct grant_ends ends = { 4, remote, local, w->has_key ? w->key : key };
    uint64_t taken = n_taken(w);

    if (!right) {
        give_message(w, data, size < sizeof bytes ? size : sizeof bytes);
        must(n_taken(w) == taken);
        return;
    }
    memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
    m.type = bytes[0];
    m.flags = bytes[1];
    m.n = bytes[2] % (GRANT_MAX + 1);
    m.from = bytes[3];
    m.number = w->number += (int8_t) bytes[4];
    m.to ^= bytes[5] & 1;
    for (int i = 0; i < m.n; i++) {
        const uint8_t *p = bytes + 6 + i * GRANT_SIZE;

        m.grants[i] = (struct grant){ .sender_port = htons(5001 + p[0] % 2),
                                      .receiver_port = htons(6001 + p[1] % 2),
                                      .ms = get_be32(p + 4),
                                      .bps = get_be64(p + 8) };
    }
    put_be64(key, w->nonce);
    put_be64(key + 8, m.from);
    give_message(w, bytes, grant_message_write(&m, &ends, bytes));
}

static void
set_key(struct world *w, const uint8_t *data, size_t size)
{
    struct shim_key key = { .family = 4, .removed = !size };

    memcpy(key.remote, remote, sizeof key.remote);
    memcpy(key.key, data, size < sizeof key.key ? size : sizeof key.key);
    w->has_key = size;
    memcpy(w->key, key.key, sizeof w->key);
    cc_set_keys(w->cc, &key, 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_slots *slots = job_slots_create();
    struct world w = { .cc = create_cc(slots),
                       .now = 1000 * MS,
                       .number = 1000 };

    open_flow(&w);
    learn_nonce(&w);
    while (size >= 2) {
        uint8_t what = data[0];
        size_t n = data[1] < size - 2 ? data[1] : size - 2;

        if (what % 8 < 6) {
            step(&w, data + 2, n, what % 2);
        } else if (what % 8 == 6) {
            set_key(&w, data + 2, n);
        }
        w.now += (what >> 3) * (what % 8 == 7 ? 3000 * MS : MS / 2);
        cc_poll(w.cc, w.now);
        data += 2 + n;
        size -= 2 + n;
    }
    destroy_cc(w.cc, w.now);
    job_slots_destroy(slots);
    return 0;
}
