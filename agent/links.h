/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINKS_H
#define LINKS_H 1

/* Bandwidth and paths that a job of this host can use, and where it sends.
 *
 * A job that chooses its peers, as training without a server does, would have
 * to measure which paths are slow.  Its host already knows part of that: the
 * kernel measures each connection, also those of others to the same host, and
 * counts what each job sends, as a shim does.
 *
 * There are two figures.  The available bandwidth of the uplink is the same
 * for all peers: the capacity minus what jobs of higher rank send, but at
 * least the minimum share, and of that at least an equal part among jobs of
 * the same rank.  The delivery rate of a connection belongs to one path; it is
 * reported only if the path and not the program limited the connection,
 * recently.  Connections with a loopback address are left out.
 *
 *    links_sample(&links, registry, now);              // Often.
 *    json = links_compose(&facts, "asha/t0");          // docs/interfaces.md.
 *
 * In a fabric of several levels the controller needs to know where the bytes
 * of a job go: only traffic between racks uses their uplinks.  The kernel's
 * program at the uplink counts them (identity.h).
 *
 *    pairs.wanted = true;                      // By each lease.
 *    if (pairs_sample(&pairs, registry, identity, actuator, now)) {
 *        ...job->remotes has changed...
 *    }
 *
 * Measures only while the controller wants it, once a second.
 * Addresses beyond the first PAIRS_MAX_REMOTES of a job are not counted, so
 * the bytes are shares and not totals.
 *
 * Main thread only.  A request costs a microsecond for each connection of the
 * agent's network namespace; at most LINKS_MAX_FLOWS are read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINKS_MAX_FLOWS 4096
#define PAIRS_MAX_REMOTES 128

struct actuator;
struct identity;
struct job;
struct json;
struct registry;
struct wanted;

/* Time of the last measurement of rates. */
struct links {
    long long at;               /* time_msec(), 0 if never. */
};

/* Measures the rates of jobs, at most once a second. */
void links_sample(struct links *, const struct registry *, long long now);

/* Facts about all jobs; a job gets the part about itself. */
struct links_facts {
    const struct registry *registry; /* The jobs of this host. */
    const struct wanted *wanted;     /* Their ranks. */
    bool ordered;                    /* These hold. */
    uint64_t capacity_bps;           /* Of the uplink, 0 if unknown. */
};

struct json *links_compose(const struct links_facts *, const char *job);

/* Returns the part of 'capacity' (bit/s) that is available to a job: 'before'
 * is the rate of jobs of higher rank, 'floor' the job's minimum share of the
 * capacity, and 'beside' the rate of 'n_beside' jobs of the same rank. */
double links_left(double capacity, double before, double floor,
                  double beside, size_t n_beside);

/* Bytes that a job has sent to an address; struct job has an array of them. */
struct pairs_remote {
    uint8_t address[16]; /* IPv6, an IPv4 address mapped. */
    uint64_t bytes;      /* Of IP frames. */
};

struct pairs {
    bool wanted;  /* By the last lease. */
    long long at; /* time_msec() of the last sample. */
};

/* Returns true if it was time for a sample.  The identity has the bytes of
 * slots; the actuator has the slots of jobs. */
bool pairs_sample(struct pairs *, const struct registry *, struct identity *,
                  const struct actuator *, long long now);

/* Adds 'bytes' that 'job' has sent to 'address'. */
void pairs_add(struct job *, const uint8_t address[16], uint64_t bytes);

/* Returns [{"remote", "bytes"}...] of 'job'. */
struct json *pairs_to_json(const struct job *);

#endif /* agent/links.h */
