/* SPDX-License-Identifier: Apache-2.0 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "shim/ports/finish.h"
#include "tests/unit/unit-test.h"

#define MTU 1500
#define ROOM 4096               /* Of a packet buffer. */

static struct rte_mempool *pool;

/* What a test's packet is. */
struct shape {
    int family;                 /* 4 or 6. */
    int protocol;
    size_t payload;
    int n_tags;                 /* VLAN. */
    size_t options;             /* Of IPv4, or extension headers. */
    size_t padding;             /* After the packet. */
};

enum sum { SUM_PARTIAL, SUM_RIGHT, SUM_WRONG, SUM_NONE };

/* Where 'shape's parts are. */
static size_t
l3_of(const struct shape *shape)
{
    return RTE_ETHER_HDR_LEN + 4 * shape->n_tags;
}

static size_t
l4_of(const struct shape *shape)
{
    return l3_of(shape) + (shape->family == 4 ? 20 : 40) + shape->options;
}

static size_t
header_of(const struct shape *shape)
{
    return shape->protocol == IPPROTO_UDP ? 8 : 20;
}

static uint16_t *
sum_of(const struct shape *shape, uint8_t *data)
{
    return (uint16_t *) (data + l4_of(shape)
                         + (shape->protocol == IPPROTO_UDP ? 6 : 16));
}

static void
put_types(const struct shape *shape, uint8_t *data)
{
    uint8_t *type = data + 12;

    for (int i = 0; i < shape->n_tags; i++, type += 4) {
        type[0] = shape->n_tags - i == 2 ? 0x88 : 0x81;
        type[1] = shape->n_tags - i == 2 ? 0xa8 : 0x00;
        type[3] = 7;
    }
    type[0] = shape->family == 4 ? 0x08 : 0x86;
    type[1] = shape->family == 4 ? 0x00 : 0xdd;
}

/* The sum of 16-bit words, in the machine's order, of 'n' bytes. */
static uint32_t
sum_bytes(const uint8_t *p, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i++) {
        sum += i % 2 ? p[i] : p[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static uint16_t
pseudo_of(const struct shape *shape, const uint8_t *data)
{
    const uint8_t *l3 = data + l3_of(shape);
    size_t size = header_of(shape) + shape->payload;
    uint32_t sum = shape->protocol + size;

    sum = (sum & 0xffff) + (sum >> 16);
    return shape->family == 4 ? sum_bytes(l3 + 12, 8, sum)
                              : sum_bytes(l3 + 8, 32, sum);
}

static void
put_ip(const struct shape *shape, uint8_t *l3)
{
    size_t size = shape->options + header_of(shape) + shape->payload;

    for (int i = 0; i < 32; i++) {
        l3[8 + i] = 10 + i;
    }
    if (shape->family == 4) {
        l3[0] = 0x40 | (20 + shape->options) / 4;
        l3[2] = (size + 20) >> 8;
        l3[3] = size + 20;
        l3[6] = l3[7] = 0;
        l3[9] = shape->protocol;
        memset(l3 + 20, 1, shape->options);     /* No operation. */
    } else {
        l3[0] = 0x60;
        l3[4] = size >> 8;
        l3[5] = size;
        l3[6] = shape->options ? IPPROTO_DSTOPTS : shape->protocol;
        if (shape->options) {
            memset(l3 + 40, 0, shape->options);
            l3[40] = shape->protocol;
            l3[41] = shape->options / 8 - 1;
            l3[42] = 1;         /* Padding. */
            l3[43] = shape->options - 4;
        }
    }
}

static struct rte_mbuf *
make(const struct shape *shape, enum sum what)
{
    size_t size = l4_of(shape) + header_of(shape) + shape->payload;
    struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
    uint8_t *data = (uint8_t *) rte_pktmbuf_append(frame,
                                                   size + shape->padding);
    uint32_t sum;

    assert_non_null(data);
    memset(data, 0, size);
    memset(data + size, 0xee, shape->padding);
    put_types(shape, data);
    put_ip(shape, data + l3_of(shape));
    for (size_t i = l4_of(shape); i < size; i++) {
        data[i] = i * 7;
    }
    if (shape->protocol == IPPROTO_TCP) {
        data[l4_of(shape) + 12] = 0x50;
    }
    *sum_of(shape, data) = htons(pseudo_of(shape, data));
    sum = sum_bytes(data + l4_of(shape), size - l4_of(shape), 0);
    if (what == SUM_RIGHT) {
        *sum_of(shape, data) = htons(~sum & 0xffff);
    } else if (what == SUM_WRONG) {
        *sum_of(shape, data) ^= 0x5a5a;
    } else if (what == SUM_NONE) {
        *sum_of(shape, data) = 0;
    }
    return frame;
}

static bool
is_right(const struct shape *shape, struct rte_mbuf *frame)
{
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);

    return sum_bytes(data + l4_of(shape),
                     header_of(shape) + shape->payload,
                     pseudo_of(shape, data)) == 0xffff;
}

static const struct shape shapes[] = {
    { 4, IPPROTO_TCP, 1000, 0, 0, 0 },
    { 4, IPPROTO_TCP, 0, 0, 0, 6 },
    { 4, IPPROTO_TCP, 1001, 1, 0, 0 },
    { 4, IPPROTO_TCP, 77, 2, 12, 0 },
    { 4, IPPROTO_UDP, 1, 0, 0, 17 },
    { 4, IPPROTO_UDP, 1472, 0, 0, 0 },
    { 6, IPPROTO_TCP, 1000, 0, 0, 0 },
    { 6, IPPROTO_TCP, 333, 1, 16, 0 },
    { 6, IPPROTO_UDP, 5, 0, 8, 3 },
};

UNIT_TEST(completes_partial_checksums)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct rte_mbuf *frame = make(&shapes[i], SUM_PARTIAL);

        assert_false(is_right(&shapes[i], frame));
        assert_int_equal(finish_frame(frame, MTU), FINISH_COMPLETED);
        assert_true(is_right(&shapes[i], frame));
        assert_int_equal(finish_frame(frame, MTU), FINISH_WHOLE);
        rte_pktmbuf_free(frame);
    }
}

