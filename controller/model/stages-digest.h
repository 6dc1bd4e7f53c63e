/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGES_DIGEST_H
#define STAGES_DIGEST_H 1

/* Whether what the intent says of the stages that run has changed.
 *
 *
 * Motivation
 * ==========
 *
 * A search announces itself, its jobs with all their hosts, and then the stage
 * that they work on.  Only the last is worth an order at once: an order that
 * is made between two of them reaches all these hosts for nothing, and the
 * stage's own waits behind it.  So the cluster tells apart what concerns a
 * stage that runs and what can wait for a moment.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Main thread only. */

#include <stdint.h>

struct cluster;

/* A hash of all running stages, of their jobs and of these jobs' hosts, as the
 * intent gives them.  What differs in it has another hash, but for one of
 * 2**32 times, and then it is an order later. */
uint32_t stages_digest(const struct cluster *);

#endif /* controller/model/stages-digest.h */
