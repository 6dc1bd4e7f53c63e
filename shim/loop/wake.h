/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_WAKE_H
#define SHIM_WAKE_H 1

/* Wakes a thread that waits for elements in rings.
 *
 * A thread that is awake reads its rings all the time, so waking it is only
 * worth a system call while it sleeps.  The sleeper sets 'asleep' and then
 * reads its rings once more; the writer puts an element into a ring and then
 * reads 'asleep'.  A full barrier between the two steps on both sides makes
 * sure that at least one of them sees what the other did.
 *
 *    wake_prepare(w);                        (the thread that sleeps)
 *    if (...the rings are empty...) {
 *        ...poll() for w->fd and others...
 *    }
 *    wake_finish(w);
 *
 *    ...put something into a ring...         (any other thread)
 *    wake_up(w);
 *
 * One thread sleeps, any number wake it. */

#include <stdint.h>

struct wake {
    int fd;                     /* Event file, readable after wake_up(). */
    uint32_t asleep;            /* 1 while asleep; the sleeper writes. */
};

/* Returns 0 or a positive errno; then 'fd' is -1. */
int wake_init(struct wake *);
void wake_uninit(struct wake *);

void wake_prepare(struct wake *);
void wake_finish(struct wake *);
void wake_up(struct wake *);

#endif /* shim/loop/wake.h */
