/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WATCHED_H
#define WATCHED_H 1

/* Jobs whose traffic per bin of time the agent requests from the shim.
 *
 *
 * Motivation
 * ==========
 *
 * The shim keeps a little more than a second of bins for each job, and each
 * job takes a request and a reply.  While there are few watched jobs, all are
 * requested with the counters, five times a second, so that iterations are
 * counted early; with more jobs, each is requested about once a second.
 *
 *
 * Usage
 * =====
 *
 *    watched_set(&w, "asha/t0", true);
 *    watched_request(&w, now, request, aux);     // Five times a second.
 *    if (watched_received(&w, "asha/t0", next)) {
 *        ...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Names are copied.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "openvswitch/shash.h"

struct watched {
    struct shash jobs;          /* Name -> struct watched_job. */
};

void watched_init(struct watched *);
void watched_uninit(struct watched *);

void watched_set(struct watched *, const char *job, bool watch);

/* Calls 'request' for each job that is due, with the number of the first bin
 * that has not been received. */
void watched_request(struct watched *, long long now,
                 void (*request)(const char *job, uint64_t since, void *aux),
                 void *aux);

/* Notes that all bins of 'job' before 'next' have been received.  Returns
 * false if the job is not watched. */
bool watched_received(struct watched *, const char *job, uint64_t next);

#endif /* agent/actuate/watched.h */
