/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BYPASS_H
#define BYPASS_H 1

/* The way around a shim that does not forward.
 *
 *
 * Motivation
 * ==========
 *
 * A host must not be cut off because its shim crashed or hangs.  The agent
 * then has the kernel join its two interfaces (shim/ports/kernel-path.h)
 * and takes that back when the shim forwards again.  What goes this way has no
 * order and carries the DSCP that the host wrote.
 *
 * The path is the kernel's, so it outlives the agent as well; an agent that
 * starts finds it by raising or lowering it.  A shim that starts takes it down
 * itself, in the moment in which it begins to forward: nothing then goes twice
 * for longer than that.
 *
 *
 * Usage
 * =====
 *
 *    error = bypass_place_parse("scl-node-h0:host,uplink", &place);
 *    bypass = bypass_create(&place, now);          // Or NULL.
 *
 *    bypass_met(bypass, fd, now);                  // Connected to a shim.
 *    bypass_asked(bypass, now);                    // Sent SHIM_PORTS.
 *    bypass_answered(bypass, &ports);
 *    bypass_lost(bypass, now);                     // Connection ended, and
 *                                                  // there is no other one.
 *    for (;;) {
 *        bypass_run(bypass, now);
 *        bypass_wait(bypass, now);
 *        poll_block();
 *    }
 *
 * A shim that has been met tells the two interfaces, and its process the
 * network namespace that they are in.  The place is for the time before, or
 * for an agent that does not see the shim's process.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The place is copied.  Main thread only. */

#include <stdbool.h>

struct bypass;
struct shim_ports;

struct bypass_place {
    char netns[64];             /* Of /run/netns, "" for the agent's own. */
    char iface[16], other[16];
};

/* Parses "[NETNS:]IFACE,IFACE".  Returns NULL or a malloc()'d message. */
char *bypass_place_parse(const char *, struct bypass_place *);

struct bypass *bypass_create(const struct bypass_place *, long long now);
void bypass_destroy(struct bypass *);

void bypass_met(struct bypass *, int fd, long long now);
void bypass_asked(struct bypass *, long long now);
void bypass_answered(struct bypass *, const struct shim_ports *);
void bypass_lost(struct bypass *, long long now);

void bypass_run(struct bypass *, long long now);
void bypass_wait(const struct bypass *, long long now);

bool bypass_is_up(const struct bypass *);

#endif /* agent/actuate/bypass.h */
