/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_H
#define TC_H 1

/* Interfaces whose queues the kernel has and the agent keeps.
 *
 *
 * Motivation
 * ==========
 *
 * A shim orders what its host sends.  A host without one, or a machine with
 * Linux that forwards others' traffic, has the kernel's queues: by level
 * instead of by rank, which is what a switch does as well.  Who marks the
 * traffic is somebody else: a shim further up, or the job itself.
 *
 * What an interface should have is compared with what the kernel says once a
 * second, and mended.  While no order holds there is one level for all.  An
 * agent that dies leaves the queues as they are, and the next one goes on with
 * them; one that ends gives the interfaces back.
 *
 *
 * Usage
 * =====
 *
 *    error = tc_parse("eth0:25Gbit", &iface);
 *    tc = tc_create(ifaces, n);
 *    for (;;) {
 *        tc_set(tc, ordered, guard);
 *        tc_run(tc);
 *        tc_wait(tc);
 *        poll_block();
 *    }
 *    tc_destroy(tc);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Arguments are copied.  Main thread only; run() waits for the kernel. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct tc;

/* An interface and the rate of its link, bits per second. */
struct tc_iface {
    char name[IFNAMSIZ];
    uint64_t rate_bps;
};

/* Stores what "IFACE:RATE" says.  Returns NULL, or a message that
 * the caller frees. */
char *tc_parse(const char *text, struct tc_iface *);

/* Keeps 'n' interfaces, which may be none. */
struct tc *tc_create(const struct tc_iface *, size_t n);
void tc_destroy(struct tc *);

/* Does an order hold, and what does each level have of the link whatever goes
 * before it?  As in struct shim_guard. */
void tc_set(struct tc *, bool ordered, uint32_t guard);

void tc_run(struct tc *);
void tc_wait(const struct tc *);

/* [{"iface", "rate_bps", "state" ("in sync", "failed"), "reason"}] */
struct json *tc_to_json(const struct tc *);

#endif /* agent/actuate/tc.h */