UNIT_TEST(leaves_other_checksums_alone)
{
    static const enum sum sums[] = { SUM_RIGHT, SUM_WRONG, SUM_NONE };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t j = 0; j < sizeof sums / sizeof *sums; j++) {
            struct rte_mbuf *frame = make(&shapes[i], sums[j]);
            uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
            uint16_t before = *sum_of(&shapes[i], data);

            assert_int_equal(finish_frame(frame, MTU), FINISH_WHOLE);
            assert_int_equal(*sum_of(&shapes[i], data), before);
            rte_pktmbuf_free(frame);
        }
    }
}

/* A right checksum with the value of the pseudo header. */
UNIT_TEST(a_right_checksum_may_look_partial)
{
    const struct shape shape = { 4, IPPROTO_TCP, 1000, 0, 0, 0 };
    struct rte_mbuf *frame = make(&shape, SUM_PARTIAL);
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
    uint16_t *spare = (uint16_t *) (data + l4_of(&shape) + 20);
    uint32_t sum;

    *spare = 0;
    sum = sum_bytes(data + l4_of(&shape), 1020, pseudo_of(&shape, data));
    *spare = htons(~sum & 0xffff);
    assert_true(is_right(&shape, frame));
    assert_int_equal(finish_frame(frame, MTU), FINISH_WHOLE);
    assert_true(is_right(&shape, frame));
    rte_pktmbuf_free(frame);
}

UNIT_TEST(a_udp_checksum_does_not_become_none)
{
    const struct shape shape = { 4, IPPROTO_UDP, 100, 0, 0, 0 };
    struct rte_mbuf *frame = make(&shape, SUM_PARTIAL);
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
    uint16_t *spare = (uint16_t *) (data + l4_of(&shape) + 8);
    uint32_t sum;

    *spare = 0;
    sum = sum_bytes(data + l4_of(&shape), 108, 0);
    *spare = htons(~sum & 0xffff);      /* Now all of it is 0xffff. */
    assert_int_equal(finish_frame(frame, MTU), FINISH_COMPLETED);
    assert_int_equal(*sum_of(&shape, data), 0xffff);
    assert_true(is_right(&shape, frame));
    rte_pktmbuf_free(frame);
}

UNIT_TEST(fragments_have_no_checksum)
{
    const struct shape shape = { 4, IPPROTO_UDP, 100, 0, 0, 0 };
    struct rte_mbuf *frame = make(&shape, SUM_PARTIAL);
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
    uint16_t before = *sum_of(&shape, data);

    data[RTE_ETHER_HDR_LEN + 6] = 0x20;         /* More of them. */
    assert_int_equal(finish_frame(frame, MTU), FINISH_WHOLE);
    assert_int_equal(*sum_of(&shape, data), before);
    rte_pktmbuf_free(frame);
}

