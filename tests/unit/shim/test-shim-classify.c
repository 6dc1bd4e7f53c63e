/* SPDX-License-Identifier: Apache-2.0 */

/* Flow cache, slots, and the classifier that joins them. */

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/classify/classify.h"
#include "tests/unit/shim/classify-one.h"
#include "tests/unit/unit-test.h"
#include "wire/slot-tag.h"

#define MS UINT64_C(1000000)

static struct shim_flow_key
key_of(uint32_t i)
{
    struct shim_flow_key key = { .family = 4, .protocol = 6 };

    key.local_port = i;
    key.remote_port = i >> 16;
    memcpy(key.local, "\x0a\0\0\1", 4);
    memcpy(key.remote, "\x0a\0\0\2", 4);
    return key;
}

static uint64_t
hash_of(const struct flow_cache *fc, uint32_t i)
{
    struct shim_flow_key key = key_of(i);

    return flow_cache_hash(fc, &key);
}

/* Returns 0 for an unknown flow. */
static uint16_t
lookup(const struct flow_cache *fc, uint32_t i)
{
    uint64_t hash = hash_of(fc, i);
    uint16_t slot;

    flow_cache_lookup(fc, &hash, 1, &slot);
    return slot;
}

/* Learns flow 'i' unless the cache has it with this slot.  Returns true if it
 * had not. */
static bool
learn(struct flow_cache *fc, uint32_t i, uint16_t slot)
{
    static __thread uint32_t n_learned;
    uint64_t hash = hash_of(fc, i);
    bool new = flow_cache_unlearned(fc, &hash, &slot, 1);

    if (new) {
        flow_cache_learn(fc, hash, slot, n_learned++);
    }
    return new;
}

static uint16_t
slot_of(uint32_t i)
{
    return 1 + i % (SHIM_MAX_SLOTS - 1);
}

/* A flow of IPv6, with addresses that differ only at their ends. */
static struct shim_flow_key
key6_of(uint32_t i)
{
    struct shim_flow_key key = { .family = 6, .protocol = 17 };

    memset(key.local, 0xfd, 16);
    memset(key.remote, 0xfc, 16);
    memcpy(key.local + 12, &i, 4);
    key.local_port = key.remote_port = 9;
    return key;
}

UNIT_TEST(flows_are_found_with_their_slots)
{
    const uint32_t n = 4096;
    struct flow_cache *fc = flow_cache_create(42);

    for (uint32_t i = 0; i < n; i++) {
        struct shim_flow_key key = key6_of(i);
        uint64_t hash = flow_cache_hash(fc, &key);

        assert_int_equal(lookup(fc, i), 0);
        assert_true(learn(fc, i, slot_of(i)));
        assert_false(learn(fc, i, slot_of(i) | SLOT_TAG_CONTROL));
        flow_cache_learn(fc, hash, slot_of(i + 1), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct shim_flow_key key = key6_of(i);
        uint64_t hash = flow_cache_hash(fc, &key);
        uint16_t slot;

        assert_int_equal(lookup(fc, i), slot_of(i));
        assert_int_equal(lookup(fc, n + i), 0);
        flow_cache_lookup(fc, &hash, 1, &slot);
        assert_int_equal(slot, slot_of(i + 1));
    }
    assert_true(learn(fc, 5, 77));
    assert_int_equal(lookup(fc, 5), 77);
    assert_true(learn(fc, 5, 0));
    assert_int_equal(lookup(fc, 5), 0);
    flow_cache_destroy(fc);
}

/* Learns flows 'first' to 'end' - 1, whose addresses are 'stride' apart or
 * random if it is 0.  Returns the share of the last 'n' that the cache knows
 * then. */
static double
known_share(struct flow_cache *fc, uint64_t stride, uint32_t first,
            uint32_t end, uint32_t n)
{
    uint32_t n_known = 0;

    for (uint32_t i = first; i < end + n; i++) {
        uint32_t j = i < end ? i : i - n;
        uint64_t far = j * (stride ? stride : UINT64_C(0xd1342543de82ef95));
        struct shim_flow_key key = key_of(443);
        uint16_t slot = 1;
        uint64_t hash;

        far ^= stride ? 0 : far >> 29;
        memcpy(key.remote, &far, 4);
        memcpy(&key.remote_port, (uint8_t *) &far + 4, 2);
        hash = flow_cache_hash(fc, &key);
        if (i < end) {
            flow_cache_learn(fc, hash, slot, i);
        } else {
            n_known += !flow_cache_unlearned(fc, &hash, &slot, 1);
        }
    }
    return (double) n_known / n;
}

/* Of as many flows as the cache has buckets nearly all find a way in theirs,
 * and after three times as many more the last of them are there. */
UNIT_TEST(flows_of_any_pattern_use_all_buckets)
{
    static const uint64_t strides[] = {
        0, 1, 3, 256, 65536, 1 << 24, UINT64_C(1) << 32
    };
    const uint32_t n = FLOW_CACHE_BUCKETS;
    double least = 1, least_last = 1;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (size_t i = 0; i < N_ELEMENTS(strides); i++) {
            struct flow_cache *fc = flow_cache_create(seed);
            double first = known_share(fc, strides[i], 0, n, n);
            double last = known_share(fc, strides[i], n, 4 * n, n);

            least = first < least ? first : least;
            least_last = last < least_last ? last : least_last;
            flow_cache_destroy(fc);
        }
    }
    assert_true(least >= 0.98);
    assert_true(least_last >= 0.9);
}

