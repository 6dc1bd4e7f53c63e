/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LOOP_H
#define SHIM_LOOP_H 1

/* The thread that forwards: turns of forward_turn(), and naps between them.
 *
 *
 * Motivation
 * ==========
 *
 * Several shims share few CPUs with the training they serve, so a loop with
 * nothing to do sleeps until a frame arrives, or takes some naps before if many
 * frames come (see nap.h), but never past the time when a paced packet is due.
 * If a port cannot tell of frames, it takes longer and longer naps.
 *
 * A shim that has a CPU of its own may be told to stay awake, one whose
 * latency matters more than its bursts not to nap.
 *
 *
 * Usage
 * =====
 *
 *    loop = loop_create(forward, host, uplink, LOOP_AUTO);
 *    ...another thread: loop_run(loop)...
 *    loop_pause(loop);
 *    ...change a port...
 *    loop_resume(loop);
 *    loop_stop(loop);
 *
 * Each lane of the forward (see lanes.h) has a loop of its own, which does
 * everything that the first one is told:
 *
 *    other = loop_add_lane(loop, lane, host, uplink);
 *    ...a thread: loop_run(other)...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * What the loop forwards stays the caller's and must outlive it; lanes' loops
 * are destroyed with the first one.  loop_run() is for one thread; all other
 * functions are for the control thread, and for the first loop. */

#include <stdbool.h>
#include <stdint.h>

struct forward;
struct lane;
struct loop;
struct port;

/* What the loop does when there is nothing to do. */
enum loop_poll {
    LOOP_AUTO,                  /* LOOP_INTERRUPT where the ports can, after
                                 * naps where many frames come; or
                                 * LOOP_NAP. */
    LOOP_BUSY,                  /* Looks again. */
    LOOP_NAP,                   /* Naps of up to 1 ms. */
    LOOP_INTERRUPT,             /* Waits for a frame. */
};

struct loop *loop_create(struct forward *, struct port *host,
                         struct port *uplink, enum loop_poll);
void loop_destroy(struct loop *);

/* Before any loop runs.  Returns NULL without memory.  The ports are the
 * lane's queues, NULL if it has none. */
struct loop *loop_add_lane(struct loop *, struct lane *, struct port *host,
                           struct port *uplink);

/* Before loop_run(): calls 'woke' from there, between two turns, when the loop
 * stood still for so long that somebody may have forwarded in its place. */
void loop_on_gap(struct loop *, void (*woke)(void *aux), void *aux);

void loop_run(struct loop *);
void loop_stop(struct loop *);
bool loop_pause(struct loop *);
void loop_resume(struct loop *);
uint64_t loop_busy_ns(struct loop *);

/* How often the loop has turned, and how long ago it, or the lane that did so
 * the longest ago, last began to.  A loop that naps turns at least fifty times
 * a second. */
uint64_t loop_turns(const struct loop *);
uint64_t loop_turn_age_ns(const struct loop *);

/* Makes loop_run() return, and waits until it will touch no port any more.
 * Returns false if that is not so within 'ns'. */
bool loop_leave(struct loop *, uint64_t ns);

#endif /* shim/loop/loop.h */
