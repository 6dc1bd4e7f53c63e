/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/classify/classify.h"
#include "shim/classify/tag.h"
#include "tests/unit/unit-test.h"

/* The whole sum, as RFC 1071 has it. */
static uint16_t
checksum(const uint8_t *ip, int size)
{
    uint32_t sum = 0;

    for (int i = 0; i < size; i += 2) {
        if (i != 10) {
            sum += ip[i] << 8 | ip[i + 1];
        }
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~sum;
}

static void
random_bytes(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = random() >> 7;
    }
}

UNIT_TEST(ipv4_checksum_equals_a_full_one)
{
    srandom(1);
    for (int i = 0; i < 200000; i++) {
        uint8_t ip[60], before[60], dscp = random() % 64;
        int size = 20 + random() % 11 * 4;
        uint16_t sum;

        random_bytes(ip, sizeof ip);
        ip[0] = 0x40 | size / 4;
        sum = checksum(ip, size);
        ip[10] = sum >> 8;
        ip[11] = sum;
        memcpy(before, ip, sizeof ip);

        tag_ipv4(ip, dscp);
        assert_int_equal(ip[1] >> 2, dscp);
        assert_int_equal(ip[1] & 3, before[1] & 3);     /* ECN. */
        sum = checksum(ip, size);
        /* 0 and 0xffff are the same number here. */
        if (sum % 0xffff != (ip[10] << 8 | ip[11]) % 0xffff) {
            fail_msg("%04x instead of %04x", ip[10] << 8 | ip[11], sum);
        }
        before[1] = ip[1];
        before[10] = ip[10];
        before[11] = ip[11];
        assert_memory_equal(ip, before, sizeof ip);
    }
}

UNIT_TEST(ipv4_wrong_checksum_stays_wrong)
{
    uint8_t ip[20] = { 0x45, 0x00, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0,
                       10, 0, 0, 1, 10, 0, 0, 2 };
    uint16_t wrong = checksum(ip, 20) + 1, sum;

    ip[10] = wrong >> 8;
    ip[11] = wrong;
    tag_ipv4(ip, 46);
    sum = checksum(ip, 20);
    assert_int_not_equal(sum, ip[10] << 8 | ip[11]);
}

UNIT_TEST(ipv6_only_the_dscp_changes)
{
    srandom(2);
    for (int i = 0; i < 10000; i++) {
        uint8_t ip[40], before[40], dscp = random() % 64;
        unsigned int class;

        random_bytes(ip, sizeof ip);
        memcpy(before, ip, sizeof ip);
        tag_ipv6(ip, dscp);
        class = (ip[0] & 0xf) << 4 | ip[1] >> 4;
        assert_int_equal(class >> 2, dscp);
        assert_int_equal(class & 3, before[1] >> 4 & 3);
        assert_int_equal(ip[0] & 0xf0, before[0] & 0xf0);
        assert_int_equal(ip[1] & 0xf, before[1] & 0xf);
        assert_memory_equal(ip + 2, before + 2, 38);
    }
}

UNIT_TEST(the_header_of_a_frame_is_found)
{
    static const uint8_t types[][10] = {
        { 0x08, 0x00, 0x45 },
        { 0x81, 0x00, 0, 5, 0x08, 0x00, 0x45 },
        { 0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 7, 0x08, 0x00 },
        { 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 59 },
        { 0x08, 0x06 },                         /* ARP has none. */
    };
    static const uint8_t at[] = { 14, 18, 22, 14, 0 };
    const struct treatment t = { .level = 2, .dscp = 40 };

    for (size_t i = 0; i < sizeof at; i++) {
        uint8_t frame[80] = { 0 }, before[80];

        memcpy(frame + 12, types[i], sizeof types[i]);
        frame[22] = at[i] == 22 ? 0x45 : frame[22];
        if (at[i] && i != 3) {
            frame[at[i] + 3] = 28;
            frame[at[i] + 9] = 17;
        }
        memcpy(before, frame, sizeof frame);
        tag_frame(frame, 30, t, 0); /* Not all of it is there. */
        assert_memory_equal(frame, before, sizeof frame);

        tag_frame(frame, sizeof frame, t, 0);
        if (i == 3) {
            tag_ipv6(before + at[i], 40);
        } else if (at[i]) {
            tag_ipv4(before + at[i], 40);
            assert_int_equal(frame[at[i] + 1] >> 2, 40);
        }
        assert_memory_equal(frame, before, sizeof frame);
    }
}

/* Packets of no job keep the DSCP of their sender, and their ECN bits, unless
 * it is the DSCP of a level or of control; those of a job never do. */
UNIT_TEST(only_levels_are_taken_from_packets_of_no_job)
{
    const uint64_t levels = UINT64_C(1) << 35 | UINT64_C(1) << 39;
    const struct treatment treatments[] = {
        { .level = SHIM_LEVEL_DEFAULT, .dscp = 5, .is_default = true },
        { .level = 3, .dscp = 19, .in_use = true },
        { .level = SHIM_LEVEL_CONTROL, .dscp = 39, .is_default = true },
    };

    for (uint32_t i = 0; i < 64 * 4 * 3; i++) {
        struct treatment t = treatments[i / 256];
        uint8_t old = i % 64, ecn = i / 64 % 4;
        uint8_t expected = (i / 256 || levels >> old & 1 ? t.dscp : old);
        uint8_t frames[3][54] = { { 0 } };
        struct packet packets[3];
        struct verdict v[3];

        for (int k = 0; k < 3; k++) {
            uint8_t *ip = frames[k] + 14;

            if (k == 1) { /* IPv6. */
                memcpy(frames[k] + 12, "\x86\xdd\x60", 3);
                ip[6] = 59;
                ip[0] |= old >> 2;
                ip[1] = (old << 6 | ecn << 4 | 5) & 0xff;
            } else {
                uint16_t check;

                memcpy(frames[k] + 12, "\x08\x00\x45", 3);
                ip[1] = old << 2 | ecn;
                ip[3] = 40;
                ip[8] = 64;
                ip[9] = 17;
                check = checksum(ip, 20);
                ip[10] = check >> 8;
                ip[11] = check & 0xff;
            }
            packets[k] = (struct packet){ frames[k], sizeof frames[k] };
            v[k] = (struct verdict){
                .l3 = 14,
                .family = k == 1 ? 6 : 4,
                .is_ip = true,
                .treatment = t,
            };
        }
        tag_burst(packets, v, 2, levels);
        tag_frame(frames[2], sizeof frames[2], t, levels);
        for (int k = 0; k < 3; k++) {
            uint8_t *ip = frames[k] + 14;

            if (k == 1) {
                assert_int_equal((ip[0] & 0xf) << 2 | ip[1] >> 6, expected);
                assert_int_equal(ip[1] >> 4 & 3, ecn);
                assert_int_equal(ip[1] & 0xf, 5);
            } else {
                assert_int_equal(ip[1], expected << 2 | ecn);
                assert_int_equal(ip[10] << 8 | ip[11], checksum(ip, 20));
            }
        }
    }
}
