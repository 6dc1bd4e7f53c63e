/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_WINDOW_H
#define SHIM_CC_WINDOW_H 1

/* Limits the receive window that a TCP sender sees.
 *
 * Whatever its congestion control, a sender may not send beyond the right edge
 * (acknowledgment number + window) that its receiver has advertised.  So the
 * receiver's shim limits the bytes in flight by lowering the window in its
 * host's ACKs, by these rules:
 *
 *   - The right edge never moves left: a lower limit takes effect as data
 *     arrive, within a round trip.
 *   - A window is never lowered to 0: the sender would wait for its persist
 *     timer (200 ms).  The host's own 0 is not changed.
 *   - If a SYN was missed, the window scale is not known, and nothing is
 *     changed.
 *   - A window scale above CC_WINDOW_MAX_SHIFT is lowered in the SYN, and each
 *     later window is translated: one unit of a coarse scale may be more than
 *     a flow's share.
 *
 *    cc_window_syn(w, data, &seg, &options);     (SYNs of the host)
 *    cc_window_remote_syn(w, &options);          (SYNs of the remote end)
 *    cc_window_apply(w, data, &seg, limit);      (other segments of the host)
 *
 * 'w' is the caller's, initially all zeros.  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct segment;
struct segment_options;

#define CC_WINDOW_MAX_SHIFT 10
#define CC_WINDOW_ANY UINT32_MAX

struct cc_window {
    uint32_t edge;              /* Farthest right edge advertised. */
    bool has_edge;              /* 'edge' is valid. */
    bool host_syn_seen, remote_syn_seen;
    bool host_scales, remote_scales;    /* The SYN had a window scale. */
    uint8_t host_shift;         /* Window scale that the host uses. */
    uint8_t wire_shift;         /* Window scale that the remote end uses. */
};

/* Learns the host's window scale, and lowers it in the SYN. */
void cc_window_syn(struct cc_window *, uint8_t *frame, struct segment *,
                   const struct segment_options *);
void cc_window_remote_syn(struct cc_window *, const struct segment_options *);

/* Returns true if both SYNs were seen. */
bool cc_window_known(const struct cc_window *);

/* Returns true if the window scale on the wire differs from the host's, so
 * that windows must be rewritten. */
bool cc_window_translates(const struct cc_window *);

/* Limits the window in a segment of the host, not a SYN, to 'limit' bytes,
 * CC_WINDOW_ANY for no limit.  Returns true if it was lowered. */
bool cc_window_apply(struct cc_window *, uint8_t *frame, struct segment *,
                     uint32_t limit);

#endif /* shim/cc/window.h */
