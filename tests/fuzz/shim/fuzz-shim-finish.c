/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the completion of checksums of frames that a kernel left unfinished.
 * The first byte selects the MTU, whether the checksum is made a partial one,
 * and after how many bytes the frame is split into two segments; the other
 * bytes are the frame. */

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_net.h>

#include "shim/ports/finish.h"
#include "tests/fuzz/must.h"

#define WANTED (RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK | RTE_PTYPE_L4_MASK)

enum {
    SMALL = 1,                  /* An MTU of 100 bytes, else 1500. */
    PARTIAL = 2,                /* Write the sum of the pseudo header. */
    SPLIT = 4,                  /* Two segments. */
    LRO = 8,                    /* The device has joined packets. */
};

/* Makes 'm' a segment with exactly the 'size' bytes at 'data' and 'space'
 * bytes behind them.  Its second reference keeps it from being freed. */
static void
make_segment(struct rte_mbuf *m, void *data, size_t size, size_t space)
{
    memset(m, 0, sizeof *m);
    m->buf_addr = data;
    m->buf_len = size + space;
    m->data_len = m->pkt_len = size;
    m->nb_segs = 1;
    rte_mbuf_refcnt_set(m, 2);
}

/* Writes the checksum that a kernel leaves to its card, if the frame has a
 * header of TCP or UDP. */
static void
make_partial(struct rte_mbuf *m)
{
    struct rte_net_hdr_lens h;
    uint32_t ptype = rte_net_get_ptype(m, &h, WANTED);
    uint32_t type = ptype & RTE_PTYPE_L4_MASK;
    uint32_t at = h.l2_len + h.l3_len + (type == RTE_PTYPE_L4_UDP ? 6 : 16);
    uint8_t *l3 = rte_pktmbuf_mtod_offset(m, uint8_t *, h.l2_len);
    struct rte_ipv6_hdr ip6;
    uint16_t sum;

    if (!(ptype & RTE_PTYPE_L3_MASK)
        || (type != RTE_PTYPE_L4_UDP && type != RTE_PTYPE_L4_TCP)
        || at + 2u > m->data_len) {
        return;
    }
    if (RTE_ETH_IS_IPV4_HDR(ptype)) {
        sum = rte_ipv4_phdr_cksum((const struct rte_ipv4_hdr *) l3, 0);
    } else {
        /* Without the headers between those of IP and of TCP or UDP. */
        memcpy(&ip6, l3, sizeof ip6);
        ip6.payload_len = rte_cpu_to_be_16(rte_be_to_cpu_16(ip6.payload_len)
                                           + sizeof ip6 - h.l3_len);
        ip6.proto = type == RTE_PTYPE_L4_UDP ? IPPROTO_UDP : IPPROTO_TCP;
        sum = rte_ipv6_phdr_cksum(&ip6, 0);
    }
    memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, at), &sum, sizeof sum);
}

/* Checks 'result', after which a frame of 'size' bytes is 'now' and was
 * 'before'. */
static void
check(enum finish result, const uint8_t *before, const uint8_t *now,
      size_t size, uint32_t max)
{
    size_t n_changed = 0, first = size, last = 0;

    for (size_t i = 0; i < size; i++) {
        if (before[i] != now[i]) {
            first = i < first ? i : first;
            last = i;
            n_changed++;
        }
    }
    if (result == FINISH_COMPLETED) {
        must(n_changed <= 2 && (!n_changed || last - first < 2));
        must(first > RTE_ETHER_HDR_LEN);
    } else {
        must(!n_changed);
    }
    must(result == FINISH_TOO_LONG || size <= max + RTE_ETHER_HDR_LEN + 8);
}

static void
finish(uint8_t flags, const uint8_t *frame, size_t size)
{
    uint32_t max = flags & SMALL ? 100 : 1500;
    size_t first = flags & SPLIT ? size * (flags >> 4) / 16 : size;
    uint8_t *whole = calloc(1, size + 1);
    uint8_t *second = copy_bytes(frame + first, size - first);
    uint8_t *before = malloc(size + 1);
    struct rte_mbuf head, tail;
    enum finish result;

    must(whole && before);
    memcpy(whole, frame, first);
    make_segment(&head, whole, first, size - first);
    make_segment(&tail, second, size - first, 0);
    if (first < size) {
        must(!rte_pktmbuf_chain(&head, &tail));
    } else if (flags & PARTIAL) {
        make_partial(&head);
    }
    head.ol_flags = flags & LRO ? RTE_MBUF_F_RX_LRO : 0;
    memcpy(before, whole, first);
    memcpy(before + first, frame + first, size - first);
    result = finish_frame(&head, max);
    must(!(flags & LRO) || result == FINISH_TOO_LONG);
    if (head.nb_segs == 1) {
        must(head.data_len == size && head.pkt_len == size);
        check(result, before, whole, size, max);
        /* What is finished stays so. */
        must(finish_frame(&head, max) == (result == FINISH_COMPLETED
                                          ? FINISH_WHOLE : result));
    } else {
        must(result == FINISH_TOO_LONG);
    }
    free(before);
    free(second);
    free(whole);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 && size < 4096) {
        finish(data[0], data + 1, size - 1);
    }
    return 0;
}
