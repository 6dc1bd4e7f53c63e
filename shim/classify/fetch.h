/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FETCH_H
#define SHIM_FETCH_H 1

/* Prepares packet buffers for the classifier. */

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "shim/classify/classify.h"

/* Sets 'packets' to the bytes of 'frames' and prefetches their headers. */
static inline void
fetch_packets(struct rte_mbuf **frames, uint16_t n, struct packet *packets)
{
    for (uint16_t i = 0; i < n; i++) {
        rte_prefetch0(frames[i]);
    }
    for (uint16_t i = 0; i < n; i++) {
        packets[i].data = rte_pktmbuf_mtod(frames[i], uint8_t *);
        packets[i].length = rte_pktmbuf_data_len(frames[i]);
        rte_prefetch0(packets[i].data);
    }
}

#endif /* shim/classify/fetch.h */
