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

/* Writes the headers of IP and UDP in front of 'size' bytes at 'payload', and
 * returns where they begin.  The sender of the message writes the DSCP. */
static uint8_t *
put_headers(const struct takeover_remote *to, uint8_t *payload, size_t size)
{
    bool is_4 = to->family == 4;
    size_t n = is_4 ? 4 : 16, header = is_4 ? IPV4_SIZE : IPV6_SIZE;
    uint8_t *udp = payload - UDP_SIZE, *ip = udp - header;
    uint32_t sum;

    size += UDP_SIZE;
    memset(ip, 0, header + UDP_SIZE);
    /* The addresses are the end of both headers. */
    memcpy(udp - 2 * n, to->local, n);
    memcpy(udp - n, to->remote, n);
    if (is_4) {
        ip[0] = 0x45;
        put_be16(ip + 2, header + size);
        put_be16(ip + 6, 0x4000);
        ip[8] = TTL;
        ip[9] = IPPROTO_UDP;
        put_be16(ip + 10, checksum_of(ip, header, 0));
    } else {
        ip[0] = 0x60;
        put_be16(ip + 4, size);
        ip[6] = IPPROTO_UDP;
        ip[7] = TTL;
    }
    put_be16(udp, GRANT_PORT);
    put_be16(udp + 2, GRANT_PORT);
    put_be16(udp + 4, size);
    sum = IPPROTO_UDP + size + (uint16_t) ~checksum_of(udp - 2 * n, 2 * n, 0);
    sum = checksum_of(udp, size, sum);
    put_be16(udp + 6, sum ? sum : 0xffff);
    return ip;
}

/* Sends the message of 'rs' for the nonce 'to', or drops it if there is no
 * key. */
static void
send_to(struct cc *cc, struct remote_shim *rs, uint8_t type, uint64_t to,
        uint64_t now)
{
    uint8_t *payload = cc->frame + TAKEOVER_MAX_L2 + IPV6_SIZE + UDP_SIZE, *p;
    struct takeover_remote *kept = &rs->kept;
    struct grant_message *m = &rs->message;
    uint8_t key[SHIM_KEY_BYTES];
    const struct grant_ends ends = { .family = kept->family,
                                     .sender = kept->local,
                                     .receiver = kept->remote,
                                     .key = key };
    size_t size;

    if (remote_shim_key(rs, to, now, key)) {
        m->type = type;
        m->flags = cc_own_flags(cc);
        m->to = to;
        m->from = kept->own_nonce;
        m->number = ++kept->sent;
        size = grant_message_write(m, &ends, payload);
        p = put_headers(kept, payload, size) - kept->l2_size;
        memcpy(p, kept->l2, kept->l2_size);
        cc->config.send(cc->config.aux, p, payload + size - p);
        if (type == GRANT_RATES) {
            counter_add(&cc->grants_sent, m->n);
        }
    }
    m->n = 0;
}

void
message_ask(struct cc *cc, struct remote_shim *rs, uint64_t now)
{
    send_to(cc, rs, GRANT_HELLO, rs->hint ? rs->hint : rs->kept.nonce, now);
}

void
message_add(struct cc *cc, struct remote_shim *rs, uint8_t type,
            const struct grant *grant, uint64_t now)
{
    struct grant_message *m = &rs->message;

    if (m->n == GRANT_MAX || (m->n && m->type != type)) {
        send_to(cc, rs, m->type, rs->kept.nonce, now);
    }
    if (!rs->is_writing) {
        rs->is_writing = true;
        rs->next_writing = cc->writing;
        cc->writing = rs;
    }
    m->type = type;
    m->grants[m->n++] = *grant;
}

void
message_send_all(struct cc *cc, uint64_t now)
{
    struct remote_shim *rs;

    while ((rs = cc->writing) != NULL) {
        cc->writing = rs->next_writing;
        rs->is_writing = rs->due = false;
        send_to(cc, rs, rs->message.type, rs->kept.nonce, now);
    }
}

bool
message_receive(struct cc *cc, const struct cc_frame *frame, uint64_t now,
                struct shim_flow_key *hosts, struct grant_message *m)
{
    const uint8_t *bytes;
    struct remote_shim *rs;
    struct parsed p;

    parse_frame(frame->data, frame->length, false, &p);
    if (p.kind != PARSED_FLOW || p.key.protocol != IPPROTO_UDP
        || p.key.local_port != htons(GRANT_PORT)
        || p.key.remote_port != htons(GRANT_PORT)) {
        return false;
    }
    *hosts = p.key;
    bytes = frame->data + p.l4 + UDP_SIZE;
    rs = remote_shims_find(&cc->remotes, &p.key);
    if (!rs || !grant_message_read(bytes, frame->data + p.end - bytes, m)
        || !remote_shim_check(&cc->remotes, rs, bytes, m, now)) {
        m->type = 0;
        return true;
    }
    if (m->type == GRANT_HELLO && rs->kept.l2_size) {
        send_to(cc, rs, GRANT_WELCOME, rs->kept.nonce, now);
    }
    rs->silent &= m->type != GRANT_RATES;
    return true;
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
        hello_insert(frame, seg, cc_own_flags(cc),
                     flow->remote->kept.own_nonce);
    }
}

void
hello_receive(struct cc *cc, struct cc_frame *frame, struct segment *seg,
              struct segment_options *o, struct remote_shim *rs, uint64_t now)
{
    uint64_t nonce = rs ? hello_read(frame->data, o) : 0;

    if (nonce) {
        remote_shim_hint(rs, nonce, !(seg->flags & SEGMENT_SYN));
        if (remote_shim_asks(rs, now)) {
            message_ask(cc, rs, now);
        }
    }
    hello_remove(frame, seg, o);
}
