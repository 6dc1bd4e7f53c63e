/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/egress-internal.h"

#include "shim/classify/classify.h"
#include "shim/classify/fetch.h"

struct claimant {
    struct egress *egress;
    struct classifier *classifier;
};

/* Those that are a job's leave as if the order had changed since they came,
 * with its DSCP. */
static void
find(void *c_, struct queue_item *items, uint32_t n)
{
    struct rte_mbuf *frames[RANK_CLAIM_BURST];
    struct packet packets[RANK_CLAIM_BURST] = { { NULL } };
    uint16_t slots[RANK_CLAIM_BURST];
    struct claimant *c = c_;

    for (uint32_t i = 0; i < n; i++) {
        frames[i] = items[i].packet;
    }
    fetch(frames, n, packets);
    classify_burst_again(c->classifier, packets, n, slots);
    for (uint32_t i = 0; i < n; i++) {
        if (slots[i]) {
            items[i].slot = slots[i];
            items[i].order = c->egress->n_orders - 1;
        }
    }
}

static void
drop(void *c_, const struct queue_item *item)
{
    struct claimant *c = c_;

    egress_drop(c->egress, item);
}

_Static_assert(RANK_CLAIM_BURST <= CLASSIFY_BURST, "find() asks once");

/* Gives jobs what waits of flows that 'classifier' did not know when it came.
 * Returns how many frames were looked at. */
uint32_t
egress_claim(struct egress *e, struct classifier *classifier)
{
    struct claimant claimant = { e, classifier };

    return rank_queues_claim(e->queues, &(struct rank_claim) {
        find, drop, &claimant,
    });
}
