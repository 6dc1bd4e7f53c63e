/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FETCH_H
#define SHIM_FETCH_H 1

/* Passes packet buffers to the classifier. */

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "shim/classify/classify.h"
#include "shim/clock/counter.h"
#include "wire/slot-tag.h"

/* fetch_packets() that also stores the VLAN tags that the port has removed,
 * unless 'tags' is a constant NULL.  Returns the flags that all frames have.
 */
static inline __attribute__((always_inline)) uint64_t
fetch_with_tags(struct rte_mbuf **frames, uint16_t n, struct packet *packets,
                uint16_t *tags)
{
    uint64_t flags = UINT64_MAX;

    for (uint16_t i = 0; i < n; i++) {
        rte_prefetch0(frames[i]);
    }
    for (uint16_t i = 0; i < n; i++) {
        packets[i].data = rte_pktmbuf_mtod(frames[i], uint8_t *);
        packets[i].length = rte_pktmbuf_data_len(frames[i]);
        if (tags) {
            tags[i] = frames[i]->vlan_tci;
            flags &= frames[i]->ol_flags;
        }
        rte_prefetch0(packets[i].data);
    }
    return flags;
}

/* Sets 'packets' to the bytes of 'frames' and prefetches their headers. */
static inline void
fetch_packets(struct rte_mbuf **frames, uint16_t n, struct packet *packets)
{
    fetch_with_tags(frames, n, packets, NULL);
}

/* Corrects the tags of frames without one.  Returns their number. */
static inline uint32_t
clear_missing_tags(struct rte_mbuf **frames, uint16_t n, uint16_t *tags)
{
    uint32_t n_missing = 0;

    for (uint16_t i = 0; i < n; i++) {
        if (!(frames[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)) {
            tags[i] = SLOT_TAG_NO_LEARN;
            n_missing++;
        }
    }
    return n_missing;
}

/* Fetches and classifies frames from the host by their slot tags. */
static inline void
classify_frames(struct classifier *c, struct rte_mbuf **frames, uint16_t n,
                bool leased, struct packet *packets, struct verdict *v)
{
    uint16_t tags[CLASSIFY_BURST];

    if (!(fetch_with_tags(frames, n, packets, tags)
          & RTE_MBUF_F_RX_VLAN_STRIPPED)) {
        counter_add(&c->n_untagged, clear_missing_tags(frames, n, tags));
    }
    classify_burst_from_host(c, packets, tags, n, leased, v);
}

#endif /* shim/classify/fetch.h */
