/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/classify.h"

#include "shim/pipeline/counter.h"

/* Returns the slot of the flow 'key', 0 if it is unknown, and then reports
 * it. */
static uint16_t
find_slot(struct classifier *c, const struct shim_flow_key *key, uint64_t now)
{
    uint64_t hash = flow_table_hash(c->flows, key);
    int slot = flow_table_lookup(c->flows, key, hash);

    if (slot < 0) {
        counter_add(&c->n_misses, 1);
        miss_report(c->misses, key, hash, now);
        return 0;
    }
    return slot;
}

void
classify_from_host(struct classifier *c, const uint8_t *frame, size_t length,
                   uint64_t now, bool leased, struct verdict *v)
{
    struct parsed p;

    parse_frame(frame, length, true, &p);
    v->slot = p.kind == PARSED_FLOW ? find_slot(c, &p.key, now) : 0;
    v->l3 = p.l3;
    v->family = p.kind == PARSED_MALFORMED ? 0 : p.family;
    v->is_ip = v->family != 0;
    v->queue = 0;
    v->treatment = job_slots_treatment(c->slots, v->slot, leased);
    if (p.kind == PARSED_OTHER || p.kind == PARSED_NEIGHBOUR) {
        v->treatment.level = SHIM_LEVEL_CONTROL;
    } else if (p.kind == PARSED_MALFORMED) {
        counter_add(&c->n_malformed, 1);
    }
}

/* Returns the slot to count the frame for, 0 if there is none.  An unknown
 * flow is no miss here: the host's answer to it will be. */
uint16_t
classify_to_host(struct classifier *c, const uint8_t *frame, size_t length)
{
    struct parsed p;
    int slot;

    parse_frame(frame, length, false, &p);
    if (p.kind != PARSED_FLOW) {
        return 0;
    }
    slot = flow_table_lookup(c->flows, &p.key,
                             flow_table_hash(c->flows, &p.key));
    return slot < 0 ? 0 : slot;
}