/* Learns flows of one bucket, six from 'i' on, until all of them are there. */
static void
learn_bucket(struct flow_cache *fc, uint32_t i)
{
    uint64_t bucket = hash_of(fc, i) & FLOW_CACHE_OFFSET;
    uint32_t flows[6], n = 0, n_new = 1;

    for (; n < 6; i++) {
        flows[n] = i;
        n += (hash_of(fc, i) & FLOW_CACHE_OFFSET) == bucket;
    }
    for (int round = 0; n_new; round++) {
        assert_true(round < 100);
        n_new = 0;
        for (uint32_t k = 0; k < n; k++) {
            n_new += learn(fc, flows[k], 7);
        }
    }
}

/* Flows with packets displace those without, and then stay. */
UNIT_TEST(a_full_cache_forgets_others)
{
    const uint32_t n_words = FLOW_CACHE_BUCKETS * FLOW_CACHE_WAYS;

    for (int portable = 0; portable < 2; portable++) {
        struct flow_cache *fc = flow_cache_create(3);
        uint32_t n_found = 0;

        if (portable) {
            flow_cache_use_portable(fc);
        }
        for (uint32_t i = 0; i < 4 * n_words; i++) {
            assert_true(learn(fc, i, slot_of(i)));
            assert_false(learn(fc, i, slot_of(i)));
            assert_int_equal(lookup(fc, i), slot_of(i));
        }
        for (uint32_t i = 0; i < 4 * n_words; i++) {
            uint16_t slot = lookup(fc, i);

            assert_true(!slot || slot == slot_of(i));
            n_found += slot != 0;
        }
        assert_in_range(n_found, n_words - n_words / 1000, n_words);
        learn_bucket(fc, 4 * n_words);
        flow_cache_destroy(fc);
    }
}

/* If any job fills the cache, all flows of a job with few stay; traffic of no
 * job takes only what is free. */
UNIT_TEST(hogs_take_no_flows_of_others)
{
    struct flow_cache *fc = flow_cache_create(5);
    const uint32_t n_words = FLOW_CACHE_BUCKETS * FLOW_CACHE_WAYS, n = 3000;

    for (uint32_t i = 0; i < 2 * n_words; i++) { /* Of no job. */
        flow_cache_learn(fc, hash_of(fc, i), 0, i);
    }
    for (uint32_t i = 0; i < 3 * n_words; i++) {
        flow_cache_learn(fc, hash_of(fc, i), 1 + i % 2, i);
        if (!(i % 200) && i / 200 < n) {
            assert_true(learn(fc, 4 * n_words + i, 9));
        }
    }
    for (uint32_t i = 0; i < n_words; i++) {
        flow_cache_learn(fc, hash_of(fc, 7 * n_words + i), 0, i);
    }
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(lookup(fc, 4 * n_words + 200 * i), 9);
    }
    assert_int_equal(flow_cache_refused(fc, 9), 0);
    assert_true(flow_cache_refused(fc, 1) > n_words / 4);
    flow_cache_forget(fc, 9);
    assert_int_equal(lookup(fc, 4 * n_words), 0);
    flow_cache_destroy(fc);
}

