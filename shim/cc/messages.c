/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/messages.h"

#include <netinet/in.h>
#include <string.h>

#include "shim/cc/segment.h"
#include "shim/cc/state.h"
#include "shim/classify/parse.h"
#include "shim/clock/counter.h"

enum { IPV4_SIZE = 20, IPV6_SIZE = 40, UDP_SIZE = 8, TTL = 64 };

static const char magic[4] = { 'S', 'G', 'C', 'C' };

size_t
grant_message_write(const struct grant_message *m, uint8_t *p)
{
    memcpy(p, magic, sizeof magic);
    p[4] = GRANT_VERSION;
    p[5] = m->type;
    p[6] = m->flags;
    p[7] = m->n;
    put_be32(p + 8, m->to);
    put_be32(p + 12, m->from);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        const struct grant *g = &m->grants[i];

        memcpy(p, &g->sender_port, 2);
        memcpy(p + 2, &g->receiver_port, 2);
        put_be32(p + 4, g->ms);
        put_be32(p + 8, g->bps >> 32);
        put_be32(p + 12, g->bps);
    }
    return GRANT_HEADER + m->n * GRANT_SIZE;
}

bool
grant_message_read(const uint8_t *p, size_t size, struct grant_message *m)
{
    if (size < GRANT_HEADER || memcmp(p, magic, sizeof magic)
        || p[4] != GRANT_VERSION || p[7] > GRANT_MAX
        || size < GRANT_HEADER + (size_t) p[7] * GRANT_SIZE) {
        return false;
    }
    m->type = p[5];
    m->flags = p[6];
    m->n = p[7];
    m->to = get_be32(p + 8);
    m->from = get_be32(p + 12);
    p += GRANT_HEADER;
    for (int i = 0; i < m->n; i++, p += GRANT_SIZE) {
        struct grant *g = &m->grants[i];

        memcpy(&g->sender_port, p, 2);
        memcpy(&g->receiver_port, p + 2, 2);
        g->ms = get_be32(p + 4);
        g->bps = (uint64_t) get_be32(p + 8) << 32 | get_be32(p + 12);
    }
    return true;
}

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

/* Handles the flows of a message, which are between the hosts of 'udp': grants
 * are for flows from this host, other types are about flows to it. */
static void
receive_flows(struct cc *cc, const struct shim_flow_key *udp,
              const struct grant_message *m, uint64_t now)
{
    bool is_grant = m->type == GRANT_RATES;
    struct shim_flow_key key = *udp;

    key.protocol = IPPROTO_TCP;
    for (int i = 0; i < m->n; i++) {
        const struct grant *g = &m->grants[i];
        struct cc_flow *flow;

        key.local_port = is_grant ? g->sender_port : g->receiver_port;
        key.remote_port = is_grant ? g->receiver_port : g->sender_port;
        flow = cc_flows_find(cc->flows, &key);
        if (flow && is_grant) {
            counter_add(&cc->grants_taken, 1);
            uplink_hold(cc, flow, g->bps, now + g->ms * MS, now);
        } else if (flow && m->type == GRANT_EMPTY) {
            /* Data in flight make it active again when they arrive. */
            flow->in.quiet |= flow->in.active;
        } else if (flow && m->type == GRANT_WAITING) {
            downlink_waiting(cc, flow, now);
        } else if (flow) {
            flow->in.busy_at = now;
        }
    }
}

bool
message_receive(struct cc *cc, const struct cc_frame *frame, uint64_t now)
{
    struct grant_message m;
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
    if (!grant_message_read(frame->data + at, frame->length - at, &m)) {
        return false;
    }
    rs = remote_shims_find(&cc->remotes, &p.key, now, false);
    if (rs && m.to == rs->kept.own_nonce) {
        remote_shim_verify(rs, m.flags, m.from);
        rs->silent &= m.type != GRANT_RATES;
        if (m.type > GRANT_HELLO && m.type <= GRANT_BUSY) {
            receive_flows(cc, &p.key, &m, now);
        }
    }
    return true;
}
