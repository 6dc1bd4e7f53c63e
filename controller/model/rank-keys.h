/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RANK_KEYS_H
#define RANK_KEYS_H 1

/* Numbers that give hosts the order of jobs.
 *
 * A job's rank is its place in the order, so one new job changes the ranks of
 * all jobs behind it, and with them the rows of all hosts.  Hosts only compare
 * the numbers of their own jobs.  They get keys with gaps: a job that comes
 * takes a key between those of its neighbours.  Of the jobs that were there,
 * the longest sequence that is still in order keeps its keys (Schensted 1961,
 * "Longest increasing and decreasing subsequences"), so that the fewest rows
 * change.  If a gap is used up, all jobs get new keys.
 *
 *    rank_keys_update(jobs, n);  // Sorted by rank.
 *    ...hosts get jobs[i]->key...
 *
 * O(n log n).  Main thread only. */

#include <stddef.h>

struct job;

/* Keys are from 1 to less than this; 0 means no key. */
#define RANK_KEYS_END 0x7fffffff

/* Sets 'key' of the jobs by 'rank', by which they are sorted, and by their
 * previous keys.  Jobs of one rank get one key. */
void rank_keys_update(struct job **jobs, size_t n);

#endif /* controller/model/rank-keys.h */