/* Looks up 8192 flows, the first half present, in bulks of all sizes that
 * touch nothing beyond them. */
static void
check_bulks(const struct flow_cache *fc)
{
    uint32_t n = 0;

    for (uint32_t first = 0; first < 8192; first += n) {
        uint64_t hashes[FLOW_CACHE_MAX_BULK], new = 0;
        uint16_t slots[FLOW_CACHE_MAX_BULK + 1];

        n = n % FLOW_CACHE_MAX_BULK + 1;
        memset(slots, 0xff, sizeof slots);
        for (uint32_t i = 0; i < n; i++) {
            hashes[i] = hash_of(fc, first + i);
        }
        flow_cache_lookup(fc, hashes, n, slots);
        assert_int_equal(slots[n], UINT16_MAX);
        for (uint32_t i = 0; i < n; i++) {
            bool there = first + i < 4096;

            assert_int_equal(slots[i], there ? slot_of(first + i) : 0);
            slots[i] = slot_of(first + i) - (i % 3 == 0);
            new |= (uint64_t) (!there || i % 3 == 0) << i;
            slots[i] |= i % 5 ? 0 : SLOT_TAG_CONTROL;
        }
        assert_true(flow_cache_unlearned(fc, hashes, slots, n) == new);
    }
}

/* With what the processor can do, and without. */
UNIT_TEST(a_bulk_lookup_is_that_of_each)
{
    struct flow_cache *fc = flow_cache_create(9);

    for (uint32_t i = 0; i < 4096; i++) {
        learn(fc, i, slot_of(i));
    }
    check_bulks(fc);
    flow_cache_use_portable(fc);
    check_bulks(fc);
    flow_cache_destroy(fc);
}

struct learner {
    pthread_t thread;
    struct flow_cache *fc;
    uint32_t first; /* It learns every second flow from this one on. */
    const bool *stop;
};

enum { N_FLOWS = 600000 }; /* More than fit. */

static void *
run_learner(void *learner_)
{
    struct learner *l = learner_;

    for (uint32_t i = l->first; !__atomic_load_n(l->stop, __ATOMIC_RELAXED);
         i += 2) {
        learn(l->fc, i % N_FLOWS, slot_of(i % N_FLOWS));
    }
    return NULL;
}

UNIT_TEST(threads_learn_at_the_same_time)
{
    struct flow_cache *fc = flow_cache_create(3);
    struct learner learners[2];
    int n_found = 0;
    bool stop = false;

    for (int i = 0; i < 2; i++) {
        learners[i].fc = fc;
        learners[i].first = i;
        learners[i].stop = &stop;
        pthread_create(&learners[i].thread, NULL, run_learner, &learners[i]);
    }
    for (uint32_t i = 0; n_found < 300000; i++) {
        uint16_t slot = lookup(fc, i % N_FLOWS);

        assert_true(!slot || slot == slot_of(i % N_FLOWS));
        n_found += slot != 0;
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        pthread_join(learners[i].thread, NULL);
    }
    flow_cache_destroy(fc);
}

