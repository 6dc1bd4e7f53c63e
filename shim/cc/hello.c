/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/hello.h"

#include <string.h>

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

bool
hello_read(const uint8_t *option, uint8_t size, struct hello *hello)
{
    if (size != SIZE || option[4] != HELLO_VERSION) {
        return false;
    }
    hello->flags = option[5];
    hello->nonce = get_be64(option + 6);
    return true;
}

/* Adds 'change' to the lengths of the IP packet and of the TCP header, and
 * updates the checksums. */
static void
change_lengths(uint8_t *frame, struct segment *seg, int change)
{
    uint8_t *ip = frame + seg->l3, *tcp = frame + seg->l4;
    uint8_t *length = ip + (seg->family == 4 ? 2 : 4);
    uint8_t *sum = tcp + CHECKSUM_AT;
    uint16_t old = get_be16(length), new = old + change;

    if (seg->family == 4) {
        put_be16(ip + 10, checksum_change(get_be16(ip + 10), old, new));
    }
    put_be16(length, new);

    /* The pseudo header contains the length. */
    put_be16(sum, checksum_change(get_be16(sum), old, new));
    segment_set_16(frame, seg, seg->l4 + 12,
                   get_be16(tcp + 12) + (change / 4) * 0x1000);
    seg->header += change;
}

/* Adds the option's words at 'at' to the TCP checksum, or removes them. */
static void
count_words(uint8_t *frame, const struct segment *seg, uint16_t at, bool add)
{
    uint8_t *sum = frame + seg->l4 + CHECKSUM_AT;

    for (int i = 0; i < HELLO_BYTES; i += 2) {
        uint16_t word = get_be16(frame + at + i);

        put_be16(sum, checksum_change(get_be16(sum), add ? 0 : word,
                                      add ? word : 0));
    }
}

uint8_t *
hello_insert(uint8_t *frame, struct segment *seg, const struct hello *hello)
{
    uint16_t at = seg->l4 + TCP_SIZE;
    uint8_t *p;

    memmove(frame - HELLO_BYTES, frame, at);
    frame -= HELLO_BYTES;
    p = frame + at;
    p[0] = p[1] = NOP;
    p[2] = KIND;
    p[3] = SIZE;
    put_be16(p + 4, EXPERIMENT);
    p[6] = HELLO_VERSION;
    p[7] = hello->flags;
    put_be64(p + 8, hello->nonce);
    count_words(frame, seg, at, true);
    change_lengths(frame, seg, HELLO_BYTES);
    return frame;
}

uint8_t *
hello_remove(uint8_t *frame, struct segment *seg,
             const struct segment_options *o)
{
    uint16_t at = seg->l4 + TCP_SIZE;

    if (o->hello_at != at + 2 || o->hello_size != SIZE || frame[at] != NOP
        || frame[at + 1] != NOP) {
        for (int i = 0; i < o->hello_size; i++) {
            segment_set_byte(frame, seg, o->hello_at + i, NOP);
        }
        return frame;
    }
    count_words(frame, seg, at, false);
    change_lengths(frame, seg, -HELLO_BYTES);
    memmove(frame + HELLO_BYTES, frame, at);
    return frame + HELLO_BYTES;
}
