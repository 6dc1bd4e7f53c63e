/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/shim/cc-packets.h"

#include <netinet/in.h>
#include <string.h>

enum {
    L3 = 14,
};

/* RFC 1071, independent of the tested code. */
static uint32_t
add_words(uint32_t sum, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum += i % 2 ? p[i] : p[i] << 8;
    }
    return sum;
}

static uint16_t
whole(uint32_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static uint16_t
pseudo_sum(const uint8_t *ip, const uint8_t *l4, size_t size)
{
    bool is_4 = ip[0] >> 4 == 4;
    uint32_t sum = size + (is_4 ? ip[9] : ip[6]);

    sum = add_words(sum, is_4 ? ip + 12 : ip + 8, is_4 ? 8 : 32);
    return whole(add_words(sum, l4, size));
}

static size_t
put_options(uint8_t *p, const struct packet_spec *s)
{
    uint8_t *start = p;

    memset(p, 1, 40);
    p += s->options;
    if (s->mss) {
        p[0] = 2;
        p[1] = 4;
        put_be16(p + 2, s->mss);
        p += 4;
    }
    if (s->ts_value) {
        p[2] = 8;
        p[3] = 10;
        put_be32(p + 4, s->ts_value);
        put_be32(p + 8, s->ts_echo);
        p += 12;
    }
    if (s->has_scale) {
        p[1] = 3;
        p[2] = 3;
        p[3] = s->scale;
        p += 4;
    }
    return (p - start + 3) / 4 * 4;
}

static size_t
put_tcp(uint8_t *tcp, const struct packet_spec *s)
{
    size_t header = 20 + put_options(tcp + 20, s);

    put_be16(tcp, s->from_port);
    put_be16(tcp + 2, s->to_port);
    put_be32(tcp + 4, s->seq);
    put_be32(tcp + 8, s->ack);
    tcp[12] = header / 4 << 4;
    tcp[13] = s->flags;
    put_be16(tcp + 14, s->window);
    put_be16(tcp + 16, 0);
    put_be16(tcp + 18, 0);
    for (uint32_t i = 0; i < s->payload; i++) {
        tcp[header + i] = i * 7 + s->seq;
    }
    return header + s->payload;
}

static void
put_ip(uint8_t *ip, const struct packet_spec *s, size_t size)
{
    if (s->family != 6) {
        memset(ip, 0, 20);
        ip[0] = 0x45;
        ip[1] = s->ecn;
        put_be16(ip + 2, 20 + size);
        ip[8] = 64;
        ip[9] = IPPROTO_TCP;
        put_be32(ip + 12, 0x0a000000 + s->from);
        put_be32(ip + 16, 0x0a000000 + s->to);
        put_be16(ip + 10, ~whole(add_words(0, ip, 20)));
        return;
    }
    memset(ip, 0, 40);
    ip[0] = 0x60;
    ip[1] = s->ecn << 4;
    put_be16(ip + 4, size);
    ip[6] = IPPROTO_TCP;
    ip[8] = ip[24] = 0xfd;
    ip[23] = s->from;
    ip[39] = s->to;
}

void
packet_make(struct cc_packet *p, const struct packet_spec *s)
{
    uint8_t *frame = p->buffer + PACKET_ROOM, *ip = frame + L3;
    uint8_t *tcp = ip + (s->family == 6 ? 40 : 20);
    size_t size = put_tcp(tcp, s);

    memset(frame, 2, 12);
    put_be16(frame + 12, s->family == 6 ? 0x86dd : 0x0800);
    put_ip(ip, s, size);
    put_be16(tcp + 16, ~pseudo_sum(ip, tcp, size));
    p->frame = (struct cc_frame) {
        .data = frame,
        .length = tcp + size - frame,
        .headroom = PACKET_ROOM,
    };
}

bool
packet_is_right(const uint8_t *frame, size_t length)
{
    const uint8_t *ip = frame + L3;
    bool is_4 = ip[0] >> 4 == 4;
    size_t header = is_4 ? 20 : 40;
    size_t size = get_be16(is_4 ? ip + 2 : ip + 4) - (is_4 ? header : 0);

    return (L3 + header + size == length
            && (!is_4 || whole(add_words(0, ip, 20)) == 0xffff)
            && pseudo_sum(ip, ip + header, size) == 0xffff);
}
