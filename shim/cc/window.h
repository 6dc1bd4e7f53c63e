/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_WINDOW_H
#define SHIM_CC_WINDOW_H 1

/* The receive window that a TCP sender sees.
 *
 *
 * Motivation
 * ==========
 *
 * Whatever its congestion control, a sender may not send beyond the right edge
 * (acknowledgement + window) that its receiver told it.  So the receiver's
 * shim bounds what is under way by rewriting the window in its host's
 * acknowledgements, down only, with these rules:
 *
 *   - The right edge never moves left: a lower bound takes effect as data
 *     arrives, within a round trip.
 *   - It never makes a window 0: a sender would wait for its persist timer.
 *     A 0 of the host's own stays.
 *   - Without the window scale, which only the SYNs tell, nothing is
 *     rewritten.
 *   - A scale coarser than CC_WINDOW_MAX_SHIFT is lowered in the SYN, and each
 *     window translated from then on, since a step of a coarse scale may be
 *     more than all of a flow's part.
 *
 *
 * Usage
 * =====
 *
 *    cc_window_syn(w, data, &seg, &options);     (each SYN of the host's)
 *    cc_window_remote_syn(w, &seg, &options);      (each SYN of the peer's)
 *    cc_window_apply(w, data, &seg, limit);      (what else the host sends)
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * 'w' is the caller's, all zeros at first.  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct segment;
struct segment_options;

#define CC_WINDOW_MAX_SHIFT 10
#define CC_WINDOW_ANY UINT32_MAX

struct cc_window {
    uint32_t edge;              /* The farthest right edge that was told. */
    bool has_edge;
    bool host_syn_seen, remote_syn_seen;  /* A SYN of that side was seen... */
    bool host_scales, remote_scales;      /* ...and had the option. */
    uint8_t host_shift;         /* Of the host's windows... */
    uint8_t wire_shift;         /* ...and what the peer takes it for. */
};

void cc_window_syn(struct cc_window *, uint8_t *frame, struct segment *,
                   const struct segment_options *);
void cc_window_remote_syn(struct cc_window *, const struct segment *,
                        const struct segment_options *);
bool cc_window_known(const struct cc_window *);
bool cc_window_translates(const struct cc_window *);
bool cc_window_apply(struct cc_window *, uint8_t *frame, struct segment *,
                     uint32_t limit);

#endif /* shim/cc/window.h */
