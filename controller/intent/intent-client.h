/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_CLIENT_H
#define INTENT_CLIENT_H 1

/* Writes cojobs, jobs and stages to the intent database.
 *
 *
 * Motivation
 * ==========
 *
 * Searches and people announce what they are about to do; the controller reads
 * it.  A search must never wait long for this: every call gives up after
 * 'timeout_ms' and says so, and the caller goes on.
 *
 *
 * Usage
 * =====
 *
 *    struct intent_client *ic = intent_client_create(remote, 2000);
 *    char *error = intent_client_stage_begin(ic, "asha", 1, 81, jobs, n);
 *    if (error) {
 *        ...warn, free(error), go on...
 *    }
 *    intent_client_destroy(ic);
 *
 * Every call is one transaction, and is idempotent: what is there already with
 * the same name is updated.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Blocking; one thread. */

#include <stddef.h>

#include "wire/announce.h"

struct intent_client;

struct intent_client *intent_client_create(const char *remote,
                                           int timeout_ms);
void intent_client_destroy(struct intent_client *);

/* Each returns NULL if the database has it, otherwise a malloc()'d message. */
char *intent_client_cojob_begin(struct intent_client *, const char *cojob,
                                double weight);
char *intent_client_job_begin(struct intent_client *, const char *cojob,
                              const char *job,
                              const struct announce_worker *, size_t n,
                              long long model_bytes);
char *intent_client_stage_begin(struct intent_client *, const char *cojob,
                                int rung, long long iterations,
                                const char *const *jobs, size_t n_jobs);
char *intent_client_stage_end(struct intent_client *, const char *cojob,
                              int rung);
char *intent_client_job_end(struct intent_client *, const char *cojob,
                            const char *job, const char *outcome);
char *intent_client_cojob_end(struct intent_client *, const char *cojob);

/* The search's view of a client: 'aux' is the intent_client.  Errors are
 * logged, once per outage, and otherwise ignored. */
extern const struct announce_class intent_client_announce;

#endif /* controller/intent/intent-client.h */
