/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/parse.h"

#include <netinet/in.h>
#include <string.h>

enum {
    ETHERNET_SIZE = 14,
    VLAN_SIZE = 4,
    MAX_VLANS = 2,
    IPV4_SIZE = 20,
    IPV6_SIZE = 40,
    MAX_EXTENSIONS = 4,
    TCP_SIZE = 20,
    UDP_SIZE = 8,
    FIRST_NEIGHBOUR_TYPE = 133, /* ICMPv6 router solicitation. */
    LAST_NEIGHBOUR_TYPE = 137,  /* ICMPv6 redirect. */
    VXLAN_PORT = 4789,
    VXLAN_LINUX_PORT = 8472, /* Its default before there was a standard. */
    VXLAN_SIZE = 8,
    VXLAN_HAS_ID = 0x08,
    GENEVE_PORT = 6081,
    GENEVE_SIZE = 8, /* Without options. */
    GENEVE_VERSION = 0xc0,
    GENEVE_OPTIONS = 0x3f, /* Words of four bytes. */
    GENEVE_CONTROL = 0x80,
    TYPE_ETHERNET = 0x6558,
    TYPE_IPV4 = 0x0800,
    TYPE_IPV6 = 0x86dd,
};

const uint32_t parse_common_min[256] = {
    [0 ... IPPROTO_TCP - 1] = UINT32_MAX,
    [IPPROTO_TCP] = IPV4_SIZE + TCP_SIZE,
    [IPPROTO_TCP + 1 ... IPPROTO_UDP - 1] = UINT32_MAX,
    [IPPROTO_UDP] = IPV4_SIZE + UDP_SIZE,
    [IPPROTO_UDP + 1 ... 255] = UINT32_MAX,
};

/* Reads the ports at 'frame + at' if 'protocol' has some and its header is
 * complete.  'end' is the end of the IP packet. */
static enum parsed_kind
parse_ports(const uint8_t *frame, size_t at, size_t end, uint8_t protocol,
            bool from_host, struct parsed *p)
{
    size_t size = protocol == IPPROTO_TCP ? TCP_SIZE : UDP_SIZE;
    const uint8_t *source = frame + at, *destination = source + 2;
    struct shim_flow_key *key = &p->key;

    key->protocol = protocol;
    p->l4 = at;
    p->end = end;
    if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) {
        return PARSED_IP;
    }
    if (end - at < size) {
        return PARSED_MALFORMED;
    }
    memcpy(&key->local_port, from_host ? source : destination, 2);
    memcpy(&key->remote_port, from_host ? destination : source, 2);
    return PARSED_FLOW;
}

static void
set_addresses(const uint8_t *source, const uint8_t *destination, size_t size,
              bool from_host, struct shim_flow_key *key)
{
    memcpy(key->local, from_host ? source : destination, size);
    memcpy(key->remote, from_host ? destination : source, size);
}

/* Notes the UDP header at 'at' of a fragment that ends at 'end' and begins at
 * 'offset' of its datagram. */
static void
note_fragment(uint16_t offset, uint8_t protocol, size_t at, size_t end,
              struct parsed *p)
{
    if (!offset && protocol == IPPROTO_UDP && end - at >= UDP_SIZE) {
        p->udp = at;
    }
}

static enum parsed_kind
parse_ipv4(const uint8_t *frame, size_t length, size_t at, bool from_host,
           struct parsed *p)
{
    const uint8_t *ip = frame + at;
    size_t header, total;

    if (length - at < IPV4_SIZE) {
        return PARSED_MALFORMED;
    }
    header = (ip[0] & 0xf) * 4;
    total = get_be16(ip + 2);
    if (!total) {
        total = length - at;
    }
    if (ip[0] >> 4 != 4 || header < IPV4_SIZE || total < header
        || total > length - at) {
        return PARSED_MALFORMED;
    }
    if (get_be16(ip + 6) & 0x3fff) {      /* More fragments, or an offset. */
        note_fragment(get_be16(ip + 6) & 0x1fff, ip[9], at + header,
                      at + total, p);
        return PARSED_IP;
    }
    p->key.family = 4;
    set_addresses(ip + 12, ip + 16, 4, from_host, &p->key);
    return parse_ports(frame, at + header, at + total, ip[9], from_host, p);
}