UNIT_TEST(slots_hold_for_the_lease)
{
    struct shim_slot row = { .slot = 9, .level = 2, .dscp = 40 };
    struct job_slots *js = job_slots_create();
    uint64_t now = 1000 * MS;
    struct treatment t;

    assert_int_equal(job_slots_set(js, &row), 0);
    assert_false(job_slots_leased(js, now));
    job_slots_lease(js, now, 300, 3);
    assert_true(job_slots_leased(js, now + 299 * MS));
    t = job_slots_treatment(js, 9, true);
    assert_int_equal(t.level, 2);
    assert_int_equal(t.dscp, 40);
    assert_false(t.is_default);

    assert_false(job_slots_leased(js, now + 300 * MS));
    t = job_slots_treatment(js, 9, false);
    assert_int_equal(t.level, SHIM_LEVEL_DEFAULT);
    assert_int_equal(t.dscp, 3);
    assert_true(t.is_default);
    t = job_slots_treatment(js, 10, true);      /* Not in use. */
    assert_int_equal(t.level, SHIM_LEVEL_DEFAULT);
    job_slots_destroy(js);
}

UNIT_TEST(bad_slots_are_refused)
{
    static const struct shim_slot bad[] = {
        { .slot = 0 }, { .slot = SHIM_MAX_SLOTS },
        { .slot = 1, .level = SHIM_N_LEVELS }, { .slot = 1, .dscp = 64 },
    };
    struct job_slots *js = job_slots_create();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(job_slots_set(js, &bad[i]), EINVAL);
    }
    assert_int_equal(job_slots_clear(js, SHIM_MAX_SLOTS), EINVAL);
    assert_int_equal(job_slots_count(js), 0);
    job_slots_destroy(js);
}

UNIT_TEST(a_new_job_counts_from_0)
{
    struct shim_slot row = { .slot = 9, .level = 2, .dscp = 40 };
    struct job_slots *js = job_slots_create();
    struct shim_slot_stats stats;

    assert_false(job_slots_stats(js, 9, 0, &stats));
    job_slots_set(js, &row);
    job_slots_counters(js, 9)->tx_bytes += 500;
    row.level = 3;
    job_slots_set(js, &row);                    /* Same job, other level. */
    assert_true(job_slots_stats(js, 9, 0, &stats));
    assert_int_equal(stats.tx_bytes, 500);
    job_slots_clear(js, 9);
    assert_int_equal(job_slots_count(js), 0);
    job_slots_set(js, &row);
    assert_true(job_slots_stats(js, 9, 0, &stats));
    assert_int_equal(stats.tx_bytes, 0);
    job_slots_destroy(js);
}

UNIT_TEST(received_frames_are_counted)
{
    static const uint16_t slots[] = { 3, 3, 4, 3, 4, 4, 4 };
    static const uint32_t lengths[] = { 1, 2, 10, 4, 20, 40, 80 };
    struct job_slots *js = job_slots_create();

    job_slots_count_rx(js, slots, lengths, 7);
    job_slots_count_rx(js, slots, lengths, 1);
    job_slots_count_rx(js, slots, lengths, 0);
    assert_int_equal(job_slots_counters(js, 3)->rx_packets, 4);
    assert_int_equal(job_slots_counters(js, 3)->rx_bytes, 8);
    assert_int_equal(job_slots_counters(js, 4)->rx_packets, 4);
    assert_int_equal(job_slots_counters(js, 4)->rx_bytes, 150);
    job_slots_destroy(js);
}

/* TCP from 10.0.0.1:258 to 10.0.0.2:772. */
static const uint8_t tcp_frame[] =
    "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0"
    "\x45\xb8\0\x28\0\0\x40\0\x40\6\0\0\x0a\0\0\1\x0a\0\0\2"
    "\1\2\3\4\0\0\0\0\0\0\0\0\x50\x10\0\0\0\0\0\0";

/* UDP over IPv6 from port 9 to 9, and what is no flow. */
static const uint8_t udp6_frame[62] =
    "\2\0\0\0\0\2\2\0\0\0\0\1\x86\xdd\x60\0\0\0\0\x08\x11\x40"
    "\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\7\0\0\0"
    "\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc\xfc"
    "\0\x09\0\x09\0\x08\0";
static const uint8_t arp_frame[42] = "\2\0\0\0\0\2\2\0\0\0\0\1\x08\6";

