/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes frames from the host or the network: parser, classifier and tagger
 * access nothing beyond the end of the frame, and both directions agree.  The
 * first byte selects the slot tag, and whether there is a lease. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/classify/classify.h"
#include "shim/classify/tag.h"
#include "tests/fuzz/must.h"
#include "tests/unit/shim/classify-one.h"
#include "wire/slot-tag.h"

#define SLOT 5

static struct flow_cache *flows;
static struct job_slots *slots;

static void
prepare(void)
{
    static const struct shim_slot slot = {
        .slot = SLOT, .level = 3, .dscp = 40, .name = "c/j",
    };

    if (!flows) {
        flows = flow_cache_create(1);
        slots = job_slots_create();
        must(!job_slots_set(slots, &slot));
    }
}

/* Checks that the two ends are swapped and all else is equal. */
static void
check_mirror(const struct parsed *out, const struct parsed *in)
{
    const struct shim_flow_key *a = &out->key, *b = &in->key;

    must(out->kind == in->kind && out->l3 == in->l3
         && out->family == in->family);
    if (out->kind == PARSED_FLOW) {
        must(a->family == b->family && a->protocol == b->protocol);
        must(a->local_port == b->remote_port);
        must(a->remote_port == b->local_port);
        must(!memcmp(a->local, b->remote, sizeof a->local));
        must(!memcmp(a->remote, b->local, sizeof a->local));
        must(!a->pad && (a->family == 6 || (!a->local[15] && !a->remote[15])));
    }
}

/* Checks that the fast path accepts only frames that the full parser
 * accepts. */
static void
check_common(const uint8_t *frame, size_t size, const struct parsed *p)
{
    struct flow_id id, portable;
    bool common = parse_common(frame, size, true, &id);

    must(common == parse_common_portable(frame, size, true, &portable));
    if (common) {
        must(!memcmp(&id, &portable, sizeof id));
        must(p->kind == PARSED_FLOW && p->l3 == PARSE_COMMON_L3);
        must(!memcmp(&id.addresses, p->key.local, 4));
        must(!memcmp((const uint8_t *) &id.addresses + 4, p->key.remote, 4));
    }
}

/* Checks that the slot tag decides. */
static void
check_verdict(const struct verdict *v, const struct parsed *p, uint16_t tag,
              bool leased, uint8_t *frame, size_t size)
{
    must(v->slot == (tag & SLOT_TAG_SLOT) && v->l3 == p->l3);
    must(v->treatment.level < SHIM_N_LEVELS && v->treatment.dscp <= 63);
    if (p->kind == PARSED_FLOW) {
        bool control = tag & SLOT_TAG_CONTROL, has = v->slot && leased;

        must(v->treatment.level
             == (!has      ? SHIM_LEVEL_DEFAULT
                 : control ? SHIM_LEVEL_CONTROL
                           : 3));
        must(v->treatment.dscp
             == (!has      ? 0
                 : control ? SHIM_CONTROL_DSCP
                           : 40));
    }
    if (v->is_ip) {
        struct parsed after;

        must(v->l3 + (v->family == 4 ? 20u : 40u) <= size);
        (v->family == 4 ? tag_ipv4 : tag_ipv6)(frame + v->l3,
                                               v->treatment.dscp);
        parse_frame(frame, size, true, &after);
        must(!memcmp(&after, p, sizeof after));
    }
}

/* Checks that the flow is learned from the tag, if it is one. */
static void
check_learned(const struct classifier *c, const struct parsed *p, uint16_t tag)
{
    uint64_t hash = flow_cache_hash(flows, &p->key);
    uint16_t slot = 0;

    if (p->kind == PARSED_FLOW && slot_tag_learns(tag)) {
        flow_cache_lookup(flows, &hash, 1, &slot);
        must(slot == (tag & SLOT_TAG_SLOT));
    } else {
        must(!c->n_learned);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t tags[] = { 0, SLOT, SLOT | SLOT_TAG_CONTROL,
                                     SLOT | SLOT_TAG_NO_LEARN };
    static const struct prefix_list any = { .n = 1 };
    struct parsed out, in, inner;
    struct verdict v;
    uint8_t *frame;
    uint16_t tag;
    bool leased;

    if (!size) {
        return 0;
    }
    prepare();
    leased = *data & 2;
    tag = tags[*data++ >> 6];
    frame = copy_bytes(data, --size);
    parse_frame(frame, size, true, &out);
    parse_frame(frame, size, false, &in);
    inner = out;
    check_mirror(&out, &in);
    check_common(frame, size, &out);
    parse_inner(frame, true, &any, &inner);
    parse_inner(frame, false, &any, &in);
    check_mirror(&inner, &in);

    struct classifier c = { .flows = flows, .slots = slots };

    classify_to_host(&c, frame, size);
    classify_from_host(&c, frame, size, tag, leased, &v);
    check_verdict(&v, &out, tag, leased, frame, size);
    must(c.n_malformed == (out.kind == PARSED_MALFORMED));
    check_learned(&c, &out, tag);
    free(frame);
    return 0;
}
