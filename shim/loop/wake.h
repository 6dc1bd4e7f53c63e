/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_WAKE_H
#define SHIM_WAKE_H 1

/* Wakes a thread that waits for what other threads put into its rings.
 *
 *
 * Motivation
 * ==========
 *
 * A thread that is awake looks into its rings all the time, so telling it is
 * only worth a system call when it sleeps.  Whoever goes to sleep says so and
 * then looks once more; whoever puts something into a ring then looks whether
 * somebody sleeps.  Between the two steps is a full barrier on both sides, so
 * that at least one of them sees what the other did.
 *
 *
 * Usage
 * =====
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
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread sleeps, any number wake it. */

#include <stdint.h>

struct wake {
    int fd;                     /* Event: there may be something. */
    uint32_t asleep;            /* 1 if it is; the sleeper writes. */
};

/* Returns 0 or a positive errno; then 'fd' is -1. */
int wake_init(struct wake *);
void wake_uninit(struct wake *);

void wake_prepare(struct wake *);
void wake_finish(struct wake *);
void wake_up(struct wake *);

#endif /* shim/loop/wake.h */
