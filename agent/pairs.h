/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PAIRS_H
#define PAIRS_H 1

/* Bytes that each job of this host has sent to each remote address.
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
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_MAX_REMOTES 128

struct actuator;
struct identity;
struct job;
struct json;
struct registry;

/* Bytes that a job has sent to an address; struct job has an array of them. */
struct pairs_remote {
    uint8_t address[16]; /* IPv6, an IPv4 address mapped. */
    uint64_t bytes;      /* Of IP frames. */
};

struct pairs {
    bool wanted;                /* By the last lease. */
    long long at;               /* time_msec() of the last sample. */
};

/* Returns true if it was time for a sample.  The identity has the bytes of
 * slots; the actuator has the slots of jobs. */
bool pairs_sample(struct pairs *, const struct registry *, struct identity *,
                  const struct actuator *, long long now);

/* Adds 'bytes' that 'job' has sent to 'address'. */
void pairs_add(struct job *, const uint8_t address[16], uint64_t bytes);

/* Returns [{"remote", "bytes"}...] of 'job'. */
struct json *pairs_to_json(const struct job *);

#endif /* agent/pairs.h */