UNIT_TEST(a_slot_tag_has_slot_class_and_origin)
{
    assert_int_equal(slot_tag_class(0), 0);
    assert_int_equal(slot_tag_class(0xe000 | 9), 9);
    assert_int_equal(slot_tag_class(1023), 1023);
    assert_int_equal(slot_tag_class(1024 | 9), SLOT_TAG_CONTROL | 9);
    assert_int_equal(slot_tag_class(2048 | 9), 9);
    assert_true(slot_tag_learns(0xf000 | 1024 | 9));
    assert_false(slot_tag_learns(2048 | 9));
}

/* A job with a level, or one without a control class; slot 7 is not in use.
 * The DSCP of the TCP packet does not make it control. */
UNIT_TEST(a_slot_tag_decides_slot_and_class)
{
    static const struct {
        uint16_t tag;
        bool leased;
        uint8_t level; /* Of the job. */
        uint16_t slot; /* Expected, with level and DSCP. */
        uint8_t becomes, dscp;
    } cases[] = {
        { 9, true, 2, 9, 2, 24 },
        { 0xe000 | 2048 | 9, true, 2, 9, 2, 24 },
        { 1024 | 9, true, 2, 9, SHIM_LEVEL_CONTROL, 46 },
        { 1024 | 9, true, SHIM_LEVEL_DEFAULT, 9, SHIM_LEVEL_DEFAULT, 24 },
        { 1024 | 9, false, 2, 9, SHIM_LEVEL_DEFAULT, 0 },
        { 0, true, 2, 0, SHIM_LEVEL_DEFAULT, 0 },
        { 1024 | 7, true, 2, 7, SHIM_LEVEL_DEFAULT, 0 },
    };
    struct classifier c = { .flows = flow_cache_create(1),
                            .slots = job_slots_create() };
    struct job_slots *js = (struct job_slots *) c.slots;

    job_slots_set_control(js, 46, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shim_slot row = { .slot = 9,
                                 .level = cases[i].level,
                                 .dscp = 24 };
        struct verdict v[2];

        job_slots_set(js, &row);
        classify_from_host(&c, tcp_frame, 54, cases[i].tag, cases[i].leased,
                           &v[0]);
        classify_from_host(&c, udp6_frame, 62, cases[i].tag, cases[i].leased,
                           &v[1]);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(v[k].slot, cases[i].slot);
            assert_int_equal(v[k].treatment.level, cases[i].becomes);
            assert_int_equal(v[k].treatment.dscp, cases[i].dscp);
            assert_int_equal(v[k].treatment.is_default,
                             cases[i].slot != 9 || !cases[i].leased);
        }
    }
    job_slots_destroy(js);
    flow_cache_destroy(c.flows);
}

/* The reply of a frame, which differs in its ends only. */
static void
make_reply(const uint8_t *frame, uint32_t length, uint8_t *reply)
{
    bool v6 = frame[12] == 0x86;
    uint32_t at = v6 ? 22 : 26, size = v6 ? 16 : 4, ports = at + 2 * size;

    memcpy(reply, frame, length);
    memcpy(reply + at, frame + at + size, size);
    memcpy(reply + at + size, frame + at, size);
    memcpy(reply + ports, frame + ports + 2, 2);
    memcpy(reply + ports + 2, frame + ports, 2);
}

UNIT_TEST(the_slots_of_replies_are_learned)
{
    static const struct {
        const uint8_t *frame;
        uint32_t length;
    } kinds[] = { { tcp_frame, 54 }, { udp6_frame, 62 } };
    struct classifier c = { .flows = flow_cache_create(1),
                            .slots = job_slots_create() };
    struct verdict v;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const uint8_t *frame = kinds[i].frame;
        uint32_t length = kinds[i].length;
        uint8_t reply[64];

        make_reply(frame, length, reply);
        classify_from_host(&c, frame, length, SLOT_TAG_NO_LEARN | 9, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 0);
        classify_from_host(&c, frame, length, SLOT_TAG_CONTROL | 9, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 9);
        classify_from_host(&c, frame, length, SLOT_TAG_NO_LEARN | 4, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 9);
        classify_from_host(&c, frame, length, 4, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 4);
        classify_from_host(&c, frame, length, 0, true, &v);
        assert_int_equal(classify_to_host(&c, reply, length), 0);
    }
    classify_from_host(&c, arp_frame, sizeof arp_frame, 9, true, &v);
    assert_int_equal(v.slot, 9);
    assert_int_equal(classify_to_host(&c, arp_frame, sizeof arp_frame), 0);
    assert_int_equal(c.n_learned, 6);
    job_slots_destroy((struct job_slots *) c.slots);
    flow_cache_destroy(c.flows);
}