/* Skips up to MAX_EXTENSIONS extension headers from '*at' on, the first of
 * type 'next'.  Returns the type of the header after them, or -1 if the packet
 * ends in one. */
static int
skip_extensions(const uint8_t *frame, size_t end, uint8_t next, size_t *at)
{
    for (int i = 0; i < MAX_EXTENSIONS; i++) {
        size_t size;

        if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING
            && next != IPPROTO_DSTOPTS) {
            break;
        }
        if (end - *at < 8) {
            return -1;
        }
        size = (frame[*at + 1] + 1) * 8;
        if (end - *at < size) {
            return -1;
        }
        next = frame[*at];
        *at += size;
    }
    return next;
}

static enum parsed_kind
parse_ipv6(const uint8_t *frame, size_t length, size_t at, bool from_host,
           struct parsed *p)
{
    const uint8_t *ip = frame + at;
    size_t end, next = at + IPV6_SIZE;
    uint16_t payload;
    int protocol;

    if (length - at < IPV6_SIZE || ip[0] >> 4 != 6) {
        return PARSED_MALFORMED;
    }
    payload = get_be16(ip + 4);
    if (payload > length - next) {
        return PARSED_MALFORMED;
    }
    end = payload ? next + payload : length;
    protocol = skip_extensions(frame, end, ip[6], &next);
    if (protocol < 0) {
        return PARSED_MALFORMED;
    }
    if (protocol == IPPROTO_ICMPV6) {
        bool neighbour = (end - next >= 4 && ip[7] == 255
                          && frame[next] >= FIRST_NEIGHBOUR_TYPE
                          && frame[next] <= LAST_NEIGHBOUR_TYPE);

        return neighbour ? PARSED_NEIGHBOUR : PARSED_IP;
    }
    if (protocol == IPPROTO_FRAGMENT && end - next >= 8) {
        note_fragment(get_be16(frame + next + 2) >> 3, frame[next], next + 8,
                      end, p);
        return PARSED_IP;
    }
    p->key.family = 6;
    set_addresses(ip + 8, ip + 24, 16, from_host, &p->key);
    return parse_ports(frame, next, end, protocol, from_host, p);
}

/* Parses what an Ethernet frame of this type has at 'at'. */
static void
parse_type(const uint8_t *frame, size_t length, size_t at, uint16_t type,
           bool from_host, struct parsed *p)
{
    if (type == TYPE_IPV4) {
        p->kind = parse_ipv4(frame, length, at, from_host, p);
        p->family = 4;
    } else if (type == TYPE_IPV6) {
        p->kind = parse_ipv6(frame, length, at, from_host, p);
        p->family = 6;
    } else {
        p->kind = PARSED_OTHER;
        return;
    }
    p->l3 = at;
}

/* Parses the Ethernet frame 'frame' of 'length' bytes into '*p'.  'from_host':
 * the host sent it, so its source is local. */
void
parse_frame(const uint8_t *frame, size_t length, bool from_host,
            struct parsed *p)
{
    size_t at = ETHERNET_SIZE;
    uint16_t type;

    memset(p, 0, sizeof *p);
    if (length < ETHERNET_SIZE) {
        p->kind = PARSED_MALFORMED;
        return;
    }
    type = get_be16(frame + 12);
    for (int i = 0; i < MAX_VLANS && (type == 0x8100 || type == 0x88a8); i++) {
        if (length - at < VLAN_SIZE) {
            p->kind = PARSED_MALFORMED;
            return;
        }
        type = get_be16(frame + at + 2);
        at += VLAN_SIZE;
    }

    parse_type(frame, length, at, type, from_host, p);
}

/* Returns true if 'port' belongs to a kind of tunnel: it is 'given', or
 * without that a usual one which is not given to the other kind. */
static bool
is_tunnel_port(uint16_t port, uint32_t given, uint32_t given_to_other,
               uint16_t usual, uint16_t usual_too)
{
    return given ? port == given
                 : port != given_to_other
                       && (port == usual || port == usual_too);
}

/* Returns the type of what a datagram 'udp' of 'size' bytes carries if it is
 * one of VXLAN or Geneve, else 0.  Stores the size of the headers. */
