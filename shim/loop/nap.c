/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/nap.h"

#define LOOK_NS 1000000u        /* Between looks at how many frames come. */
#define GAP_NS 20000u           /* From one frame to the next, at most, where
                                 * naps are worth it. */
#define GATHER_NS 160000u       /* The longest nap before a wait. */

/* There is something to do; 'n_frames' have come, ever. */
void
nap_end(struct nap *n, uint64_t now, uint64_t n_frames)
{
    if (now - n->looked >= LOOK_NS) {
        n->is_dense = (n_frames - n->n_frames) * GAP_NS > now - n->looked;
        n->looked = now;
        n->n_frames = n_frames;
    }
    n->last = 0;
}

/* Is a nap better than a wait? */
bool
nap_gathers(const struct nap *n)
{
    return n->is_dense && n->last < GATHER_NS;
}

uint64_t
nap_next(struct nap *n)
{
    n->last = (n->last < NAP_MIN ? NAP_MIN
               : n->last < NAP_MAX / 2 ? n->last * 2 : NAP_MAX);
    return n->last;
}

uint64_t
nap_shortest(struct nap *n)
{
    n->last = NAP_MIN;
    return n->last;
}
