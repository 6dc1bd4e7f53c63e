/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_TAKEOVER_H
#define SHIM_TAKEOVER_H 1

/* The takeover: replaces a running shim by a new process ("--take-over").
 *
 * Two shims on the same interfaces receive the same frames, so only one may
 * forward.  The new shim creates all that it needs and copies the slots while
 * the old one forwards.  Then it sends SHIM_TAKE_OVER over the old shim's
 * control socket:
 *
 *    STOP    The old shim stops receiving within 100 ms and keeps sending what
 *            is queued.  The new one reads the state that changes with each
 *            packet, discards what it has received and publishes its socket.
 *    LEAVE   The old shim drains its queues for at most 30 ms, releases the
 *            ports and exits.  The new one forwards.
 *
 * If LEAVE does not arrive within 300 ms of STOP, the old shim receives again:
 * a new shim that crashes during the takeover does not disconnect the host.
 *
 * The new shim learns the slots of received packets itself, from the tags of
 * the next packets of their flows.
 *
 * The old shim, in its control thread:
 *
 *    error = takeover_step(&shim, step);
 *    if (shim.old_side.leaving) {
 *        ...end, and keep the control socket's name...
 *    }
 *    if (takeover_expired(&shim, now)) {
 *        ...the new shim has failed...
 *    }
 *
 * The new shim, in its main thread, before its loops run:
 *
 *    ...create tables, ports and loops...
 *    why = takeover_begin(&shim);
 *    ...create the server, at a temporary path if there is an old shim...
 *    why = takeover_finish(&shim);
 *
 * Messages belong to the caller.  After one, takeover_end(&shim.old) releases
 * the connection to the old shim, which goes on. */

#include <stdbool.h>
#include <stdint.h>

struct shim;
struct shim_client;

/* The new shim's connection to the old one. */
struct takeover {
    struct shim_client *client; /* NULL: there is no old shim. */
    uint32_t pid;               /* Process of the old shim, 0: unknown. */
    bool stopped;               /* STOP has succeeded. */
};

/* The old shim's side. */
struct takeover_old_side {
    uint64_t deadline;          /* For LEAVE, by clock_now(); 0 if there is no
                                 * takeover. */
    bool leaving;               /* LEAVE has succeeded. */
};

/* Executes SHIM_STEP_STOP or SHIM_STEP_LEAVE, which takes up to 130 ms.
 * Returns 0 or a positive errno. */
int takeover_step(struct shim *, uint32_t step);

/* Receives again and returns true if LEAVE is overdue. */
bool takeover_expired(struct shim *, uint64_t now);

/* The new shim's side.  Each returns NULL or a message.  takeover_begin()
 * copies the old shim's slots and connects 'shim->old', unless no shim has
 * the control socket; then takeover_finish() does nothing. */
char *takeover_begin(struct shim *);
char *takeover_finish(struct shim *);

/* Disconnects.  After STOP it sends LEAVE before, and kills the old shim if
 * that fails. */
void takeover_end(struct takeover *);

#endif /* shim/takeover.h */