static uint16_t
find_payload(const uint8_t *udp, size_t size,
             const struct prefix_list *tunnels, size_t *headers)
{
    uint16_t port = get_be16(udp + 2);
    const uint8_t *tunnel = udp + UDP_SIZE;

    *headers = UDP_SIZE + VXLAN_SIZE;
    if (size < *headers) {
        return 0;
    }
    if (is_tunnel_port(port, tunnels->vxlan_port, tunnels->geneve_port,
                       VXLAN_PORT, VXLAN_LINUX_PORT)) {
        return tunnel[0] & VXLAN_HAS_ID ? TYPE_ETHERNET : 0;
    }
    *headers = UDP_SIZE + GENEVE_SIZE + (tunnel[0] & GENEVE_OPTIONS) * 4;
    return (is_tunnel_port(port, tunnels->geneve_port, tunnels->vxlan_port,
                           GENEVE_PORT, GENEVE_PORT)
                    && *headers <= size && !(tunnel[0] & GENEVE_VERSION)
                    && !(tunnel[1] & GENEVE_CONTROL)
                ? get_be16(tunnel + 2)
                : 0);
}

/* Does that for '*p', the result of parse_frame() for 'frame', which may also
 * be IP in IP. */
static uint16_t
find_tunnel(const uint8_t *frame, const struct parsed *p,
            const struct prefix_list *tunnels, size_t *headers)
{
    *headers = 0;
    if (p->kind == PARSED_FLOW && p->key.protocol == IPPROTO_UDP) {
        return find_payload(frame + p->l4, p->end - p->l4, tunnels, headers);
    } else if (p->kind != PARSED_IP) {
        return 0;
    }
    return (p->key.protocol == IPPROTO_IPIP   ? TYPE_IPV4
            : p->key.protocol == IPPROTO_IPV6 ? TYPE_IPV6
                                              : 0);
}

/* If '*p', the result of parse_frame() for 'frame', is a packet of a tunnel
 * between two of 'tunnels', parses what is inside into '*inner' and returns
 * its start, else returns NULL. */
static const uint8_t *
find_inner(const uint8_t *frame, bool from_host,
           const struct prefix_list *tunnels, const struct parsed *p,
           struct parsed *inner)
{
    size_t headers, size;
    uint16_t type = find_tunnel(frame, p, tunnels, &headers);
    const uint8_t *inside = frame + p->l4 + headers;

    if (!type || !prefix_list_has(tunnels, p->key.family, p->key.local)
        || !prefix_list_has(tunnels, p->key.family, p->key.remote)) {
        return NULL;
    }
    size = p->end - p->l4 - headers;
    if (type == TYPE_ETHERNET) {
        parse_frame(inside, size, from_host, inner);
    } else {
        memset(inner, 0, sizeof *inner);
        parse_type(inside, size, 0, type, from_host, inner);
    }
    return inside;
}

/* Makes '*p', the result of parse_frame() for 'frame', the flow inside a
 * packet of a tunnel between two of 'tunnels', if it has one. */
void
parse_inner(const uint8_t *frame, bool from_host,
            const struct prefix_list *tunnels, struct parsed *p)
{
    struct parsed inner;

    if (find_inner(frame, from_host, tunnels, p, &inner)
        && inner.kind == PARSED_FLOW) {
        p->kind = PARSED_FLOW;
        p->key = inner.key;
    }
}

/* Returns true if '*p', the result of parse_frame() for 'frame' of the host,
 * is a UDP datagram to 'port', the first fragment of one, or has one inside a
 * packet of a tunnel between two of 'tunnels', which may be null. */
bool
parse_is_udp_to(const uint8_t *frame, const struct parsed *p,
                const struct prefix_list *tunnels, uint16_t port)
{
    uint16_t udp = (p->kind != PARSED_FLOW           ? p->udp
                    : p->key.protocol == IPPROTO_UDP ? p->l4
                                                     : 0);
    const uint8_t *inside;
    struct parsed inner;

    if (udp && get_be16(frame + udp + 2) == port) {
        return true;
    }
    inside = tunnels ? find_inner(frame, true, tunnels, p, &inner) : NULL;
    return inside && parse_is_udp_to(inside, &inner, NULL, port);
}
