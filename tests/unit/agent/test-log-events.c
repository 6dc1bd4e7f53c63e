/* SPDX-License-Identifier: Apache-2.0 */

/* What jobs log in event files. */

#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tail/log-decoder.h"
#include "crc32c.h"
#include "tests/unit/agent/log-feed.h"
#include "tests/unit/unit-test.h"
#include "util.h"

struct bytes {
    char data[4096];
    size_t n;
};

static void
put(struct bytes *b, const void *data, size_t size)
{
    memcpy(b->data + b->n, data, size);
    b->n += size;
}

/* Numbers below 128 are one byte each as they are. */
static void
put_field(struct bytes *b, int number, int type, const void *data, size_t size)
{
    char key = number << 3 | type;

    put(b, &key, 1);
    if (type == 2) {
        char length = size;

        assert_true(size < 128);
        put(b, &length, 1);
    }
    put(b, data, size);
}

static uint32_t
masked(const void *data, size_t size)
{
    uint32_t crc = (OVS_FORCE uint32_t) crc32c(data, size);

    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

static void
put_record(struct bytes *b, const struct bytes *event)
{
    uint64_t length = event->n;
    uint32_t crc = masked(&length, sizeof length);

    put(b, &length, sizeof length);
    put(b, &crc, sizeof crc);
    crc = masked(event->data, event->n);
    put(b, event->data, event->n);
    put(b, &crc, sizeof crc);
}

enum how { SIMPLE, TENSOR_CONTENT, TENSOR_DOUBLE };

static void
put_event(struct bytes *b, const char *tag, char step, float number,
          enum how how)
{
    struct bytes tensor = { .n = 0 }, value = { .n = 0 };
    struct bytes summary = { .n = 0 }, event = { .n = 0 };
    double time = 1.5, wide = number;

    put_field(&value, 1, 2, tag, strlen(tag));
    if (how == SIMPLE) {
        put_field(&value, 2, 5, &number, sizeof number);
    } else {
        put_field(&tensor, 1, 0, how == TENSOR_CONTENT ? "\1" : "\2", 1);
        if (how == TENSOR_CONTENT) {
            put_field(&tensor, 4, 2, &number, sizeof number);
        } else {
            put_field(&tensor, 6, 2, &wide, sizeof wide);
        }
        put_field(&value, 8, 2, tensor.data, tensor.n);
    }
    put_field(&summary, 1, 2, value.data, value.n);
    put_field(&event, 1, 1, &time, sizeof time);
    put_field(&event, 2, 0, &step, 1);
    put_field(&event, 5, 2, summary.data, summary.n);
    put_record(b, &event);
}

UNIT_TEST(check_sums_are_those_of_the_format)
{
    assert_int_equal((OVS_FORCE uint32_t) crc32c(
                         (const uint8_t *) "123456789", 9), 0xe3069283);
}

UNIT_TEST(event_files_tell_one_tag)
{
    struct bytes b = { .n = 0 };
    size_t n;

    put_event(&b, "loss", 1, 3, SIMPLE);
    put_event(&b, "accuracy/val", 2, 0.5, SIMPLE);
    put_event(&b, "loss", 3, 2, SIMPLE);
    log_feed_open("tfevents:/x,metric=accuracy/val");
    assert_true(log_decoder_feed(log_feed_decoder, b.data, b.n));
    log_feed_expect(2, 0.5);
    assert_string_equal(log_feed_last.metric, "accuracy/val");

    b.n = 0;
    put_event(&b, "accuracy/val", 4, 0.625, TENSOR_CONTENT);
    put_event(&b, "accuracy/val", 5, 0.75, TENSOR_DOUBLE);
    n = b.n;
    /* A byte at a time. */
    for (size_t i = 0; i < n; i++) {
        assert_true(log_decoder_feed(log_feed_decoder, b.data + i, 1));
        if (i == n / 2) {
            log_feed_expect(4, 0.625);
        }
    }
    log_feed_expect(5, 0.75);

    /* A metric that is no number. */
    for (enum how how = SIMPLE; how <= TENSOR_DOUBLE; how++) {
        b.n = 0;
        put_event(&b, "accuracy/val", 6 + how, how % 2 ? INFINITY : NAN, how);
        assert_true(log_decoder_feed(log_feed_decoder, b.data, b.n));
        assert_true(log_decoder_take(log_feed_decoder, &log_feed_last));
        assert_int_equal(log_feed_last.iteration, 6 + how);
        assert_false(log_feed_last.has_value);
    }

    /* From the middle. */
    put_event(&b, "accuracy/val", 16, 0.875, SIMPLE);
    log_decoder_restart(log_feed_decoder, NULL, 0, true);
    assert_true(log_decoder_feed(log_feed_decoder, b.data + 5, b.n - 5));
    log_feed_expect(16, 0.875);
    log_feed_close();
}

UNIT_TEST(an_event_file_with_a_wrong_sum_is_bad)
{
    struct bytes b = { .n = 0 };
    size_t n;

    put_event(&b, "loss", 1, 3, SIMPLE);
    n = b.n;
    put_event(&b, "loss", 2, 3, SIMPLE);
    for (size_t i = 0; i < n; i++) {
        b.data[n + i] ^= 1;
        log_feed_open("tfevents:/x,metric=loss");
        assert_false(log_decoder_feed(log_feed_decoder, b.data, b.n));
        log_feed_expect(1, 3);
        log_feed_close();
        b.data[n + i] ^= 1;
    }
}

UNIT_TEST(large_records_are_passed_over)
{
    struct bytes b = { .n = 0 };
    uint64_t length = 3 * LOG_MAX_EVENT + 11;
    uint32_t crc = masked(&length, sizeof length);
    char *zeros = xzalloc(65536);

    log_feed_open("tfevents:/x,metric=loss");
    put(&b, &length, sizeof length);
    put(&b, &crc, sizeof crc);
    assert_true(log_decoder_feed(log_feed_decoder, b.data, b.n));
    for (uint64_t left = length + 4; left; left -= MIN(left, 65536)) {
        assert_true(log_decoder_feed(log_feed_decoder, zeros,
                                     MIN(left, 65536)));
    }
    b.n = 0;
    put_event(&b, "loss", 9, 0.5, SIMPLE);
    assert_true(log_decoder_feed(log_feed_decoder, b.data, b.n));
    log_feed_expect(9, 0.5);
    log_feed_close();
    free(zeros);
}
