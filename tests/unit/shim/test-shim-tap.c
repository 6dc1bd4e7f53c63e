/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/capture/file.h"
#include "shim/capture/pcapng.h"
#include "shim/capture/tap.h"
#include "tests/unit/unit-test.h"

#define RING 4096

static uint8_t frame[2000], taken[RING];
static struct tap *tap;

static int
set_up(void **state)
{
    for (size_t i = 0; i < sizeof frame; i++) {
        frame[i] = i * 7;
    }
    tap = tap_create(RING);
    return tap ? 0 : -1;
}

static int
tear_down(void **state)
{
    tap_destroy(tap);
    return 0;
}

static void
start(uint16_t slot, bool all, uint32_t snap)
{
    struct shim_capture what = { .slot = slot, .all = all, .snap = snap };

    tap_start(tap, &what);
}

static void
see(uint16_t slot, uint32_t length, uint64_t now)
{
    tap_see(tap, slot, now & 1, frame, length, length, now);
}

FIXTURE_TEST(captures_only_the_wanted_slot)
{
    struct shim_captured record;

    see(3, 100, 1);
    assert_int_equal(tap_take(tap, taken, sizeof taken), 0);
    start(3, false, 64);
    see(2, 100, 2);
    see(3, 100, 3);
    see(0, 100, 4);
    assert_int_equal(tap_take(tap, taken, sizeof taken), sizeof record + 64);
    memcpy(&record, taken, sizeof record);
    assert_int_equal(record.size, sizeof record + 64);
    assert_int_equal(record.captured, 64);
    assert_int_equal(record.length, 100);
    assert_int_equal(record.time, 3);
    assert_int_equal(record.slot, 3);
    assert_int_equal(record.to_host, 1);
    assert_memory_equal(taken + sizeof record, frame, 64);

    start(0, true, 2000);
    see(9, 10, 6);
    assert_int_equal(tap_take(tap, taken, sizeof taken), sizeof record + 16);
    tap_stop(tap);
    see(9, 10, 7);
    assert_int_equal(tap_take(tap, taken, sizeof taken), 0);
    tap_see(NULL, 9, true, frame, 1, 1, 1);
}

FIXTURE_TEST(counts_frames_that_do_not_fit)
{
    struct shim_captured record = { .size = 0 };
    int n = 0;

    start(0, true, 65535);
    for (int i = 0; i < 10; i++) {
        see(1, 1000, i);
    }
    for (size_t size = tap_take(tap, taken, sizeof taken), at = 0; at < size;
         at += record.size, n++) {
        memcpy(&record, taken + at, sizeof record);
        assert_int_equal(record.time, n);
    }
    assert_int_equal(n, 3);
    see(1, 1000, 10);
    assert_int_equal(tap_take(tap, taken, sizeof taken), record.size);
    memcpy(&record, taken, sizeof record);
    assert_int_equal(record.dropped, 7);

    start(0, true, 65535);              /* Each capture counts from 0. */
    see(1, 1000, 11);
    tap_take(tap, taken, sizeof taken);
    memcpy(&record, taken, sizeof record);
    assert_int_equal(record.dropped, 0);
}

FIXTURE_TEST(the_ring_wraps_around)
{
    uint64_t next = 0;

    start(0, true, 65535);
    for (int i = 0; i < 10000; i++) {
        size_t size, at;

        see(1, i * 37 % 1500, i);
        see(2, i * 11 % 300, i);
        size = tap_take(tap, taken, i % 3 ? sizeof taken : 1600);
        for (at = 0; at < size;) {
            struct shim_captured record;

            memcpy(&record, taken + at, sizeof record);
            assert_true(record.time >= next / 2);
            next = record.time * 2 + record.slot - 1;
            assert_int_equal(record.captured, record.slot == 1
                             ? record.time * 37 % 1500
                             : record.time * 11 % 300);
            assert_memory_equal(taken + at + sizeof record, frame,
                                record.captured);
            at += record.size;
        }
        assert_int_equal(at, size);
    }
    assert_true(next >= 19990);
}

UNIT_TEST(a_written_file_can_be_read)
{
    char path[] = "/tmp/sct-tap-XXXXXX";
    struct capture_reader *reader;
    struct capture_frame read;
    struct pcapng *file;

    close(mkstemp(path));
    assert_null(pcapng_create(path, "asha/t0", &file));
    for (uint32_t i = 0; i < 9; i++) {
        pcapng_write(file, &(struct capture_frame) {
            .time = UINT64_C(1700000000123456789) + i,
            .data = frame, .captured = i * 7, .length = i * 100,
        }, i & 1);
    }
    assert_null(pcapng_finish(file, 5));
    assert_null(capture_open(path, &reader));
    for (uint32_t i = 0; i < 9; i++) {
        assert_null(capture_next(reader, &read));
        assert_int_equal(read.time, UINT64_C(1700000000123456789) + i);
        assert_int_equal(read.captured, i * 7);
        assert_int_equal(read.length, i * 100);
        assert_memory_equal(read.data, frame, i * 7);
    }
    assert_null(capture_next(reader, &read));
    assert_null(read.data);
    capture_close(reader);
    unlink(path);
}

UNIT_TEST(a_full_disk_is_reported)
{
    struct pcapng *file;

    if (access("/dev/full", W_OK)) {
        skip();
    }
    assert_null(pcapng_create("/dev/full", "x", &file));
    assert_is(pcapng_finish(file, 0), "/dev/full: No space left on device");
}
