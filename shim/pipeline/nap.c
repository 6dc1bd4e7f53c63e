/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/nap.h"

#define SHORT_NS 30000u         /* An idle time that is worth a nap. */
#define SOON_MOST 7u            /* Of 'soon'; more than half of it: nap. */

/* There is nothing to do, perhaps still. */
void
nap_begin(struct nap *n, uint64_t now)
{
    if (!n->since) {
        n->since = now;
    }
}

/* There is something to do.  What the first nap has found came soon, however
 * long that nap really was. */
void
nap_end(struct nap *n, uint64_t now)
{
    if (n->since) {
        bool is_short = n->last == NAP_MIN || now - n->since < SHORT_NS;

        if (!is_short) {
            n->soon -= n->soon > 0;
        } else if (n->soon < SOON_MOST) {
            n->soon++;
        }
    }
    n->last = n->since = 0;
}

/* Is a nap better than a wait? */
bool
nap_gathers(const struct nap *n)
{
    return !n->last && n->soon > SOON_MOST / 2;
}

/* A wait follows. */
void
nap_wait(struct nap *n)
{
    n->last = NAP_MAX;
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