UNIT_TEST(refuses_what_is_to_be_cut)
{
    struct shape shape = { 4, IPPROTO_TCP, MTU - 40, 0, 0, 0 };
    struct rte_mbuf *frame = make(&shape, SUM_PARTIAL);

    assert_int_equal(finish_frame(frame, MTU), FINISH_COMPLETED);
    rte_pktmbuf_free(frame);

    shape.payload++;
    frame = make(&shape, SUM_PARTIAL);
    assert_int_equal(finish_frame(frame, MTU), FINISH_TOO_LONG);
    rte_pktmbuf_free(frame);

    /* As a ring leaves it that has no room for all of it. */
    shape.payload = 2 * MTU;
    frame = make(&shape, SUM_PARTIAL);
    assert_int_equal(rte_pktmbuf_trim(frame, 2 * MTU - 1000), 0);
    assert_int_equal(finish_frame(frame, MTU), FINISH_TOO_LONG);
    rte_pktmbuf_free(frame);

    shape.payload = 100;
    frame = make(&shape, SUM_RIGHT);
    frame->ol_flags |= RTE_MBUF_F_RX_LRO;
    assert_int_equal(finish_frame(frame, MTU), FINISH_TOO_LONG);
    rte_pktmbuf_free(frame);
}

/* Splits 'frame' after its first 'n' bytes. */
static struct rte_mbuf *
split(struct rte_mbuf *frame, uint16_t n)
{
    struct rte_mbuf *second = rte_pktmbuf_alloc(pool);
    uint16_t rest = rte_pktmbuf_data_len(frame) - n;

    memcpy(rte_pktmbuf_append(second, rest),
           rte_pktmbuf_mtod_offset(frame, uint8_t *, n), rest);
    assert_int_equal(rte_pktmbuf_trim(frame, rest), 0);
    memset(rte_pktmbuf_mtod_offset(frame, uint8_t *, n), 0xdd, rest);
    assert_int_equal(rte_pktmbuf_chain(frame, second), 0);
    return frame;
}

UNIT_TEST(puts_segments_together)
{
    static const uint16_t cuts[] = { 3, 20, 40, 500 };
    const struct shape shape = { 4, IPPROTO_TCP, 1000, 0, 0, 0 };

    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct rte_mbuf *frame = split(make(&shape, SUM_PARTIAL), cuts[i]);

        assert_int_equal(frame->nb_segs, 2);
        assert_int_equal(finish_frame(frame, MTU), FINISH_COMPLETED);
        assert_int_equal(frame->nb_segs, 1);
        assert_true(is_right(&shape, frame));
        rte_pktmbuf_free(frame);
    }
}

UNIT_TEST(takes_whatever_comes)
{
    const struct shape shape = { 6, IPPROTO_TCP, 20, 2, 16, 0 };

    for (uint16_t n = 0; n < 110; n++) {
        struct rte_mbuf *frame = make(&shape, SUM_PARTIAL);

        rte_pktmbuf_trim(frame, rte_pktmbuf_data_len(frame) - n);
        assert_int_equal(finish_frame(frame, MTU), FINISH_WHOLE);
        rte_pktmbuf_free(frame);
    }
    for (int i = 0; i < 20000; i++) {
        struct rte_mbuf *frame = make(&shapes[i % 9], SUM_PARTIAL);
        uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);

        for (int j = 0; j < 4; j++) {
            data[rand() % 80] = rand();
        }
        rte_pktmbuf_trim(frame, rand() % 60);
        finish_frame(frame, MTU);
        rte_pktmbuf_free(frame);
    }
}

int
unit_test_set_up(void **state)
{
    const char *argv[] = { "test", "--no-huge", "--no-pci", "--no-shconf",
                           "--no-telemetry", "-m", "16", "-l", "0",
                           "--log-level=*:error",
                           "--file-prefix=sc-finish" };

    if (rte_eal_init(sizeof argv / sizeof *argv, (char **) argv) < 0) {
        return -1;
    }
    pool = rte_pktmbuf_pool_create("test", 255, 0, 0,
                                   ROOM + RTE_PKTMBUF_HEADROOM,
                                   SOCKET_ID_ANY);
    return pool ? 0 : -1;
}

/* Nothing may have been kept. */
int
unit_test_tear_down(void **state)
{
    return (rte_mempool_avail_count(pool) != 255 || rte_eal_cleanup()
            || rmdir(rte_eal_get_runtime_dir()));
}
