/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/finish.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_net.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#define MAX_TAGS_SIZE 8         /* Two VLAN tags. */
#define WANTED (RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK | RTE_PTYPE_L4_MASK)

/* TCP or UDP of a frame. */
struct l4 {
    uint16_t *sum;              /* The checksum. */
    uint16_t pseudo;            /* Sum of the pseudo header. */
    uint32_t at;                /* Offset of the header in the frame. */
    uint32_t size;              /* Bytes of header and payload. */
    bool udp;
};

/* Returns the bytes of the IP packet at 'l3' by its header, 0 if it is not
 * IP. */
static uint32_t
packet_size(const uint8_t *l3, uint32_t ptype)
{
    if (RTE_ETH_IS_IPV4_HDR(ptype)) {
        return rte_be_to_cpu_16(((const struct rte_ipv4_hdr *) l3)
                                ->total_length);
    } else if (RTE_ETH_IS_IPV6_HDR(ptype)) {
        return sizeof(struct rte_ipv6_hdr)
               + rte_be_to_cpu_16(((const struct rte_ipv6_hdr *) l3)
                                  ->payload_len);
    }
    return 0;
}

/* Returns the sum of the pseudo header, which has the protocol and size of TCP
 * or UDP without the headers before. */
static uint16_t
pseudo_sum(const uint8_t *l3, uint32_t ptype, const struct l4 *l4)
{
    struct rte_ipv6_hdr ip6;

    if (RTE_ETH_IS_IPV4_HDR(ptype)) {
        return rte_ipv4_phdr_cksum((const struct rte_ipv4_hdr *) l3, 0);
    }
    memcpy(&ip6, l3, sizeof ip6);
    ip6.payload_len = rte_cpu_to_be_16(l4->size);
    ip6.proto = l4->udp ? IPPROTO_UDP : IPPROTO_TCP;
    return rte_ipv6_phdr_cksum(&ip6, 0);
}

/* Finds TCP or UDP in 'frame', which has an IP packet of 'size' bytes. Returns
 * false if neither is there, or it is truncated. */
static bool
find_l4(struct rte_mbuf *frame, uint32_t ptype,
        const struct rte_net_hdr_lens *h, uint32_t size, struct l4 *l4)
{
    uint8_t *l3 = rte_pktmbuf_mtod_offset(frame, uint8_t *, h->l2_len);
    uint32_t type = ptype & RTE_PTYPE_L4_MASK, header;

    l4->udp = type == RTE_PTYPE_L4_UDP;
    header = l4->udp ? sizeof(struct rte_udp_hdr) : sizeof(struct rte_tcp_hdr);
    if ((!l4->udp && type != RTE_PTYPE_L4_TCP)
        || h->l2_len + size > rte_pktmbuf_data_len(frame)
        || h->l3_len + header > size) {
        return false;
    }
    l4->at = h->l2_len + h->l3_len;
    l4->size = size - h->l3_len;
    l4->sum = (uint16_t *) (l3 + h->l3_len
                            + (l4->udp
                               ? offsetof(struct rte_udp_hdr, dgram_cksum)
                               : offsetof(struct rte_tcp_hdr, cksum)));
    l4->pseudo = pseudo_sum(l3, ptype, l4);
    return true;
}

/* Returns true if the checksum was partial and has been completed. */
static bool
complete_checksum(const struct rte_mbuf *frame, const struct l4 *l4)
{
    uint32_t sum, whole;

    if (*l4->sum != l4->pseudo) {
        return false;
    }
    sum = rte_raw_cksum(rte_pktmbuf_mtod_offset(frame, const uint8_t *,
                                                l4->at), l4->size);
    whole = sum + l4->pseudo;
    if (((whole & 0xffff) + (whole >> 16)) == 0xffff) {
        return false;
    }
    *l4->sum = ~sum;
    if (l4->udp && !*l4->sum) {
        *l4->sum = 0xffff;      /* 0 means no checksum. */
    }
    return true;
}

enum finish
finish_frame(struct rte_mbuf *frame, uint32_t max)
{
    struct rte_net_hdr_lens h;
    uint32_t ptype, size;
    struct l4 l4;

    if (frame->ol_flags & RTE_MBUF_F_RX_LRO
        || rte_pktmbuf_pkt_len(frame) > (max + RTE_ETHER_HDR_LEN
                                         + MAX_TAGS_SIZE)
        || (frame->nb_segs > 1 && rte_pktmbuf_linearize(frame))) {
        return FINISH_TOO_LONG;
    }
    ptype = rte_net_get_ptype(frame, &h, WANTED);
    if (!(ptype & RTE_PTYPE_L3_MASK)) {
        return FINISH_WHOLE;
    }
    size = packet_size(rte_pktmbuf_mtod_offset(frame, uint8_t *, h.l2_len),
                       ptype);
    if (size > max) {           /* The ring has truncated it. */
        return FINISH_TOO_LONG;
    }
    return (find_l4(frame, ptype, &h, size, &l4)
            && complete_checksum(frame, &l4)
            ? FINISH_COMPLETED : FINISH_WHOLE);
}
