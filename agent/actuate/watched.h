/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WATCHED_H
#define WATCHED_H 1

/* The jobs whose bytes in time the agent wants to see.
 *
 *
 * Motivation
 * ==========
 *
 * The shim remembers a little more than a second of each job's bins, and each
 * job's are a question and an answer.  Few jobs are asked for five times a
 * second, so that what is counted is fresh; many, once.
 *
 *
 * Usage
 * =====
 *
 *    watched_set(&w, "asha/t0", true);
 *    watched_ask(&w, now, ask, aux);             // Five times a second.
 *    if (watched_answered(&w, "asha/t0", next)) {
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

/* Calls 'ask' for each job that it is time for, with the number of the first
 * bin that is not known. */
void watched_ask(struct watched *, long long now,
                 void (*ask)(const char *job, uint64_t since, void *aux),
                 void *aux);

/* All bins before 'next' of 'job' are known.  Returns false if it is not
 * watched. */
bool watched_answered(struct watched *, const char *job, uint64_t next);

#endif /* agent/actuate/watched.h */
