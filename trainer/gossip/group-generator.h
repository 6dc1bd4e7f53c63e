/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUP_GENERATOR_H
#define GROUP_GENERATOR_H 1

/* The smart groups of Prague (Luo et al., ASPLOS 2020).
 *
 * A peer that has stepped takes the mean with a group.  If each request drew a
 * random group, groups would overlap, and one would wait for the other.  The
 * published generator avoids that:
 *
 *  - Group buffer and global division: a request of a peer with an empty
 *    buffer divides all such peers into groups at once, one for
 *    each peer.  The others find their group in their buffer when they ask.
 *    Groups of one division have no member in common.
 *  - Inter-intra synchronisation: the heads, one peer of each machine, take a
 *    mean across machines, and then all peers of a machine take one.
 *  - Slowdown filter: a peer is in the groups of a request only if it is less
 *    than a threshold of requests behind the one that asked, so that fast
 *    peers do not wait for slow ones.
 *
 * These are the titles of the paper's sections on the smart group generator
 * and on heterogeneity.  Its static schedule, for equal machines, is not here.
 *
 * The public text gives no numbers and leaves some rules open.  Chosen here:
 * the threshold is 4; the head is drawn at random in each division; the heads
 * are divided at random into groups of at most --group, as even as possible;
 * both means of a head belong to one request, so that its machine does not
 * wait for another gradient; peers are on one machine if --peers has the same
 * host for them.  A peer that is left over asks for nothing and goes on alone.
 *
 *    group_generator_init(&g, n, machine_of, most, threshold);
 *    group_generator_request(&g, from, n_finished, out, &random, emit, aux);
 *
 * Ownership: plain data of the caller; the only effect is emit(). */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/net/mesh.h"

struct seeded;

#define GROUP_GENERATOR_THRESHOLD 4

struct group_generator {
    int n;                      /* Peers. */
    int machine_of[PEER_NET_MAX];       /* Any number for each machine. */
    int most;                   /* Largest number of heads of a group. */
    uint64_t threshold;         /* Requests. */
    uint64_t requests[PEER_NET_MAX];    /* Of each peer so far. */
    uint64_t taken[PEER_NET_MAX];       /* Slots, each for one request, that
                                         * are not in its buffer any more. */
    uint64_t given[PEER_NET_MAX];       /* Slots so far. */
};

/* Takes the next group.  'more[i]' if member i has another group for the same
 * request. */
typedef void group_generator_emit(void *aux, const int members[], int n,
                                  const bool more[]);

void group_generator_init(struct group_generator *, int n,
                          const int machine_of[], int most,
                          uint64_t threshold);

/* Peer 'from', which has used up 'n_finished' slots, asks for the next one.
 * Peers that are 'out' are in no group. */
void group_generator_request(struct group_generator *, int from,
                             uint64_t n_finished, const bool out[],
                             struct seeded *, group_generator_emit *emit,
                             void *aux);

#endif /* trainer/gossip/group-generator.h */
