/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/classify.h"

#include <string.h>

#include "shim/clock/counter.h"
#include "wire/slot-tag.h"

/* A burst between the stages. */
struct burst {
    struct flow_id ids[CLASSIFY_BURST];
    uint16_t slots[CLASSIFY_BURST];     /* With FLOW_CONTROL; 0: none. */
    uint64_t unknown;                   /* Bit N: frame N's flow is unknown. */
    bool same;                          /* 'slots[0]' is the slot of all
                                         * frames, which are common. */
    bool marked;                        /* A packet from the host may have the
                                         * control DSCP. */
    uint64_t uncommon;                  /* Bit N: the members below are set for
                                         * frame N. */
    uint8_t kinds[CLASSIFY_BURST];      /* enum parsed_kind. */
    uint8_t families[CLASSIFY_BURST];   /* As in struct verdict. */
    uint16_t l3[CLASSIFY_BURST];        /* As in struct verdict. */
};

_Static_assert(CLASSIFY_BURST <= 64, "a bit for each frame");
_Static_assert(CLASSIFY_BURST <= FLOW_TABLE_MAX_BULK, "one lookup a burst");
_Static_assert(SLOT_TAG_SLOT == SHIM_MAX_SLOTS - 1, "slots of tags");
_Static_assert(SLOT_TAG_CONTROL == FLOW_CONTROL, "the same bit");

static void
parse_uncommon(const struct classifier *c, const struct packet *packet,
               bool from_host, struct parsed *p)
{
    parse_frame(packet->data, packet->length, from_host, p);
    if (c->tunnels) {
        parse_inner(packet->data, from_host, c->tunnels, p);
    }
}

/* Parses a frame that parse_common() rejected.  A packet without a flow key
 * gets the null flow id, so that one bulk lookup covers the burst; its lookup
 * result is ignored. */
static void __attribute__((noinline))
identify_uncommon(struct classifier *c, const struct packet *packet,
                  uint32_t i, bool from_host, struct burst *b)
{
    struct parsed p;

    parse_uncommon(c, packet, from_host, &p);
    b->uncommon |= UINT64_C(1) << i;
    b->kinds[i] = p.kind;
    b->ids[i] = (p.kind == PARSED_FLOW ? flow_table_id(c->flows, &p.key)
                 : flow_id_init(0, 0, 0));
    b->l3[i] = p.l3;
    b->families[i] = p.kind == PARSED_MALFORMED ? 0 : p.family;
}

/* Stores the flow ids of all packets, and whether one may be marked: the sum
 * is negative if the first six bits are those of the control DSCP.  'vxlan' is
 * a constant: without it the test for tunnels is compiled out. */
static inline __attribute__((always_inline)) void
identify_all(struct classifier *c, const struct packet *packets, uint32_t n,
             bool from_host, bool vxlan, struct burst *b)
{
    const int32_t tos = job_slots_control_dscp(c->slots) << 2;
    const struct packet *end = packets + n;
    struct flow_id *id = b->ids;
    int32_t marked = 0;

    b->uncommon = 0;
    for (const struct packet *p = packets; p < end; p++, id++) {
        if (!parse_common(p->data, p->length, from_host, id)
            || (vxlan && (id->rest & 0xff) == 17)) {
            identify_uncommon(c, p, p - packets, from_host, b);
        } else if (from_host) {
            marked |= (p->data[PARSE_COMMON_L3 + 1] ^ tos) - 4;
        }
    }
    b->marked = from_host && (marked < 0 || b->uncommon);
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
hash_all(const struct flow_table *flows, const struct flow_id *ids,
         uint32_t n, uint64_t *hashes)
{
    const struct flow_hasher hasher = flow_table_hasher(flows);

    for (uint32_t i = 0; i < n; i++) {
        hashes[i] = flow_hash(&hasher, &ids[i]);
        flow_prefetch(&hasher, hashes[i]);
    }
}

/* Clears the lookup results of frames without a flow. */
static void __attribute__((noinline)) correct_slots(struct burst *b)
{
    for (uint64_t rest = b->uncommon; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);

        if (b->kinds[i] != PARSED_FLOW) {
            b->slots[i] = 0;
            b->unknown &= ~(UINT64_C(1) << i);
        }
    }
}

static inline void
lookup_flows(struct classifier *c, const struct packet *packets, uint32_t n,
             bool from_host, struct burst *b)
{
    uint64_t hashes[CLASSIFY_BURST];
    uint32_t n_lookups;

    identify_burst(c, packets, n, from_host, b);
    /* A burst of one flow needs one lookup. */
    b->same = !b->uncommon && are_all_equal(b->ids, n);
    n_lookups = b->same ? 1 : n;
    hash_all(c->flows, b->ids, n_lookups, hashes);
    b->unknown = flow_table_lookup_bulk(c->flows, hashes, n_lookups, b->slots);
    if (__builtin_expect(b->uncommon, 0)) {
        correct_slots(b);
    }
}

