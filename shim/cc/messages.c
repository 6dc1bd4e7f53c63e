/* SPDX-License-Identifier: Apache-2.0 */

/* Datagrams to and from other shims: frames around grant.h's messages. */

#include <netinet/in.h>
#include <string.h>

#include "shim/cc/state.h"

#include "shim/clock/counter.h"
#include "shim/classify/parse.h"

enum {
    IPV4_SIZE = 20,
    IPV6_SIZE = 40,
    UDP_SIZE = 8,
    TTL = 64,
};

/* Writes an IP header for 'payload' bytes of UDP and returns its size. */
static size_t
put_ip(const struct cc_peer *peer, uint8_t *ip, size_t payload)
{
    if (peer->family == 4) {
        memset(ip, 0, IPV4_SIZE);
        ip[0] = 0x45;
        ip[1] = CC_CONTROL_DSCP << 2;
        put_be16(ip + 2, IPV4_SIZE + payload);
        put_be16(ip + 6, 0x4000);
        ip[8] = TTL;
        ip[9] = IPPROTO_UDP;
        memcpy(ip + 12, peer->local, 4);
        memcpy(ip + 16, peer->remote, 4);
        put_be16(ip + 10, checksum_of(ip, IPV4_SIZE, 0));
        return IPV4_SIZE;
    }
    memset(ip, 0, IPV6_SIZE);
    ip[0] = 0x60 | CC_CONTROL_DSCP >> 2;
    ip[1] = (CC_CONTROL_DSCP & 3) << 6;
    put_be16(ip + 4, payload);
    ip[6] = IPPROTO_UDP;
    ip[7] = TTL;
    memcpy(ip + 8, peer->local, 16);
    memcpy(ip + 24, peer->remote, 16);
    return IPV6_SIZE;
}

static void
put_udp(const struct cc_peer *peer, uint8_t *udp, size_t size)
{
    size_t n = peer->family == 4 ? 4 : 16;
    uint32_t sum = IPPROTO_UDP + size;

    sum += (uint16_t) ~checksum_of(peer->local, n, 0);
    sum += (uint16_t) ~checksum_of(peer->remote, n, 0);
    put_be16(udp, GRANT_PORT);
    put_be16(udp + 2, GRANT_PORT);
    put_be16(udp + 4, size);
    put_be16(udp + 6, 0);
    sum = checksum_of(udp, size, sum);
    put_be16(udp + 6, sum ? sum : 0xffff);
}

/* Sends 'peer->message' and empties it. */
void
message_send(struct cc *cc, struct cc_peer *peer, uint8_t type)
{
    uint8_t payload[GRANT_MAX_MESSAGE], *p = cc->frame;
    size_t size;

    peer->message.type = type;
    peer->message.flags = HELLO_ECN;
    peer->message.to = peer->nonce;
    peer->message.from = peer->own_nonce;
    size = grant_message_write(&peer->message, payload);
    memcpy(p, peer->l2, peer->l2_size);
    p += peer->l2_size;
    p += put_ip(peer, p, UDP_SIZE + size);
    memcpy(p + UDP_SIZE, payload, size);
    put_udp(peer, p, UDP_SIZE + size);
    p += UDP_SIZE + size;
    cc->config.send(cc->config.aux, cc->frame, p - cc->frame);
    if (type == GRANT_RATES) {
        counter_add(&cc->grants_sent, peer->message.n);
    }
    peer->message.n = 0;
}

/* Adds 'grant' to the next message of 'type' to 'peer'. */
void
message_add(struct cc *cc, struct cc_peer *peer, uint8_t type,
            const struct grant *grant)
{
    struct grant_message *m = &peer->message;

    if (m->n == GRANT_MAX) {
        message_send(cc, peer, type);
    }
    m->grants[m->n++] = *grant;
}

/* Returns the flow of these ports between the two ends of 'udp', or NULL. */
static struct cc_flow *
find_flow(struct cc *cc, const struct shim_flow_key *udp, uint16_t local_port,
          uint16_t remote_port)
{
    struct shim_flow_key key = *udp;

    key.protocol = IPPROTO_TCP;
    key.local_port = local_port;
    key.remote_port = remote_port;
    return cc_flows_find(cc->flows, &key);
}

static void
take_grants(struct cc *cc, const struct shim_flow_key *udp,
            const struct grant_message *m, uint64_t now)
{
    for (int i = 0; i < m->n; i++) {
        struct cc_flow *flow = find_flow(cc, udp, m->grants[i].sender_port,
                                         m->grants[i].receiver_port);

        if (flow) {
            departures_grant(cc, flow, &m->grants[i], now);
        }
    }
}

static void
take_empty(struct cc *cc, const struct shim_flow_key *udp,
           const struct grant_message *m)
{
    for (int i = 0; i < m->n; i++) {
        struct cc_flow *flow = find_flow(cc, udp, m->grants[i].receiver_port,
                                         m->grants[i].sender_port);

        if (flow) {
            arrivals_empty(flow);
        }
    }
}

static size_t
payload_at(const uint8_t *frame, const struct parsed *p)
{
    return (p->l3 + UDP_SIZE
            + (p->family == 4 ? (frame[p->l3] & 0xf) * 4 : IPV6_SIZE));
}

/* Takes 'frame' if it is a message to this shim. */
bool
message_take(struct cc *cc, const struct cc_frame *frame, uint64_t now)
{
    struct grant_message m;
    struct cc_peer *peer;
    struct parsed p;
    uint32_t id;
    size_t at;

    parse_frame(frame->data, frame->length, false, &p);
    if (p.kind != PARSED_FLOW || p.key.protocol != IPPROTO_UDP
        || p.key.local_port != htons(GRANT_PORT)
        || p.key.remote_port != htons(GRANT_PORT)) {
        return false;
    }
    at = payload_at(frame->data, &p);
    if (at > frame->length
        || !grant_message_read(frame->data + at, frame->length - at, &m)) {
        return false;
    }
    id = cc_peers_find(cc->peers, &p.key, now, false);
    peer = id == CC_NOBODY ? NULL : cc_peers_get(cc->peers, id);
    if (peer && m.to == peer->own_nonce) {
        cc_peer_prove(peer, m.flags, m.from);
        if (m.type == GRANT_RATES) {
            peer->tells = true;
            take_grants(cc, &p.key, &m, now);
        } else if (m.type == GRANT_EMPTY) {
            take_empty(cc, &p.key, &m);
        }
    }
    return true;
}
