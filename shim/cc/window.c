/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/window.h"

#include "shim/cc/segment.h"

#define LARGEST_SHIFT 14        /* RFC 7323, section 2.3. */
#define LARGEST_FIELD 65535u

void
cc_window_syn(struct cc_window *w, uint8_t *frame, struct segment *seg,
              const struct segment_options *o)
{
    uint8_t shift = o->scale < LARGEST_SHIFT ? o->scale : LARGEST_SHIFT;

    w->host_syn_seen = true;
    w->host_scales = o->scale_at != 0;
    w->host_shift = w->wire_shift = shift;
    w->has_edge = false;
    if (w->host_scales && shift > CC_WINDOW_MAX_SHIFT) {
        w->wire_shift = CC_WINDOW_MAX_SHIFT;
        segment_set_byte(frame, seg, o->scale_at, CC_WINDOW_MAX_SHIFT);
    }
}

void
cc_window_remote_syn(struct cc_window *w, const struct segment_options *o)
{
    w->remote_syn_seen = true;
    w->remote_scales = o->scale_at != 0;
}

bool
cc_window_known(const struct cc_window *w)
{
    return w->host_syn_seen && w->remote_syn_seen;
}

/* Windows are scaled only if both SYNs had a window scale. */
static bool
is_scaled(const struct cc_window *w)
{
    return w->host_scales && w->remote_scales;
}

bool
cc_window_translates(const struct cc_window *w)
{
    return (cc_window_known(w) && is_scaled(w)
            && w->host_shift != w->wire_shift);
}

static void
note_edge(struct cc_window *w, uint32_t edge)
{
    if (!w->has_edge || (int32_t) (edge - w->edge) > 0) {
        w->edge = edge;
        w->has_edge = true;
    }
}

/* Returns the window to advertise at 'ack', of the 'has' bytes that the host
 * advertises: at most 'limit', but not left of the last right edge. */
static uint32_t
allowed_window(const struct cc_window *w, uint32_t ack, uint32_t has,
               uint32_t limit)
{
    int32_t before = w->has_edge ? (int32_t) (w->edge - ack) : 0;
    uint32_t most = limit;

    if (before > 0 && (uint32_t) before > most) {
        most = before;
    }
    return has < most ? has : most;
}

bool
cc_window_apply(struct cc_window *w, uint8_t *frame, struct segment *seg,
                uint32_t limit)
{
    uint8_t from = is_scaled(w) ? w->host_shift : 0;
    uint8_t to = is_scaled(w) ? w->wire_shift : 0;
    uint32_t has = (uint32_t) seg->window << from, may, field;

    if (!cc_window_known(w) || !(seg->flags & SEGMENT_ACK)
        || seg->flags & SEGMENT_RST) {
        return false;
    }
    may = allowed_window(w, seg->ack, has, limit ? limit : 1);
    field = (may + (1u << to) - 1) >> to;
    if (field > LARGEST_FIELD) {
        field = LARGEST_FIELD;
    }
    segment_set_window(frame, seg, field);
    note_edge(w, seg->ack + (field << to));
    return may < has;
}
