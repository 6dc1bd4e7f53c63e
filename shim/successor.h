/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_SUCCESSOR_H
#define SHIM_SUCCESSOR_H 1

/* This process takes the place of another shim ("--take-over").
 *
 *
 * Motivation
 * ==========
 *
 * The other one forwards while this one makes what it needs.  Its tables come
 * over meanwhile, and the agent will look at them again, so that nothing is
 * lost that it changes in the meantime.  What changes with each packet comes
 * over when it has stopped: from then on until this one's loop runs, nobody
 * forwards.  See succession.h for the other's part.
 *
 *
 * Usage
 * =====
 *
 *    ...make tables, ports and loops...
 *    error = successor_begin(&shim);
 *    ...make the server, which succeeds another's if shim.old is not null...
 *    error = successor_finish(&shim);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Messages are the caller's; after one, shim.old may be left to be finished.
 * The main thread, before the loops run. */

struct shim;

/* Looks whether there is a shim to take over from, and takes its tables. */
char *successor_begin(struct shim *);

/* Does nothing if there is none. */
char *successor_finish(struct shim *);

#endif /* shim/successor.h */
