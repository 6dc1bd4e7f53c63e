/* SPDX-License-Identifier: Apache-2.0 */

/* Packets that mean harm: none is read beyond its end, none takes the place of
 * a job's flow, none leaves with a checksum that the shim made wrong. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/classify/classify.h"
#include "shim/classify/tag.h"
#include "tests/unit/shim/classify-one.h"
#include "tests/unit/unit-test.h"

#define SLOT 5

static struct flow_cache *flows;
static struct job_slots *slots;
static struct classifier classifier;

static int
set_up(void **state)
{
    const struct shim_slot row = { .slot = SLOT, .level = 2, .dscp = 40,
                                   .name = "a/b" };

    flows = flow_cache_create(1);
    slots = job_slots_create();
    classifier = (struct classifier){ .flows = flows, .slots = slots };
    return job_slots_set(slots, &row);
}

static int
tear_down(void **state)
{
    job_slots_destroy(slots);
    flow_cache_destroy(flows);
    return 0;
}

static uint16_t
checksum(const uint8_t *ip)
{
    uint32_t sum = 0;

    for (int i = 0; i < (ip[0] & 0xf) * 4; i += 2) {
        sum += ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* Makes a frame with an IPv4 header of 'words' words, 'protocol', the fragment
 * field 'fragment' and 'payload' bytes, with the ports 'flow'.  Returns its
 * size. */
static size_t
make(uint8_t *frame, int words, uint8_t protocol, uint16_t fragment,
     size_t payload, uint32_t flow)
{
    uint8_t *ip = frame + 14;
    size_t total = words * 4 + payload;
    uint16_t sum;

    memset(frame, 0, 14 + total);
    frame[12] = 8;
    ip[0] = 0x40 | words;
    ip[2] = total >> 8;
    ip[3] = total;
    ip[6] = fragment >> 8;
    ip[7] = fragment;
    ip[8] = 64;
    ip[9] = protocol;
    ip[12] = 10;
    ip[16] = 11;
    memset(ip + 20, 1, words * 4 - 20);         /* Options that do nothing. */
    sum = ~checksum(ip);
    ip[10] = sum >> 8;
    ip[11] = sum;
    if (payload >= 4) {
        memcpy(ip + words * 4, &flow, sizeof flow);
    }
    return 14 + total;
}

/* Classifies 'frame' in memory that ends where it does, tags it as the loop
 * would, and checks what must hold of any. */
static struct verdict
pass(const uint8_t *frame, size_t size, uint16_t tag)
{
    uint8_t *copy = malloc(size ? size : 1);
    struct verdict v;

    assert_non_null(copy);
    memcpy(copy, frame, size);
    classify_from_host(&classifier, copy, size, tag, true, &v);
    classify_to_host(&classifier, copy, size);
    assert_true(v.treatment.level < SHIM_N_LEVELS && v.treatment.dscp <= 63);
    if (v.family == 4) {
        bool was_right = checksum(copy + v.l3) == 0xffff;

        tag_ipv4(copy + v.l3, v.treatment.dscp);
        assert_int_equal(checksum(copy + v.l3) == 0xffff, was_right);
        assert_int_equal(copy[v.l3 + 1] >> 2, v.treatment.dscp);
    } else if (v.family == 6) {
        tag_ipv6(copy + v.l3, v.treatment.dscp);
    }
    free(copy);
    return v;
}

/* Returns the slot of what the host receives of 'flow'. */
static uint16_t
slot_of_reply(uint32_t flow)
{
    uint8_t frame[64];
    size_t size = make(frame, 5, 6, 0, 20, flow << 16 | flow >> 16);

    frame[26] = 11; /* Source and destination. */
    frame[30] = 10;
    return classify_to_host(&classifier, frame, size);
}

/* A million flows of no job, and of no address of the host. */
FIXTURE_TEST(new_flows_that_are_not_learned_push_no_job_out)
{
    enum { N = 1000000, KNOWN = 1000 };
    uint8_t frame[64];

    for (uint32_t i = 0; i < KNOWN; i++) {
        pass(frame, make(frame, 5, 6, 0, 20, i), SLOT);
    }
    for (uint32_t i = 0; i < N; i++) {
        struct verdict v = pass(frame, make(frame, 5, 6, 0, 20, KNOWN + i),
                                SLOT_TAG_NO_LEARN);

        assert_int_equal(v.slot, 0);
        assert_int_equal(v.treatment.level, SHIM_LEVEL_DEFAULT);
        assert_int_equal(slot_of_reply(i % KNOWN), SLOT);
    }
    assert_int_equal(classifier.n_learned, KNOWN);
}

FIXTURE_TEST(frames_may_end_anywhere_and_lie_about_it)
{
    uint8_t frame[256], lie[256];

    for (int words = 0; words < 16; words++) {
        size_t size = make(frame, words < 5 ? 5 : words, 6, 0, 40, 7);

        frame[14] = 0x40 | words;
        for (size_t end = 0; end <= size; end++) {
            pass(frame, end, 1);
        }
        for (int at = 12; at < 60; at++) {
            for (int value = 0; value < 256; value++) {
                memcpy(lie, frame, size);
                lie[at] = value;
                pass(lie, size, 1);
            }
        }
    }
}

/* The parts of a datagram that overlap, in any order, are no flow's: they have
 * the slot of their tag, and what is received has none. */
FIXTURE_TEST(ip_fragments_teach_nothing)
{
    static const uint16_t fragments[] = { 0x2000, 0x2001, 0x0001, 0x1fff,
                                          0x3fff, 0x2000 };
    uint8_t frame[256];

    for (size_t i = 0; i < sizeof fragments / sizeof *fragments; i++) {
        struct verdict v =
            pass(frame, make(frame, 5, 6, fragments[i], 64, 7), SLOT);

        assert_int_equal(v.slot, SLOT);
        assert_int_equal(slot_of_reply(7), 0);
        assert_int_equal(classify_to_host(&classifier, frame, 98), 0);
    }
    pass(frame, make(frame, 5, 6, 0x4000, 64, 7), SLOT);
    assert_int_equal(slot_of_reply(7), SLOT);
}

/* Chains of IPv6 extension headers, which are options without end. */
FIXTURE_TEST(chains_of_headers_end)
{
    static const uint8_t kinds[] = { 0, 43, 60, 44, 51, 50, 135 };
    uint8_t frame[4096];

    for (size_t k = 0; k < sizeof kinds; k++) {
        for (int n = 0; n < 400; n += 1 + n / 8) {
            size_t size = 54 + n * 8 + 20;

            memset(frame, 0, size);
            frame[12] = 0x86;
            frame[13] = 0xdd;
            frame[14] = 0x60;
            frame[18] = (size - 54) >> 8;
            frame[19] = size - 54;
            frame[20] = n ? kinds[k] : 6;
            for (int i = 0; i < n; i++) {
                frame[54 + i * 8] = i + 1 < n ? kinds[k] : 6;
            }
            pass(frame, size, 1);
            frame[55] = 255;            /* Longer than the packet. */
            pass(frame, size, 1);
            pass(frame, size / 2, 1);
        }
    }
}
