/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_NAP_H
#define SHIM_NAP_H 1

/* How long a loop sleeps that has nothing to do, and whether it should rather
 * wait for a frame.
 *
 *
 * Motivation
 * ==========
 *
 * A wait ends with the first frame.  Where frames come one soon after another,
 * naps are better: what arrives meanwhile is forwarded in one burst, and on few
 * CPUs the TCP stacks get the time that waking up for each frame would take.
 * One flow as fast as it can is, on two CPUs, a fifth faster with naps.
 *
 * Where they do not, naps are wake-ups in vain, which take 20 to 30 us of a CPU
 * on some virtual machines.  With five of them after each frame, nine shims
 * that share 200 Mbit/s took a quarter of the time of two CPUs for sleeping.
 *
 * So it is the rate of frames that decides, measured each millisecond: from
 * 50,000 a second on, a loop naps after each burst, longer and longer, before
 * it waits.
 *
 * Who cannot wait goes on with naps, up to NAP_MAX.
 *
 *
 * Usage
 * =====
 *
 *    if (nap_gathers(nap)) {             (there is nothing to do)
 *        ...sleep nap_next(nap)...
 *    } else {
 *        ...wait for a frame...
 *    }
 *    nap_end(nap, now, n_frames);        (there is something)
 *
 * Times are nanoseconds.  A structure of zeros has just worked, and expects few
 * frames. */

#include <stdbool.h>
#include <stdint.h>

#define NAP_MIN UINT64_C(10000)         /* The first one after some work... */
#define NAP_MAX UINT64_C(1000000)       /* ...doubles up to here. */

struct nap {
    uint64_t last;              /* How long the last nap was, 0 if there has
                                 * been none since there was something. */
    uint64_t looked, n_frames;  /* When the rate was looked at, and how many
                                 * had come by then. */
    bool is_dense;              /* Frames were worth naps then. */
};

void nap_end(struct nap *, uint64_t now, uint64_t n_frames);
bool nap_gathers(const struct nap *);

/* Returns how long to nap. */
uint64_t nap_next(struct nap *);
uint64_t nap_shortest(struct nap *);

#endif /* shim/loop/nap.h */