/* Returns a tag of slot 0 to 6; the last slot is not in use. */
static uint16_t
random_tag(void)
{
    return (random() % 7 | (random() % 4 ? 0 : SLOT_TAG_CONTROL)
            | (random() % 4 ? 0 : SLOT_TAG_NO_LEARN));
}

/* Frames of four flows and of no flow.  In odd rounds a flow has one tag, and
 * in the others nothing is learned. */
UNIT_TEST(a_burst_equals_its_packets)
{
    struct job_slots *js = job_slots_create();
    struct classifier one = { .flows = flow_cache_create(1), .slots = js };
    struct classifier all = one;
    uint8_t tcp[3][54], replies[6][64];
    const struct packet kinds[] = {
        { tcp[0], 54 },
        { tcp[1], 54 },
        { tcp[2], 54 },
        { (uint8_t *) udp6_frame, 62 },
        { (uint8_t *) arp_frame, 42 },
        { tcp[0], 40 },
    };

    all.flows = flow_cache_create(2);
    for (uint16_t i = 1; i < 6; i++) {
        struct shim_slot row = { .slot = i, .level = i, .dscp = 10 + i };

        job_slots_set(js, &row);
    }
    for (int i = 0; i < 3; i++) {
        memcpy(tcp[i], tcp_frame, 54);
        tcp[i][35] = i;
        tcp[i][15] = i == 2 ? SHIM_CONTROL_DSCP << 2 : 0;
    }
    for (int i = 0; i < 6; i++) {
        make_reply(kinds[i].data, kinds[i].length, replies[i]);
    }
    srandom(8);
    for (int round = 0; round < 4000; round++) {
        uint32_t n = 1 + random() % CLASSIFY_BURST;
        int first = random() % 6, n_kinds = 1 + random() % 6;
        struct packet packets[CLASSIFY_BURST];
        struct verdict v[CLASSIFY_BURST], expected;
        uint16_t slots[CLASSIFY_BURST], kind_tags[6], tags[CLASSIFY_BURST];
        int which[CLASSIFY_BURST];

        for (int i = 0; i < 6; i++) {
            kind_tags[i] = random() % 2 && i ? kind_tags[0] : random_tag();
        }
        for (uint32_t i = 0; i < n; i++) {
            which[i] = (first + random() % n_kinds) % 6;
            packets[i] = kinds[which[i]];
            tags[i] = round % 2 ? kind_tags[which[i]]
                                : random_tag() | SLOT_TAG_NO_LEARN;
        }
        classify_burst_from_host(&all, packets, tags, n, round % 3, v);
        for (uint32_t i = 0; i < n; i++) {
            const struct packet *p = &packets[i];

            classify_from_host(&one, p->data, p->length, tags[i], round % 3,
                               &expected);
            assert_memory_equal(&v[i], &expected, sizeof expected);
            assert_true((v[i].family == 0) == (which[i] > 3));
        }
        for (uint32_t i = 0; i < n; i++) {
            packets[i].data = replies[which[i]];
        }
        classify_burst_to_host(&all, packets, n, slots);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(slots[i], classify_to_host(&one, packets[i].data,
                                                        packets[i].length));
        }
        assert_int_equal(all.n_malformed, one.n_malformed);
    }
    assert_true(one.n_malformed > 0 && one.n_learned > 100);
    job_slots_destroy(js);
    flow_cache_destroy(one.flows);
    flow_cache_destroy(all.flows);
}
