/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/idle.h"

#define MEASURE_NS 1000000u     /* Between measurements of the frame rate. */
#define DENSE_GAP_NS 20000u     /* Mean time between frames below which
                                 * sleeping is better than blocking. */
#define GATHER_NS 160000u       /* The longest sleep before the loop blocks. */

/* Ends an idle time; 'n_frames' have been received so far. */
void
idle_end(struct idle *idle, uint64_t now, uint64_t n_frames)
{
    if (now - idle->measured >= MEASURE_NS) {
        idle->is_dense = ((n_frames - idle->n_frames) * DENSE_GAP_NS
                          > now - idle->measured);
        idle->measured = now;
        idle->n_frames = n_frames;
    }
    idle->last = 0;
}

/* Returns true if sleeping is better than blocking. */
bool
idle_sleeps_first(const struct idle *idle)
{
    return idle->is_dense && idle->last < GATHER_NS;
}

uint64_t
idle_next(struct idle *idle)
{
    idle->last = (idle->last < IDLE_MIN_NS ? IDLE_MIN_NS
                  : idle->last < IDLE_MAX_NS / 2 ? idle->last * 2
                  : IDLE_MAX_NS);
    return idle->last;
}

uint64_t
idle_shortest(struct idle *idle)
{
    idle->last = IDLE_MIN_NS;
    return idle->last;
}
