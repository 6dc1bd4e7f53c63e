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
 * a nap is better: what arrives meanwhile is forwarded in one burst, and on few
 * CPUs the TCP stacks get the time that waking up for each frame would take.
 * Where they do not, it is a wake-up in vain.  Those take 20 to 30 us of a CPU
 * on some virtual machines; with five of them after each frame, nine shims took
 * a quarter of the time of two CPUs for sleeping.  So the loop learns whether its idle times
 * are short: it naps at most once between two frames, and only where that has
 * mostly found some.
 *
 * Who cannot wait takes longer and longer naps, from NAP_MIN to NAP_MAX.
 *
 *
 * Usage
 * =====
 *
 *    nap_begin(nap, now);                (there is nothing to do)
 *    if (nap_gathers(nap)) {
 *        ...sleep nap_next(nap)...
 *    } else {
 *        nap_wait(nap);
 *        ...wait for a frame...
 *    }
 *    nap_end(nap, now);                  (there is something)
 *
 * Times are nanoseconds.  A structure of zeros has just worked, and expects no
 * short idle times. */

#include <stdbool.h>
#include <stdint.h>

#define NAP_MIN UINT64_C(10000)         /* The first one after some work... */
#define NAP_MAX UINT64_C(1000000)       /* ...doubles up to here. */

struct nap {
    uint64_t since;             /* Of the idle time.  0: there is none. */
    uint64_t last;              /* How long the last nap was, NAP_MAX after a
                                 * wait, 0 if there has been none. */
    unsigned int soon;          /* One more for each short idle time, one less
                                 * for each other one. */
};

void nap_begin(struct nap *, uint64_t now);
void nap_end(struct nap *, uint64_t now);
bool nap_gathers(const struct nap *);
void nap_wait(struct nap *);

/* Returns how long to nap. */
uint64_t nap_next(struct nap *);
uint64_t nap_shortest(struct nap *);

#endif /* shim/pipeline/nap.h */
