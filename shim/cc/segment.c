/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/segment.h"

#include <netinet/in.h>

#include "shim/cc/message.h"
#include "shim/classify/parse.h"

enum {
    OPTION_END = 0,
    OPTION_NOP = 1,
    OPTION_MSS = 2,
    OPTION_SCALE = 3,
    OPTION_TIMESTAMP = 8,
};

enum { TCP_SIZE = 20, CHECKSUM_AT = 16, WINDOW_AT = 14 };

#define LARGEST_FIELD 65535u

static uint32_t
fold_sum(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

uint16_t
checksum_change(uint16_t sum, uint16_t old, uint16_t new)
{
    return ~fold_sum((uint16_t) ~sum + (uint16_t) ~old + (uint32_t) new);
}

uint16_t
checksum_of(const void *data, size_t size, uint32_t start)
{
    const uint8_t *p = data;

    for (; size > 1; size -= 2, p += 2) {
        start = fold_sum(start + get_be16(p));
    }
    if (size) {
        start += *p << 8;
    }
    return ~fold_sum(start);
}

bool
segment_parse(const uint8_t *frame, size_t length, bool from_host,
              struct segment *seg)
{
    const uint8_t *ip, *tcp;
    struct parsed p;

    parse_frame(frame, length, from_host, &p);
    ip = frame + p.l3;
    if (p.kind != PARSED_FLOW || p.key.protocol != IPPROTO_TCP
        || (p.family == 6 && ip[6] != IPPROTO_TCP)) {
        return false;
    }
    tcp = frame + p.l4;
    seg->key = p.key;
    seg->l3 = p.l3;
    seg->l4 = p.l4;
    seg->family = p.family;
    seg->ecn = p.family == 4 ? ip[1] & 3 : ip[1] >> 4 & 3;
    seg->header = (tcp[12] >> 4) * 4;
    if (seg->header < TCP_SIZE || seg->l4 + seg->header > p.end) {
        return false;
    }
    seg->seq = get_be32(tcp + 4);
    seg->ack = get_be32(tcp + 8);
    seg->flags = tcp[13];
    seg->window = get_be16(tcp + WINDOW_AT);
    seg->payload = p.end - seg->l4 - seg->header;
    return true;
}

static void
read_option(const uint8_t *frame, uint16_t at, uint8_t size,
            struct segment_options *o)
{
    const uint8_t *p = frame + at;

    if (p[0] == OPTION_MSS && size == 4) {
        o->mss = get_be16(p + 2);
    } else if (p[0] == OPTION_SCALE && size == 3) {
        o->scale = p[2];
        o->scale_at = at + 2;
    } else if (p[0] == OPTION_TIMESTAMP && size == 10) {
        o->has_timestamp = true;
        o->ts_value = get_be32(p + 2);
        o->ts_echo = get_be32(p + 6);
    } else if (hello_is(p, size)) {
        o->hello_at = at;
        o->hello_size = size;
    }
}

void
segment_options(const uint8_t *frame, const struct segment *seg,
                struct segment_options *o)
{
    uint16_t at = seg->l4 + TCP_SIZE, end = seg->l4 + seg->header;

    *o = (struct segment_options) { .mss = 0 };
    while (at < end && frame[at] != OPTION_END) {
        if (frame[at] == OPTION_NOP) {
            at++;
            continue;
        }
        if (end - at < 2 || frame[at + 1] < 2 || frame[at + 1] > end - at) {
            return;
        }
        read_option(frame, at, frame[at + 1], o);
        at += frame[at + 1];
    }
}

void
segment_set_16(uint8_t *frame, const struct segment *seg, uint16_t at,
               uint16_t value)
{
    uint8_t *sum = frame + seg->l4 + CHECKSUM_AT;

    put_be16(sum, checksum_change(get_be16(sum), get_be16(frame + at), value));
    put_be16(frame + at, value);
}

void
segment_set_window(uint8_t *frame, struct segment *seg, uint16_t window)
{
    if (window != seg->window) {
        segment_set_16(frame, seg, seg->l4 + WINDOW_AT, window);
        seg->window = window;
    }
}

void
segment_set_byte(uint8_t *frame, const struct segment *seg, uint16_t at,
                 uint8_t value)
{
    uint16_t word = at - ((at - seg->l4) & 1);
    uint16_t whole = (word == at ? value << 8 | frame[at + 1]
                      : frame[word] << 8 | value);

    segment_set_16(frame, seg, word, whole);
}

void
segment_set_ecn(uint8_t *frame, struct segment *seg, uint8_t ecn)
{
    uint8_t *ip = frame + seg->l3;

    if (seg->family == 4) {
        uint16_t old = get_be16(ip), new = (old & ~3) | ecn;

        put_be16(ip + 10, checksum_change(get_be16(ip + 10), old, new));
        put_be16(ip, new);
    } else {
        ip[1] = (ip[1] & ~0x30) | ecn << 4;
    }
    seg->ecn = ecn;
}

void
cc_window_syn(struct cc_window *w, uint8_t *frame, struct segment *seg,
              const struct segment_options *o)
{
    uint8_t shift = o->scale < CC_WINDOW_LARGEST_SHIFT
                        ? o->scale
                        : CC_WINDOW_LARGEST_SHIFT;

    w->host_syn_seen = true;
    w->host_scales = o->scale_at != 0;
    w->host_shift = w->wire_shift = shift;
    w->has_edge = false;
    if (w->host_scales && shift > CC_WINDOW_MAX_SHIFT) {
        w->wire_shift = CC_WINDOW_MAX_SHIFT;
        segment_set_byte(frame, seg, o->scale_at, CC_WINDOW_MAX_SHIFT);
    }
}

void
cc_window_remote_syn(struct cc_window *w, const struct segment_options *o)
{
    w->remote_syn_seen = true;
    w->remote_scales = o->scale_at != 0;
}

bool
cc_window_known(const struct cc_window *w)
{
    return w->host_syn_seen && w->remote_syn_seen;
}

/* Windows are scaled only if both SYNs had a window scale. */
static bool
is_scaled(const struct cc_window *w)
{
    return w->host_scales && w->remote_scales;
}

bool
cc_window_translates(const struct cc_window *w)
{
    return (cc_window_known(w) && is_scaled(w)
            && w->host_shift != w->wire_shift);
}

static void
note_edge(struct cc_window *w, uint32_t edge)
{
    if (!w->has_edge || (int32_t) (edge - w->edge) > 0) {
        w->edge = edge;
        w->has_edge = true;
    }
}

/* Returns the window to advertise at 'ack', of the 'has' bytes that the host
 * advertises: at most 'limit', but not left of the last right edge. */
static uint32_t
allowed_window(const struct cc_window *w, uint32_t ack, uint32_t has,
               uint32_t limit)
{
    int32_t before = w->has_edge ? (int32_t) (w->edge - ack) : 0;
    uint32_t most = limit;

    if (before > 0 && (uint32_t) before > most) {
        most = before;
    }
    return has < most ? has : most;
}

bool
cc_window_apply(struct cc_window *w, uint8_t *frame, struct segment *seg,
                uint32_t limit)
{
    uint8_t from = is_scaled(w) ? w->host_shift : 0;
    uint8_t to = is_scaled(w) ? w->wire_shift : 0;
    uint32_t has = (uint32_t) seg->window << from, may, field;

    if (!cc_window_known(w) || !(seg->flags & SEGMENT_ACK)
        || seg->flags & SEGMENT_RST) {
        return false;
    }
    may = allowed_window(w, seg->ack, has, limit ? limit : 1);
    field = (may + (1u << to) - 1) >> to;
    if (field > LARGEST_FIELD) {
        field = LARGEST_FIELD;
    }
    segment_set_window(frame, seg, field);
    note_edge(w, seg->ack + (field << to));
    return may < has;
}
