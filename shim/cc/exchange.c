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

/* Sends the message of 'rs' as one of 'type' for the nonce 'to',
 * or drops it if there is no key. */
static void
send_to(struct cc *cc, struct remote_shim *rs, uint8_t type, uint64_t to,
        uint64_t now)
{
    uint8_t payload[GRANT_MAX_MESSAGE], key[SHIM_KEY_BYTES], *p = cc->frame;
    struct takeover_remote *kept = &rs->kept;
    struct grant_message *m = &rs->message;
    size_t size;

    if (remote_shim_key(&cc->remotes, rs, to, now, key)) {
        m->type = type;
        m->flags = cc_own_flags(cc);
        m->to = to;
        m->from = kept->own_nonce;
        m->number = ++kept->sent;
        size =
            grant_message_write(m,
                                &(struct grant_ends){ .family = kept->family,
                                                      .sender = kept->local,
                                                      .receiver = kept->remote,
                                                      .key = key },
                                payload);
        memcpy(p, kept->l2, kept->l2_size);
        p += kept->l2_size;
        p += put_ip(rs, p, UDP_SIZE + size);
        memcpy(p + UDP_SIZE, payload, size);
        put_udp(rs, p, UDP_SIZE + size);
        p += UDP_SIZE + size;
        cc->config.send(cc->config.aux, cc->frame, p - cc->frame);
        if (type == GRANT_RATES) {
            counter_add(&cc->grants_sent, m->n);
        }
    }
    m->n = 0;
}

void
message_send(struct cc *cc, struct remote_shim *rs, uint8_t type, uint64_t now)
{
    send_to(cc, rs, type, rs->kept.nonce, now);
}

void
message_ask(struct cc *cc, struct remote_shim *rs, uint64_t now)
{
    struct grant_message hello = { .n = 0 }, being_written = rs->message;

    rs->message = hello;
    send_to(cc, rs, GRANT_HELLO, rs->hint ? rs->hint : rs->kept.nonce, now);
    rs->message = being_written;
}

void
message_add(struct cc *cc, struct remote_shim *rs, uint8_t type,
            const struct grant *grant, uint64_t now)
{
    struct grant_message *m = &rs->message;

    if (m->n == GRANT_MAX) {
        message_send(cc, rs, type, now);
    }
    m->grants[m->n++] = *grant;
}

/* Returns the message in 'frame', of the remote shim 'rs', in '*m', if it is
 * right and new. */
static bool
read_message(struct cc *cc, const struct cc_frame *frame,
             const struct parsed *p, struct remote_shim *rs,
             struct grant_message *m, uint64_t now)
{
    const uint8_t *bytes = frame->data + p->l4 + UDP_SIZE;
    enum remote_verdict verdict = REMOTE_UNKNOWN;

    if (rs && grant_message_read(bytes, p->end - p->l4 - UDP_SIZE, m)) {
        verdict = remote_shim_check(&cc->remotes, rs, bytes, m, now);
    }
    counter_add(&cc->refused, verdict == REMOTE_WRONG);
    counter_add(&cc->repeated, verdict == REMOTE_OLD);
    return verdict == REMOTE_RIGHT;
}

bool
message_receive(struct cc *cc, const struct cc_frame *frame, uint64_t now,
                struct shim_flow_key *hosts, struct grant_message *m)
{
    struct remote_shim *rs;
    struct parsed p;

    parse_frame(frame->data, frame->length, false, &p);
    if (p.kind != PARSED_FLOW || p.key.protocol != IPPROTO_UDP
        || p.key.local_port != htons(GRANT_PORT)
        || p.key.remote_port != htons(GRANT_PORT)) {
        return false;
    }
    *hosts = p.key;
    rs = remote_shims_find(&cc->remotes, &p.key);
    if (!read_message(cc, frame, &p, rs, m, now)) {
        m->type = 0;
        return true;
    }
    if (m->type == GRANT_HELLO && rs->kept.l2_size) {
        message_send(cc, rs, GRANT_WELCOME, now);
    }
    rs->silent &= m->type != GRANT_RATES;
    return true;
}

static void
insert_hello(const struct cc *cc, struct cc_frame *frame, struct segment *seg,
             const struct remote_shim *rs)
{
    struct hello hello = { .flags = cc_own_flags(cc),
                           .nonce = rs->kept.own_nonce };

    frame->data = hello_insert(frame->data, seg, &hello);
    frame->length += HELLO_BYTES;
    frame->headroom -= HELLO_BYTES;
}

/* Returns true if the segment, which has space, is to have a hello. */
static bool
wants_hello(const struct segment *seg, struct cc_flow *flow, uint64_t now)
{
    struct remote_shim *rs = flow->remote;
    bool is_reply = seg->flags & SEGMENT_ACK;

    if (seg->flags & SEGMENT_SYN) {
        bool wants = (!flow->hello_sent
                      && (!is_reply || rs->kept.verified || rs->hint));

        flow->hello_sent |= wants;
        return wants;
    }
    if (rs->kept.verified || seg->payload || !flow->in.bulk
        || rs->n_hellos >= MAX_HELLOS || now - rs->hello_at <= HELLO_GAP_NS) {
        return false;
    }
    rs->n_hellos++;
    rs->hello_at = now;
    return true;
}

void
hello_send(const struct cc *cc, struct cc_frame *frame, struct segment *seg,
           struct cc_flow *flow, uint64_t now)
{
    if (frame->headroom >= HELLO_BYTES && hello_fits(seg)
        && wants_hello(seg, flow, now)) {
        insert_hello(cc, frame, seg, flow->remote);
    }
}

void
hello_remove_all(struct cc_frame *frame, struct segment *seg,
                 struct segment_options *o)
{
    while (o->hello_at) {
        uint8_t *data = hello_remove(frame->data, seg, o);
        uint32_t moved = data - frame->data;

        frame->data = data;
        frame->length -= moved;
        frame->headroom += moved;
        segment_options(data, seg, o);
    }
}

void
hello_receive(struct cc *cc, struct cc_frame *frame, struct segment *seg,
              struct segment_options *o, struct remote_shim *rs, uint64_t now)
{
    struct hello hello;

    if (rs && hello_read(frame->data + o->hello_at, o->hello_size, &hello)) {
        remote_shim_hint(rs, hello.nonce, !(seg->flags & SEGMENT_SYN));
        if (remote_shim_asks(rs, now)) {
            message_ask(cc, rs, now);
        }
    }
    hello_remove_all(frame, seg, o);
}
