/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/ack-queue.h"

#include "shim/classify/classify.h"
#include "shim/loop/egress.h"

#define MIN_TCP 20              /* Bytes of a TCP header. */
#define MAX_FRAME 160           /* Bytes of a frame with VLAN tags and all
                                 * options of IPv4 and TCP. */
#define PROTOCOL_TCP 6

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* Stores the offset and length of TCP in the IPv4 packet 'ip'.  Returns false
 * for another protocol, a fragment or an invalid header. */
static bool
find_tcp_4(const uint8_t *ip, uint32_t *offset, uint32_t *length)
{
    uint32_t header = (ip[0] & 0xf) * 4, total = get_be16(ip + 2);

    *offset = header;
    *length = total - header;
    return (ip[9] == PROTOCOL_TCP && !(get_be16(ip + 6) & 0x3fff)
            && header >= 20 && total >= header);
}

/* find_tcp_4() for IPv6.  Extension headers are not skipped. */
static bool
find_tcp_6(const uint8_t *ip, uint32_t *offset, uint32_t *length)
{
    *offset = 40;
    *length = get_be16(ip + 4);
    return ip[6] == PROTOCOL_TCP;
}

bool
ack_queue_is_for(const struct packet *packet, const struct verdict *v)
{
    const uint8_t *ip = packet->data + v->l3, *tcp;
    uint32_t offset, length, min_ip = v->family == 6 ? 40 : 20;

    if (packet->length > MAX_FRAME || !v->family
        || packet->length < v->l3 + min_ip + MIN_TCP
        || !(v->family == 4 ? find_tcp_4(ip, &offset, &length)
             : find_tcp_6(ip, &offset, &length))
        || v->l3 + offset + MIN_TCP > packet->length) {
        return false;
    }
    tcp = ip + offset;
    return (length >= MIN_TCP && length == (tcp[12] >> 4) * 4u
            && (tcp[13] & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK);
}

void
ack_queues_steer(struct ack_queues *acks, struct egress *egress,
                 const struct packet *packets, struct verdict *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint16_t *queue = &acks->queue[v[i].slot];

        if (v[i].queue || !ack_queue_is_for(&packets[i], &v[i])) {
            continue;
        }
        if (!*queue) {
            *queue = egress_flow_queue(egress, v[i].slot);
        }
        v[i].queue = *queue;
    }
}
