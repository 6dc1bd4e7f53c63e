/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/classify/classify.h"
#include "shim/loop/ack-queue.h"
#include "shim/loop/egress.h"
#include "tests/unit/unit-test.h"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define ECE 0x40

/* In place of the egress: hands out 'next_queue', and counts. */
static uint16_t next_queue;
static int n_asked;

uint16_t
egress_flow_queue(struct egress *egress, uint16_t slot)
{
    n_asked++;
    return next_queue;
}

/* A frame of TCP with 'options' bytes of them and 'payload' bytes of data. */
struct frame {
    uint8_t data[2048];
    struct packet packet;
    struct verdict verdict;
};

static void
make(struct frame *f, int family, uint8_t flags, uint32_t options,
     uint32_t payload)
{
    uint32_t l4 = family == 4 ? 34 : 54, tcp = 20 + options + payload;
    uint8_t *ip = f->data + 14;

    memset(f, 0, sizeof *f);
    if (family == 4) {
        ip[0] = 0x45;
        ip[2] = (20 + tcp) >> 8;
        ip[3] = 20 + tcp;
        ip[6] = 0x40;           /* Do not fragment. */
        ip[9] = 6;
    } else {
        ip[0] = 0x60;
        ip[4] = tcp >> 8;
        ip[5] = tcp;
        ip[6] = 6;
    }
    f->data[l4 + 12] = (20 + options) / 4 << 4;
    f->data[l4 + 13] = flags;
    f->packet.data = f->data;
    f->packet.length = l4 + tcp < 60 ? 60 : l4 + tcp;
    f->verdict.l3 = 14;
    f->verdict.family = family;
    f->verdict.is_ip = true;
}

UNIT_TEST(only_pure_acknowledgements_are_steered)
{
    static const struct {
        uint8_t flags;
        uint32_t options, payload;
        bool taken;
    } cases[] = {
        { ACK, 0, 0, true },
        { ACK, 12, 0, true },
        { ACK, 40, 0, true },
        { ACK | PSH | ECE, 12, 0, true },
        { ACK, 12, 1, false },
        { ACK, 0, 6, false },           /* As long as with padding. */
        { ACK, 12, 1448, false },
        { SYN, 20, 0, false },
        { SYN | ACK, 20, 0, false },
        { FIN | ACK, 12, 0, false },
        { RST | ACK, 0, 0, false },
        { RST, 0, 0, false },
        { 0, 0, 0, false },
    };

    for (int family = 4; family <= 6; family += 2) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct frame f;

            make(&f, family, cases[i].flags, cases[i].options,
                 cases[i].payload);
            if (ack_queue_is_for(&f.packet, &f.verdict) != cases[i].taken) {
                fail_msg("IPv%d, case %zu", family, i);
            }
        }
    }
}

UNIT_TEST(other_packets_are_not_steered)
{
    struct frame f;

    make(&f, 4, ACK, 12, 0);
    f.data[14 + 9] = 17;                /* UDP. */
    assert_false(ack_queue_is_for(&f.packet, &f.verdict));
    make(&f, 4, ACK, 12, 0);
    f.data[14 + 6] = 0x20;              /* A fragment, the first... */
    assert_false(ack_queue_is_for(&f.packet, &f.verdict));
    make(&f, 4, ACK, 12, 0);
    f.data[14 + 7] = 8;                 /* ...and a later one. */
    assert_false(ack_queue_is_for(&f.packet, &f.verdict));
    make(&f, 6, ACK, 12, 0);
    f.data[14 + 6] = 0;                 /* An extension header. */
    assert_false(ack_queue_is_for(&f.packet, &f.verdict));
    make(&f, 4, ACK, 12, 0);
    f.verdict.family = 0;               /* Malformed. */
    assert_false(ack_queue_is_for(&f.packet, &f.verdict));
}

/* Whatever a header has, nothing behind the frame's end is read: the frame is
 * as long as its memory, and sanitizers look. */
UNIT_TEST(wrong_lengths_are_survived)
{
    srandom(1);
    for (int i = 0; i < 100000; i++) {
        int family = i % 2 ? 4 : 6;
        uint32_t length;
        struct frame f;
        uint8_t *copy;

        make(&f, family, ACK, 12, 0);
        for (int j = 0; j < 3; j++) {
            f.data[14 + random() % 60] = random() >> 7;
        }
        length = random() % (f.packet.length + 1);
        copy = malloc(length + 1);
        assert_non_null(copy);
        f.packet.data = memcpy(copy + 1, f.data, length);
        f.packet.length = length;
        ack_queue_is_for(&f.packet, &f.verdict);
        free(copy);
    }
}

UNIT_TEST(each_job_has_its_own_queue)
{
    static struct ack_queues acks;
    struct frame f[3];
    struct packet packets[3];
    struct verdict v[3];

    for (int i = 0; i < 3; i++) {
        make(&f[i], 4, ACK, 12, i == 1 ? 100 : 0);
        packets[i] = f[i].packet;
        v[i] = f[i].verdict;
        v[i].slot = i == 2 ? 5 : 0;
    }
    n_asked = 0;
    next_queue = 0;                     /* None is free. */
    ack_queues_steer(&acks, NULL, packets, v, 1);
    assert_int_equal(v[0].queue, 0);
    next_queue = 7;
    ack_queues_steer(&acks, NULL, packets, v, 1);
    next_queue = 8;
    ack_queues_steer(&acks, NULL, packets, v, 3);
    assert_int_equal(v[0].queue, 7);
    assert_int_equal(v[1].queue, 0);    /* Data. */
    assert_int_equal(v[2].queue, 8);
    assert_int_equal(n_asked, 3);

    v[0].queue = 9;                     /* Its flow has one. */
    v[2].queue = 0;
    ack_queues_steer(&acks, NULL, packets, v, 3);
    assert_int_equal(v[0].queue, 9);
    assert_int_equal(v[2].queue, 8);
    assert_int_equal(n_asked, 3);
}
