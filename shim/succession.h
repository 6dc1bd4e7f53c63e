/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_SUCCESSION_H
#define SHIM_SUCCESSION_H 1

/* This process's end of SHIM_TAKE_OVER, when another one takes its place.
 *
 *
 * Motivation
 * ==========
 *
 * Two shims on the same interfaces see the same frames.  So the old one stops
 * receiving, sends what it has for as long as a host can wait, and has let go
 * of the ports before the new one begins.  A new one that does not come back
 * after the first step must not cost the host its network.
 *
 *
 * Usage
 * =====
 *
 *    struct succession sc = { .forward = forward, .loop = loop };
 *
 *    error = succession_step(&sc, step);
 *    if (sc.leaving) {
 *        ...end, and leave the control socket's name alone...
 *    }
 *    if (succession_check(&sc, now)) {
 *        ...nobody took over...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Forward and loop stay the caller's.  The control thread; a step waits up to
 * a tenth of a second. */

#include <stdbool.h>
#include <stdint.h>

struct forward;
struct loop;

struct succession {
    struct forward *forward;
    struct loop *loop;
    uint64_t deadline;          /* Of the successor, 0 if there is none. */
    bool leaving;               /* It has taken over. */
};

/* Does SHIM_STEP_STOP or SHIM_STEP_LEAVE.  Returns 0 or a positive errno. */
int succession_step(struct succession *, uint32_t step);

/* Goes on if the successor is late, and returns true then. */
bool succession_check(struct succession *, uint64_t now);

#endif /* shim/succession.h */
