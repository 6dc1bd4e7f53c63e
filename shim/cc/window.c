/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/window.h"

#include "shim/cc/segment.h"

#define LARGEST_SHIFT 14        /* A larger one counts as this (RFC 7323). */
#define LARGEST_FIELD 65535u

/* Learns what the host's SYN says, and lowers its scale if it is coarse. */
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
cc_window_remote_syn(struct cc_window *w, const struct segment *seg,
                   const struct segment_options *o)
{
    (void) seg;
    w->remote_syn_seen = true;
    w->remote_scales = o->scale_at != 0;
}

/* Is it known what the windows mean? */
bool
cc_window_known(const struct cc_window *w)
{
    return w->host_syn_seen && w->remote_syn_seen;
}

/* Scaling takes place only if both sides said so. */
static bool
scales(const struct cc_window *w)
{
    return w->host_scales && w->remote_scales;
}

/* Would the peer misunderstand the host's windows if nobody translated? */
bool
cc_window_translates(const struct cc_window *w)
{
    return (cc_window_known(w) && scales(w)
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

/* Returns how many of the 'has' bytes that the host would take from 'ack' on
 * may be told, at least what was told before. */
static uint32_t
allow(const struct cc_window *w, uint32_t ack, uint32_t has, uint32_t limit)
{
    int32_t told = w->has_edge ? (int32_t) (w->edge - ack) : 0;
    uint32_t most = limit;

    if (told > 0 && (uint32_t) told > most) {
        most = told;
    }
    return has < most ? has : most;
}

/* Bounds the window of 'seg', which the host sends and is no SYN, to 'limit'
 * bytes, CC_WINDOW_ANY for no bound.  Returns true if it had to be less than
 * the host's. */
bool
cc_window_apply(struct cc_window *w, uint8_t *frame, struct segment *seg,
                uint32_t limit)
{
    uint8_t from = scales(w) ? w->host_shift : 0;
    uint8_t to = scales(w) ? w->wire_shift : 0;
    uint32_t has = (uint32_t) seg->window << from, may, field;

    if (!cc_window_known(w) || !(seg->flags & SEGMENT_ACK)
        || seg->flags & SEGMENT_RST) {
        return false;
    }
    may = allow(w, seg->ack, has, limit ? limit : 1);
    field = (may + (1u << to) - 1) >> to;
    if (field > LARGEST_FIELD) {
        field = LARGEST_FIELD;
    }
    segment_set_window(frame, seg, field);
    note_edge(w, seg->ack + (field << to));
    return may < has;
}
