/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/classify.h"

#include <string.h>

#include "shim/clock/counter.h"
#include "wire/slot-tag.h"

/* A burst between the stages. */
struct burst {
    struct flow_id ids[CLASSIFY_BURST];
    uint16_t slots[CLASSIFY_BURST];     /* With SLOT_TAG_CONTROL; 0: none. */
    bool same;                          /* 'slots[0]' is the slot of all
                                         * frames, which are common. */
    uint64_t uncommon;                  /* Bit N: the members below are set for
                                         * frame N. */
    uint8_t kinds[CLASSIFY_BURST];      /* enum parsed_kind. */
    uint8_t families[CLASSIFY_BURST];   /* As in struct verdict. */
    uint16_t l3[CLASSIFY_BURST];        /* As in struct verdict. */
};

_Static_assert(CLASSIFY_BURST <= 64, "a bit for each frame");
_Static_assert(CLASSIFY_BURST <= FLOW_CACHE_MAX_BULK, "one lookup a burst");

/* Parses a frame that parse_common() rejected.  A packet without a flow key
 * gets the null flow id, so that one bulk lookup covers the burst; its lookup
 * result is ignored. */
static void __attribute__((noinline))
identify_uncommon(struct classifier *c, const struct packet *packet,
                  uint32_t i, bool from_host, struct burst *b)
{
    struct parsed p;

    parse_frame(packet->data, packet->length, from_host, &p);
    if (c->tunnels) {
        parse_inner(packet->data, from_host, c->tunnels, &p);
    }
    b->uncommon |= UINT64_C(1) << i;
    b->kinds[i] = p.kind;
    b->ids[i] = (p.kind == PARSED_FLOW ? flow_cache_id(c->flows, &p.key)
                                       : flow_id_init(0, 0, 0));
    b->l3[i] = p.l3;
    b->families[i] = p.kind == PARSED_MALFORMED ? 0 : p.family;
}

/* Stores the flow ids of all packets.  'tunnels' is a constant: without it the
 * test for UDP is compiled out; IP in IP is not common. */
static inline __attribute__((always_inline)) void
identify_all(struct classifier *c, const struct packet *packets, uint32_t n,
             bool from_host, bool tunnels, struct burst *b)
{
    const struct packet *end = packets + n;
    struct flow_id *id = b->ids;

    b->uncommon = 0;
    for (const struct packet *p = packets; p < end; p++, id++) {
        if (!parse_common(p->data, p->length, from_host, id)
            || (tunnels && (id->rest & 0xff) == 17)) {
            identify_uncommon(c, p, p - packets, from_host, b);
        }
    }
}

static inline void
identify_burst(struct classifier *c, const struct packet *packets, uint32_t n,
               bool from_host, struct burst *b)
{
    if (c->tunnels) {
        identify_all(c, packets, n, from_host, true, b);
    } else {
        identify_all(c, packets, n, from_host, false, b);
    }
}

/* A flow id as the processor compares it at once. */
typedef uint64_t id_vector
    __attribute__((vector_size(sizeof(struct flow_id)), may_alias));

/* Bursts of several flows usually differ in the second packet already. */
static inline bool
are_all_equal(const struct flow_id *ids, uint32_t n)
{
    const id_vector *v = (const id_vector *) ids, *end = v + n;
    id_vector first = *v, differs = *(v + (n > 1)) ^ first;

    if (differs[0] | differs[1]) {
        return false;
    }
    for (; end - v >= 4; v += 4) {
        differs |= ((v[0] ^ first) | (v[1] ^ first))
                   | ((v[2] ^ first) | (v[3] ^ first));
    }
    for (; v < end; v++) {
        differs |= *v ^ first;
    }
    return !(differs[0] | differs[1]);
}

/* Hashes all ids and prefetches their buckets.  Not inline: in its caller, gcc
 * would keep the loop's counter in memory. */
static void __attribute__((noinline))
hash_all(const struct flow_cache *flows, const struct flow_id *ids, uint32_t n,
         uint64_t *hashes)
{
    const struct flow_hasher hasher = flow_cache_hasher(flows);

    for (uint32_t i = 0; i < n; i++) {
        hashes[i] = flow_hash(&hasher, &ids[i]);
        flow_prefetch(&hasher, hashes[i]);
    }
}

static void __attribute__((noinline))
treat_uncommon(const struct burst *b, struct verdict *v)
{
    for (uint64_t rest = b->uncommon; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        v[i].l3 = b->l3[i];
        v[i].family = b->families[i];
        v[i].is_ip = b->families[i] != 0;
        if (b->kinds[i] == PARSED_OTHER || b->kinds[i] == PARSED_NEIGHBOUR) {
            v[i].treatment.level = SHIM_LEVEL_CONTROL;
        }
    }
}

static void __attribute__((noinline))
count_malformed(struct classifier *c, const struct burst *b)
{
    for (uint64_t rest = b->uncommon; rest; rest &= rest - 1) {
        counter_add(&c->n_malformed,
                    b->kinds[__builtin_ctzll(rest)] == PARSED_MALFORMED);
    }
}

static inline struct verdict
common_verdict(uint16_t slot, struct treatment treatment)
{
    return (struct verdict) {
        .slot = slot, .l3 = PARSE_COMMON_L3, .family = 4, .is_ip = true,
        .treatment = treatment,
    };
}

