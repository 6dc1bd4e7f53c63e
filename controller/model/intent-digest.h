/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_DIGEST_H
#define INTENT_DIGEST_H 1

/* Detects changes of the intent that need a new order at once.
 *
 * A search announces its jobs with all their hosts, and then the stage.  An
 * order that is computed between the two would be sent to all these hosts
 * without effect, and the order of the stage would wait behind it.  So only a
 * change of a running stage counts as urgent. */

#include <stdint.h>

struct cluster;

/* Returns a hash of the running stages, their jobs and these jobs' hosts, as
 * the intent gives them. */
uint32_t intent_digest(const struct cluster *);

#endif /* controller/model/intent-digest.h */
