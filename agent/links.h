/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINKS_H
#define LINKS_H 1

/* What this host knows of its ways to others.
 *
 *
 * Motivation
 * ==========
 *
 * A job that may choose whom it talks to, as peers that train without a server
 * do, finds out by trying which ways are slow.  Its host knows some of that
 * before: the kernel measures each connection, also those of other jobs to the
 * same machine, and the data plane counts what each job sends, of which the
 * controller's order says who goes first.  So a job can ask.
 *
 * Two figures are told apart.  What the uplink leaves to the job is the same
 * whoever it talks to; it is the capacity less what those send that go before
 * it, and at least the level's floor, and of that at least an even part among
 * those that share it.  What a connection delivers is of one way, and is only
 * told where the connection was limited by the way and not by its program, and
 * was used lately.
 *
 *
 * Usage
 * =====
 *
 *    links_sample(&links, registry, now);              // Often.
 *    json = links_compose(agent, "asha/t0");           // docs/interfaces.md.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  To ask costs a microsecond for each of the host's flows,
 * of which LINKS_MAX_FLOWS are looked at. */

#include <stddef.h>

#define LINKS_MAX_FLOWS 4096

struct agent;
struct json;
struct registry;
struct shim_flow_key;

/* When jobs' rates were taken last. */
struct links {
    long long at;               /* time_msec(), 0: never. */
};

/* Takes jobs' rates, not more than once a second. */
void links_sample(struct links *, const struct registry *, long long now);

struct json *links_compose(const struct agent *, const char *job);

/* Bits per second of 'capacity' that are left to a job: 'before' is what goes
 * before it, of which it has 'floor' of the capacity in any case, and 'beside'
 * what 'n_beside' jobs send that share with it. */
double links_left(double capacity, double before, double floor,
                  double beside, size_t n_beside);

#endif /* agent/links.h */