/* A burst of one tag: what the first packet gets, all get. */
static void
treat_same(struct classifier *c, const struct burst *b, uint32_t n,
           bool leased, struct verdict *v)
{
    v[0] = common_verdict(b->slots[0] & ~SLOT_TAG_CONTROL,
                          job_slots_treatment(c->slots, b->slots[0], leased));
    for (uint32_t i = 1; i < n; i++) {
        v[i] = v[0];
    }
}

/* The first members of all verdicts are the same word, stored at once: a store
 * for each member would take as long as a lookup. */
static inline void
fill_verdicts(const uint16_t *slots, const struct job_treatments *treatments,
              uint32_t n, struct verdict *v)
{
    const struct verdict common = common_verdict(0, (struct treatment) { 0 });
    uint64_t word;

    memcpy(&word, &common, sizeof word);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&v[i], &word, sizeof word);
        v[i].slot = slots[i] & ~SLOT_TAG_CONTROL;
        v[i].treatment = job_treatment(treatments, slots[i]);
    }
}

_Static_assert(offsetof(struct verdict, treatment) == sizeof(uint64_t),
               "the members before it are one word");

static inline void
treat_burst(struct classifier *c, const struct burst *b, uint32_t n,
            bool leased, struct verdict *v)
{
    struct job_treatments treatments = job_slots_treatments(c->slots, leased);

    if (b->same) {
        treat_same(c, b, n, leased, v);
        return;
    }
    fill_verdicts(b->slots, &treatments, n, v);
    if (__builtin_expect(b->uncommon, 0)) {
        treat_uncommon(b, v);
    }
}

/* Returns a bit for each packet that has a flow. */
static uint64_t __attribute__((noinline)) find_flows(const struct burst *b)
{
    uint64_t found = UINT64_MAX;

    for (uint64_t rest = b->uncommon; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        found ^= (uint64_t) (b->kinds[i] != PARSED_FLOW) << i;
    }
    return found;
}

/* Stores the slots of packets to the host, 0 for unknown flows. */
void
classify_burst_to_host(struct classifier *c, const struct packet *packets,
                       uint32_t n, uint16_t *slots)
{
    uint64_t hashes[CLASSIFY_BURST];
    uint32_t n_flows;
    struct burst b;

    identify_burst(c, packets, n, false, &b);
    /* A burst of one flow needs one lookup. */
    n_flows = !b.uncommon && are_all_equal(b.ids, n) ? 1 : n;
    hash_all(c->flows, b.ids, n_flows, hashes);
    flow_cache_lookup(c->flows, hashes, n_flows, slots);
    for (uint32_t i = n_flows; i < n; i++) {
        slots[i] = slots[0];
    }
    if (__builtin_expect(b.uncommon, 0)) {
        uint64_t flows = find_flows(&b);

        for (uint32_t i = 0; i < n; i++) {
            slots[i] = flows >> i & 1 ? slots[i] : 0;
        }
    }
}

/* Stores the slots of 'tags', and whether all are the same.  Returns true if
 * all flows are to be learned. */
static inline bool
read_tags(const uint16_t *tags, uint32_t n, struct burst *b)
{
    uint16_t all = UINT16_MAX, any = 0;

    for (uint32_t i = 0; i < n; i++) {
        b->slots[i] = slot_tag_class(tags[i]);
        all &= tags[i];
        any |= tags[i];
    }
    b->same = !slot_tag_class(any ^ all) && !b->uncommon;
    return slot_tag_learns(any) && !b->uncommon;
}

/* Returns a bit for each packet of a flow that is to be learned. */
static uint64_t __attribute__((noinline))
find_learnable(const uint16_t *tags, uint32_t n, const struct burst *b)
{
    uint64_t found = find_flows(b);

    for (uint32_t i = 0; i < n; i++) {
        found &= ~((uint64_t) !slot_tag_learns(tags[i]) << i);
    }
    return found;
}

/* Learns the slots of flows from the tags of their packets. */
static inline void
learn_flows(struct classifier *c, const uint16_t *tags, uint32_t n,
            struct burst *b)
{
    uint64_t hashes[CLASSIFY_BURST], new;
    bool all = read_tags(tags, n, b);
    uint32_t n_flows = b->same && are_all_equal(b->ids, n) ? 1 : n;

    hash_all(c->flows, b->ids, n_flows, hashes);
    new = flow_cache_unlearned(c->flows, hashes, b->slots, n_flows);
    new &= all ? UINT64_MAX : find_learnable(tags, n, b);
    for (; __builtin_expect(new != 0, 0); new &= new - 1) {
        uint32_t i = __builtin_ctzll(new);

        flow_cache_learn(c->flows, hashes[i], b->slots[i], c->n_learned++);
    }
}

void
classify_burst_from_host(struct classifier *c, const struct packet *packets,
                         const uint16_t *tags, uint32_t n, bool leased,
                         struct verdict *v)
{
    struct burst b;

    identify_burst(c, packets, n, true, &b);
    learn_flows(c, tags, n, &b);
    if (__builtin_expect(b.uncommon, 0)) {
        count_malformed(c, &b);
    }
    treat_burst(c, &b, n, leased, v);
}
