/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PAIRS_H
#define PAIRS_H 1

/* Bytes that each job of this host has sent to each remote address.
 *
 * The shim counts the bytes of a job, not where they go.  In a fabric of
 * several levels the controller needs that: only traffic between racks uses
 * their uplinks.  The kernel's program at the uplink counts them (identity.h).
 * Without it, the kernel counts the acknowledged bytes of each connection, and
 * the agent adds up what has been acknowledged since it last looked.
 *
 *    pairs_want(&pairs, true);                 // By each lease.
 *    if (pairs_sample(&pairs, tracker, NULL, NULL, now)) {
 *        ...job->remotes has changed...
 *    }
 *
 * Measures only while the controller wants it, once a second, for TCP over
 * IPv4: a microsecond for each of at most PAIRS_MAX_FLOWS flows.  What a
 * connection sends after the last sample before its end is not counted, nor
 * are addresses beyond the first PAIRS_MAX_REMOTES of a job, so the bytes are
 * shares and not totals.
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_MAX_FLOWS 4096
#define PAIRS_MAX_REMOTES 128

struct actuator;
struct identity;
struct job;
struct json;
struct tracker;

/* Bytes that a job has sent to an address; struct job has an array of them. */
struct pairs_remote {
    uint8_t address[4];         /* IPv4. */
    uint64_t bytes;             /* Acknowledged by the remote host. */
};

struct pairs {
    bool wanted;                /* By the last lease. */
    long long at;               /* time_msec() of the last sample. */
};

void pairs_want(struct pairs *, bool wanted);

/* Returns true if it was time for a sample.  The identity, which may be NULL,
 * has the bytes of slots; the actuator has the jobs of these. */
bool pairs_sample(struct pairs *, struct tracker *, struct identity *,
                  const struct actuator *, long long now);

/* Adds 'bytes' that 'job' has sent to 'address'. */
void pairs_add(struct job *, const uint8_t address[4], uint64_t bytes);

/* Returns [{"remote", "bytes"}...] of 'job'. */
struct json *pairs_to_json(const struct job *);

#endif /* agent/pairs.h */
