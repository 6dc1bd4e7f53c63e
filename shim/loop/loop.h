/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LOOP_H
#define SHIM_LOOP_H 1

/* The forwarding thread: polls, and sleeps when idle.
 *
 * Several shims share few CPUs with the training that they serve, so an idle
 * loop blocks until a frame arrives, at high frame rates after a few short
 * sleeps (see idle.h), but never beyond the time when a paced packet is due.
 * If a port has no receive interrupt, it only sleeps.
 *
 * A shim with a CPU of its own may be configured to poll all the time, and a
 * shim that needs low latency more than throughput to always block.
 *
 *    loop = loop_create(forward, host, uplink, LOOP_AUTO);
 *    ...another thread: loop_run(loop)...
 *    loop_pause(loop);
 *    ...change a port...
 *    loop_resume(loop);
 *    loop_stop(loop);
 *
 * The forward and the ports stay the caller's and must outlive the loop.
 * loop_run() is for one thread; all other functions are for the control
 * thread. */

#include <stdbool.h>
#include <stdint.h>

struct forward;
struct loop;
struct port;

/* What an idle loop does. */
enum loop_poll {
    LOOP_AUTO,                  /* LOOP_INTERRUPT if both ports have a receive
                                 * interrupt, at high frame rates after short
                                 * sleeps; otherwise LOOP_SLEEP. */
    LOOP_BUSY,                  /* Polls again at once. */
    LOOP_SLEEP,                 /* Sleeps up to 1 ms between polls. */
    LOOP_INTERRUPT,             /* Blocks until a frame arrives. */
};

struct loop *loop_create(struct forward *, struct port *host,
                         struct port *uplink, enum loop_poll);
void loop_destroy(struct loop *);

/* Before loop_run(): 'woke' is called from there, between two polls, after the
 * loop did not run for so long that the agent may have raised the kernel
 * bypass. */
void loop_on_gap(struct loop *, void (*woke)(void *aux), void *aux);

void loop_run(struct loop *);
void loop_stop(struct loop *);
bool loop_pause(struct loop *);
void loop_resume(struct loop *);
uint64_t loop_busy_ns(struct loop *);

/* Return the number of polls, and the time since the last one.  An idle loop
 * polls at least fifty times a second. */
uint64_t loop_polls(const struct loop *);
uint64_t loop_poll_age_ns(const struct loop *);

/* Makes loop_run() return.  Returns false if it still uses its ports after
 * 'ns'. */
bool loop_leave(struct loop *, uint64_t ns);

#endif /* shim/loop/loop.h */
