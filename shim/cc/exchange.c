/* SPDX-License-Identifier: Apache-2.0 */

/* What this shim sends to remote shims, and what it takes from them: hellos in
 * segments, and messages. */

#include <netinet/in.h>
#include <string.h>

#include "shim/cc/state.h"
#include "shim/classify/parse.h"
#include "shim/clock/counter.h"

#define HELLO_GAP_NS (100 * MS) /* Between two hellos on ACKs to a host. */
#define MAX_HELLOS 5            /* On ACKs, without a reply. */

enum { IPV4_SIZE = 20, IPV6_SIZE = 40, UDP_SIZE = 8, TTL = 64 };

/* Writes an IP header for 'payload' bytes of UDP and returns its size.  The
 * sender of the message writes the DSCP. */
static size_t
put_ip(const struct remote_shim *rs, uint8_t *ip, size_t payload)
{
    if (rs->kept.family == 4) {
        memset(ip, 0, IPV4_SIZE);
        ip[0] = 0x45;
        put_be16(ip + 2, IPV4_SIZE + payload);
        put_be16(ip + 6, 0x4000);
        ip[8] = TTL;
        ip[9] = IPPROTO_UDP;
        memcpy(ip + 12, rs->kept.local, 4);
        memcpy(ip + 16, rs->kept.remote, 4);
        put_be16(ip + 10, checksum_of(ip, IPV4_SIZE, 0));
        return IPV4_SIZE;
    }
    memset(ip, 0, IPV6_SIZE);
    ip[0] = 0x60;
    put_be16(ip + 4, payload);
    ip[6] = IPPROTO_UDP;
    ip[7] = TTL;
    memcpy(ip + 8, rs->kept.local, 16);
    memcpy(ip + 24, rs->kept.remote, 16);
    return IPV6_SIZE;
}

static void
put_udp(const struct remote_shim *rs, uint8_t *udp, size_t size)
{
    size_t n = rs->kept.family == 4 ? 4 : 16;
    uint32_t sum = IPPROTO_UDP + size;

    sum += (uint16_t) ~checksum_of(rs->kept.local, n, 0);
    sum += (uint16_t) ~checksum_of(rs->kept.remote, n, 0);
    put_be16(udp, GRANT_PORT);
    put_be16(udp + 2, GRANT_PORT);
    put_be16(udp + 4, size);
    put_be16(udp + 6, 0);
    sum = checksum_of(udp, size, sum);
    put_be16(udp + 6, sum ? sum : 0xffff);
}

void
message_send(struct cc *cc, struct remote_shim *rs, uint8_t type)
{
    uint8_t payload[GRANT_MAX_MESSAGE], *p = cc->frame;
    size_t size;

    rs->message.type = type;
    rs->message.flags = cc_own_flags(cc);
    rs->message.to = rs->kept.nonce;
    rs->message.from = rs->kept.own_nonce;
    size = grant_message_write(&rs->message, payload);
    memcpy(p, rs->kept.l2, rs->kept.l2_size);
    p += rs->kept.l2_size;
    p += put_ip(rs, p, UDP_SIZE + size);
    memcpy(p + UDP_SIZE, payload, size);
    put_udp(rs, p, UDP_SIZE + size);
    p += UDP_SIZE + size;
    cc->config.send(cc->config.aux, cc->frame, p - cc->frame);
    if (type == GRANT_RATES) {
        counter_add(&cc->grants_sent, rs->message.n);
    }
    rs->message.n = 0;
}

void
message_add(struct cc *cc, struct remote_shim *rs, uint8_t type,
            const struct grant *grant)
{
    struct grant_message *m = &rs->message;

    if (m->n == GRANT_MAX) {
        message_send(cc, rs, type);
    }
    m->grants[m->n++] = *grant;
}

bool
message_receive(struct cc *cc, const struct cc_frame *frame, uint64_t now,
                struct shim_flow_key *hosts, struct grant_message *m)
{
    struct remote_shim *rs;
    struct parsed p;
    size_t at;

    parse_frame(frame->data, frame->length, false, &p);
    if (p.kind != PARSED_FLOW || p.key.protocol != IPPROTO_UDP
        || p.key.local_port != htons(GRANT_PORT)
        || p.key.remote_port != htons(GRANT_PORT)) {
        return false;
    }
    at = p.l4 + UDP_SIZE;
    if (!grant_message_read(frame->data + at, frame->length - at, m)) {
        return false;
    }
    rs = remote_shims_find(&cc->remotes, &p.key, now, false);
    if (!rs || m->to != rs->kept.own_nonce) {
        m->type = 0;
        return true;
    }
    remote_shim_verify(rs, m->flags, m->from);
    rs->silent &= m->type != GRANT_RATES;
    *hosts = p.key;
    return true;
}

static void
insert_hello(const struct cc *cc, struct cc_frame *frame, struct segment *seg,
             const struct remote_shim *rs)
{
    struct hello hello = { .version = HELLO_VERSION,
                           .flags = cc_own_flags(cc),
                           .nonce = rs->kept.own_nonce };

    frame->data = hello_insert(frame->data, seg, &hello);
    frame->length += HELLO_BYTES;
    frame->headroom -= HELLO_BYTES;
}

void
hello_send(const struct cc *cc, struct cc_frame *frame, struct segment *seg,
           struct cc_flow *flow, uint64_t now)
{
    struct remote_shim *rs = flow->remote;
    bool is_syn = seg->flags & SEGMENT_SYN;

    if (frame->headroom < HELLO_BYTES || !hello_fits(seg)) {
        return;
    }
    if (is_syn) {
        if (!flow->hello_sent
            && (!(seg->flags & SEGMENT_ACK) || rs->kept.verified)) {
            flow->hello_sent = true;
            insert_hello(cc, frame, seg, rs);
        }
        return;
    }
    if (!rs->kept.verified && !seg->payload && flow->in.bulk
        && rs->n_hellos < MAX_HELLOS && now - rs->hello_at > HELLO_GAP_NS) {
        rs->n_hellos++;
        rs->hello_at = now;
        insert_hello(cc, frame, seg, rs);
    }
}

void
hello_receive(struct cc *cc, struct cc_frame *frame, struct segment *seg,
              const struct segment_options *o, struct remote_shim *rs)
{
    uint8_t *data = frame->data;
    struct hello hello;

    hello_read(data + o->hello_at, &hello);
    frame->data = hello_remove(data, seg, o);
    frame->length -= frame->data - data;
    frame->headroom += frame->data - data;
    if (!rs || hello.version != HELLO_VERSION) {
        return;
    }
    remote_shim_verify(rs, hello.flags, hello.nonce);
    if (!(seg->flags & SEGMENT_SYN) && rs->kept.l2_size) {
        message_send(cc, rs, GRANT_HELLO);
    }
}
