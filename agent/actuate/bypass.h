/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BYPASS_H
#define BYPASS_H 1

/* Kernel bypass of a shim that does not forward.
 *
 * A host must keep its network when its shim crashes or hangs.  The agent then
 * has the kernel join the shim's two interfaces (shim/ports/kernel-path.h),
 * and removes that when the shim forwards again.  Traffic in the bypass has no
 * priorities and keeps the DSCP that the host wrote.
 *
 * The bypass belongs to the kernel, so it survives the agent too; an agent
 * that starts finds out by enabling or disabling it.  A shim that starts
 * removes it itself when it begins to forward, so frames are duplicated only
 * for a moment.
 *
 *    error = bypass_ports_parse("scl-node-h0:host,uplink", &ports);
 *    bypass = bypass_create(&ports, now);          // Or NULL.
 *
 *    bypass_connected(bypass, fd, now);            // To a shim.
 *    bypass_requested(bypass, now);                // Sent SHIM_PORTS.
 *    bypass_received(bypass, &reply);
 *    bypass_disconnected(bypass, now);             // And not reconnected.
 *    for (;;) {
 *        bypass_run(bypass, now);
 *        bypass_wait(bypass, now);
 *        poll_block();
 *    }
 *
 * The replies of a shim name its two interfaces, and its process has their
 * network namespace.  The argument of bypass_create() is for the time before
 * the first connection, or for an agent that cannot see the shim's process.
 *
 * Arguments are copied.  Main thread only. */

#include <stdbool.h>

struct bypass;
struct shim_ports;

struct bypass_ports {
    char netns[64];             /* Name in /run/netns, "" for the agent's. */
    char iface[16], other[16];  /* The two interfaces to join. */
};

/* Parses "[NETNS:]IFACE,IFACE".  Returns NULL or a malloc()'d message. */
char *bypass_ports_parse(const char *, struct bypass_ports *);

struct bypass *bypass_create(const struct bypass_ports *, long long now);
void bypass_destroy(struct bypass *);

void bypass_connected(struct bypass *, int fd, long long now);
void bypass_requested(struct bypass *, long long now);
void bypass_received(struct bypass *, const struct shim_ports *);
void bypass_disconnected(struct bypass *, long long now);

void bypass_run(struct bypass *, long long now);
void bypass_wait(const struct bypass *, long long now);

bool bypass_is_active(const struct bypass *);

#endif /* agent/actuate/bypass.h */
