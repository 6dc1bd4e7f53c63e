/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SILENCE_H
#define SILENCE_H 1

/* Stages and searches that nobody works on any more.
 *
 * A search that is killed leaves its stage in the database as running, and it
 * would be ordered, and hold its place, for ever.  Agents name the jobs that
 * have a process on their host five times a second.  So a job that none of its
 * hosts names, all of them being there to be asked, has none; when that has
 * been so of all jobs of a stage for SILENCE_MS, nobody works on it.  Of a job
 * whose hosts are not known, or one of whose hosts is away, nothing is known,
 * and it counts as working.
 *
 * A search without a stage is between two of them, which takes a person's time
 * at most: one that has had neither a stage nor a process for
 * SILENCE_COJOB_MS is not coming back. */

#include <stdint.h>

#define SILENCE_MS 60000
#define SILENCE_COJOB_MS 600000

struct cluster;

/* Looks at all running stages and cojobs; sets their 'silent' and
 * 'worked_on'.  'now' is in epoch ms. */
void silence_run(struct cluster *, int64_t now);

#endif /* controller/model/silence.h */
