/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/message.h"

#include <sodium.h>
#include <string.h>

#include "shim/cc/cc.h"
#include "shim/cc/segment.h"

enum {
    KIND = 253,
    SIZE = 14, /* Without the NOPs. */
    NOP = 1,
    EXPERIMENT = 0x5347,
    TCP_SIZE = 20,
    MAX_HEADER = 60,
    CHECKSUM_AT = 16,
};

bool
hello_is(const uint8_t *option, uint8_t size)
{
    return (size >= 4 && option[0] == KIND
            && get_be16(option + 2) == EXPERIMENT);
}

bool
hello_fits(const struct segment *seg)
{
    return seg->header + HELLO_BYTES <= MAX_HEADER;
}

uint64_t
hello_read(const uint8_t *frame, const struct segment_options *o)
{
    const uint8_t *option = frame + o->hello_at;

    return (o->hello_size == SIZE && option[4] == HELLO_VERSION
                ? get_be64(option + 6)
                : 0);
}

/* The frame gets longer by 'change' bytes of TCP header, or shorter, which are
 * the option at 'at'.  Updates lengths and checksums. */
static void
count_option(uint8_t *frame, struct segment *seg, uint16_t at, int change)
{
    uint8_t *ip = frame + seg->l3, *sum = frame + seg->l4 + CHECKSUM_AT;
    uint8_t *length = ip + (seg->family == 4 ? 2 : 4);
    uint16_t old = get_be16(length), new = old + change;
    uint16_t words = ~checksum_of(frame + at, HELLO_BYTES, 0);

    if (seg->family == 4) {
        put_be16(ip + 10, checksum_change(get_be16(ip + 10), old, new));
    }
    put_be16(length, new);
    /* The pseudo header contains the length. */
    put_be16(sum, checksum_change(get_be16(sum), old, new));
    put_be16(sum, checksum_change(get_be16(sum), change < 0 ? words : 0,
                                  change < 0 ? 0 : words));
    segment_set_16(frame, seg, seg->l4 + 12,
                   get_be16(frame + seg->l4 + 12) + (change / 4) * 0x1000);
    seg->header += change;
}

/* The frame begins 'by' bytes earlier, and what is before 'at' moves there. */
static void
move_start(struct cc_frame *frame, uint16_t at, int by)
{
    memmove(frame->data - by, frame->data, at);
    frame->data -= by;
    frame->length += by;
    frame->headroom -= by;
}

void
hello_insert(struct cc_frame *frame, struct segment *seg, uint8_t flags,
             uint64_t nonce)
{
    uint16_t at = seg->l4 + TCP_SIZE;
    uint8_t *p;

    move_start(frame, at, HELLO_BYTES);
    p = frame->data + at;
    p[0] = p[1] = NOP;
    p[2] = KIND;
    p[3] = SIZE;
    put_be16(p + 4, EXPERIMENT);
    p[6] = HELLO_VERSION;
    p[7] = flags;
    put_be64(p + 8, nonce);
    count_option(frame->data, seg, at, HELLO_BYTES);
}

void
hello_remove(struct cc_frame *frame, struct segment *seg,
             struct segment_options *o)
{
    uint16_t at = seg->l4 + TCP_SIZE;

    for (; o->hello_at; segment_options(frame->data, seg, o)) {
        if (o->hello_at == at + 2 && o->hello_size == SIZE
            && frame->data[at] == NOP && frame->data[at + 1] == NOP) {
            count_option(frame->data, seg, at, -HELLO_BYTES);
            move_start(frame, at, -HELLO_BYTES);
            continue;
        }
        for (int i = 0; i < o->hello_size; i++) {
            segment_set_byte(frame->data, seg, o->hello_at + i, NOP);
        }
    }
}

static const char magic[4] = { 'S', 'G', 'C', 'C' };

_Static_assert(SHIM_KEY_BYTES == crypto_shorthash_siphash24_KEYBYTES
                   && GRANT_HASH == crypto_shorthash_siphash24_BYTES,
               "keys and hashes are those of SipHash");

/* Stores the hash of 'size' bytes of a message. */
static void
hash_of(const uint8_t *p, size_t size, const struct grant_ends *ends,
        uint8_t hash[GRANT_HASH])
{
    uint8_t all[1 + 32 + GRANT_MAX_MESSAGE];

    all[0] = ends->family;
    memcpy(all + 1, ends->sender, 16);
    memcpy(all + 17, ends->receiver, 16);
    memcpy(all + 33, p, size);
    crypto_shorthash_siphash24(hash, all, 33 + size, ends->key);
}

/* Returns the size of a message without its hash. */
static size_t
size_of(const uint8_t *p)
{
    return GRANT_HEADER + p[7] * GRANT_SIZE;
}

size_t
grant_message_write(const struct grant_message *m,
                    const struct grant_ends *ends, uint8_t *message)
{
    uint8_t *p = message;

    memcpy(p, magic, sizeof magic);
    p[4] = GRANT_VERSION;
    p[5] = m->type;
    p[6] = m->flags;
    p[7] = m->n;
    put_be64(p + 8, m->to);
    put_be64(p + 16, m->from);
    put_be64(p + 24, m->number);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        const struct grant *g = &m->grants[i];

        memcpy(p, &g->sender_port, 2);
        memcpy(p + 2, &g->receiver_port, 2);
        put_be32(p + 4, g->ms);
        put_be64(p + 8, g->bps);
    }
    hash_of(message, p - message, ends, p);
    return p + GRANT_HASH - message;
}

bool
grant_message_read(const uint8_t *p, size_t size, struct grant_message *m)
{
    if (size < GRANT_HEADER || memcmp(p, magic, sizeof magic)
        || p[4] != GRANT_VERSION || p[7] > GRANT_MAX
        || size < size_of(p) + GRANT_HASH) {
        return false;
    }
    m->type = p[5];
    m->flags = p[6];
    m->n = p[7];
    m->to = get_be64(p + 8);
    m->from = get_be64(p + 16);
    m->number = get_be64(p + 24);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        struct grant *g = &m->grants[i];

        memcpy(&g->sender_port, p, 2);
        memcpy(&g->receiver_port, p + 2, 2);
        g->ms = get_be32(p + 4);
        g->bps = get_be64(p + 8);
    }
    return true;
}

bool
grant_message_is_right(const uint8_t *p, const struct grant_ends *ends)
{
    uint8_t hash[GRANT_HASH];

    hash_of(p, size_of(p), ends, hash);
    return !sodium_memcmp(hash, p + size_of(p), GRANT_HASH);
}