static void __attribute__((noinline))
report_miss(struct classifier *c, const struct packet *packet, uint64_t now)
{
    struct parsed p;

    parse_uncommon(c, packet, true, &p);
    counter_add(&c->n_misses, 1);
    miss_report(c->misses, &p.key, flow_table_hash(c->flows, &p.key), now);
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

static void
report_unknown(struct classifier *c, const struct packet *packets,
               uint64_t unknown, uint64_t now)
{
    for (uint64_t rest = unknown; rest; rest &= rest - 1) {
        report_miss(c, &packets[__builtin_ctzll(rest)], now);
    }
    if (__builtin_expect(unknown, 0)) {
        miss_notify(c->misses);
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

/* A burst of one flow or one tag: what the first packet gets, all get. */
static void
treat_same(struct classifier *c, const struct burst *b, uint32_t n,
           bool leased, struct verdict *v)
{
    v[0] = common_verdict(b->slots[0] & ~FLOW_CONTROL,
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
        v[i].slot = slots[i] & ~FLOW_CONTROL;
        v[i].treatment = job_treatment(treatments, slots[i]);
    }
}

_Static_assert(offsetof(struct verdict, treatment) == sizeof(uint64_t),
               "the members before it are one word");

static uint8_t
dscp_of(const struct packet *packet, const struct verdict *v)
{
    const uint8_t *ip = packet->data + v->l3;

    return v->family == 4 ? ip[1] >> 2 : (ip[0] & 0xf) << 2 | ip[1] >> 6;
}

/* Treats those packets as control that have the control DSCP and belong to a
 * job. */
static void __attribute__((noinline))
treat_marked(struct classifier *c, const struct packet *packets, uint32_t n,
             uint8_t dscp, bool leased, struct verdict *v)
{
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].slot && v[i].family && dscp_of(&packets[i], &v[i]) == dscp) {
            v[i].treatment = job_slots_treatment(
                c->slots, v[i].slot | FLOW_CONTROL, leased);
        }
    }
}

/* The treatment of a burst after the lookup, without misses. */
static inline void
treat_burst(struct classifier *c, const struct burst *b,
            const struct packet *packets, uint32_t n, bool leased,
            struct verdict *v)
{
    struct job_treatments treatments = job_slots_treatments(c->slots, leased);
    uint8_t dscp = job_slots_control_dscp(c->slots);

    if (b->same) {
        treat_same(c, b, n, leased, v);
    } else {
        fill_verdicts(b->slots, &treatments, n, v);
        if (__builtin_expect(b->uncommon, 0)) {
            treat_uncommon(b, v);
        }
    }
    if (__builtin_expect(b->marked, 0)) {
        treat_marked(c, packets, n, dscp, leased, v);
    }
}

void
classify_burst_from_host(struct classifier *c, const struct packet *packets,
                         uint32_t n, uint64_t now, bool leased,
                         struct verdict *v)
{
    struct burst b;

    lookup_flows(c, packets, n, true, &b);
    report_unknown(c, packets, b.same && b.unknown ? UINT64_MAX >> (64 - n)
                   : b.unknown, now);
    if (__builtin_expect(b.uncommon, 0)) {
        count_malformed(c, &b);
    }
    treat_burst(c, &b, packets, n, leased, v);
}

/* Stores the slots of packets to the host, 0 for unknown flows.  These are not
 * reported: the host's reply will be a miss. */
void
classify_burst_to_host(struct classifier *c, const struct packet *packets,
                       uint32_t n, uint16_t *slots)
{
    struct burst b;

    lookup_flows(c, packets, n, false, &b);
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = b.slots[b.same ? 0 : i] & ~FLOW_CONTROL;
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

/* Returns a bit for each packet whose flow is to be learned. */
static uint64_t __attribute__((noinline))
find_learnable(const uint16_t *tags, uint32_t n, const struct burst *b)
{
    uint64_t found = 0;

    for (uint32_t i = 0; i < n; i++) {
        bool flow = !(b->uncommon >> i & 1) || b->kinds[i] == PARSED_FLOW;

        found |= (uint64_t) (flow && slot_tag_learns(tags[i])) << i;
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
    new = flow_table_unlearned(c->flows, hashes, b->slots, n_flows);
    new &= all ? UINT64_MAX : find_learnable(tags, n, b);
    for (; __builtin_expect(new != 0, 0); new &= new - 1) {
        uint32_t i = __builtin_ctzll(new);

        flow_table_learn(c->flows, hashes[i], b->slots[i], c->n_learned++);
    }
}

void
classify_burst_by_tags(struct classifier *c, const struct packet *packets,
                       const uint16_t *tags, uint32_t n, bool leased,
                       struct verdict *v)
{
    struct burst b;

    identify_burst(c, packets, n, true, &b);
    b.marked = false;
    learn_flows(c, tags, n, &b);
    if (__builtin_expect(b.uncommon, 0)) {
        count_malformed(c, &b);
    }
    treat_burst(c, &b, packets, n, leased, v);
}

void
classify_burst_again(struct classifier *c, const struct packet *packets,
                     uint32_t n, bool leased, struct verdict *v)
{
    struct burst b;

    lookup_flows(c, packets, n, true, &b);
    treat_burst(c, &b, packets, n, leased, v);
}
