/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_IDLE_H
#define SHIM_IDLE_H 1

/* How long an idle forwarding loop sleeps, and when it waits for an interrupt.
 *
 * An idle loop can block until the next frame arrives, or sleep for a fixed
 * time and poll again.  Blocking costs one wake-up per frame; sleeping gathers
 * the frames that arrive meanwhile into one burst.  At high frame rates
 * sleeping is better: a single TCP flow on two CPUs was 20 % faster.  At low
 * rates most sleeps end without a frame, and a wake-up costs 20 to 30 us of
 * CPU on some virtual machines: nine shims sharing 200 Mbit/s spent a quarter
 * of two CPUs on it.
 *
 * The frame rate is measured over at least 1 ms.  Above 50,000 frames per
 * second a loop sleeps first, from 10 us doubling to 160 us, and then blocks.
 * A loop without a receive interrupt at its port only sleeps, up to
 * IDLE_MAX_NS.
 *
 *    if (idle_sleeps_first(idle)) {      (a poll found nothing)
 *        ...sleep idle_next(idle)...
 *    } else {
 *        ...block until a frame arrives...
 *    }
 *    idle_end(idle, now, n_frames);      (a poll found something)
 *
 * Times are nanoseconds. */

#include <stdbool.h>
#include <stdint.h>

#define IDLE_MIN_NS UINT64_C(10000)     /* The first sleep of an idle time. */
#define IDLE_MAX_NS UINT64_C(1000000)   /* The longest. */
#define IDLE_MEASURE_NS 1000000u        /* Between two measurements of the
                                         * frame rate. */
#define IDLE_DENSE_NS 20000u    /* Mean time between frames below which
                                 * sleeping is better than blocking. */
#define IDLE_GATHER_NS 160000u  /* The longest sleep before the loop blocks. */

/* All zeros initially. */
struct idle {
    uint64_t last;              /* Length of the last sleep, 0 if a poll has
                                 * found something since. */
    uint64_t measured;          /* When the frame rate was last measured. */
    uint64_t n_frames;          /* Frames received by then. */
    bool is_dense;              /* The frame rate was above 50,000 a second. */
};

/* Ends an idle time; 'n_frames' have been received so far. */
static inline void
idle_end(struct idle *idle, uint64_t now, uint64_t n_frames)
{
    if (now - idle->measured >= IDLE_MEASURE_NS) {
        idle->is_dense = ((n_frames - idle->n_frames) * IDLE_DENSE_NS
                          > now - idle->measured);
        idle->measured = now;
        idle->n_frames = n_frames;
    }
    idle->last = 0;
}

/* Returns true if sleeping is better than blocking. */
static inline bool
idle_sleeps_first(const struct idle *idle)
{
    return idle->is_dense && idle->last < IDLE_GATHER_NS;
}

/* Returns how long to sleep. */
static inline uint64_t
idle_next(struct idle *idle)
{
    idle->last = (idle->last < IDLE_MIN_NS ? IDLE_MIN_NS
                  : idle->last < IDLE_MAX_NS / 2 ? idle->last * 2
                  : IDLE_MAX_NS);
    return idle->last;
}

static inline uint64_t
idle_shortest(struct idle *idle)
{
    idle->last = IDLE_MIN_NS;
    return idle->last;
}

#endif /* shim/loop/idle.h */
