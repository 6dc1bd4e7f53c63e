/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "tests/unit/agent/log-feed.h"

#include <math.h>
#include <string.h>

#include "tests/unit/unit-test.h"

struct log_spec log_feed_spec;
struct log_decoder *log_feed_decoder;
struct progress log_feed_last;

void
log_feed_open(const char *text)
{
    char *error = log_spec_parse("--log", text, &log_feed_spec);

    assert_null(error);
    log_feed_decoder = log_decoder_create(&log_feed_spec);
    log_decoder_restart(log_feed_decoder, NULL, 0, false);
}

void
log_feed_close(void)
{
    log_decoder_destroy(log_feed_decoder);
    log_spec_uninit(&log_feed_spec);
}

void
log_feed(const char *text)
{
    log_decoder_feed(log_feed_decoder, text, strlen(text));
}

void
log_feed_expect(int64_t iteration, double value)
{
    assert_true(log_decoder_take(log_feed_decoder, &log_feed_last));
    assert_int_equal(log_feed_last.iteration, iteration);
    assert_true(log_feed_last.has_value);
    assert_true(fabs(log_feed_last.value - value) < 1e-6);
}

void
log_feed_expect_nothing(void)
{
    assert_false(log_decoder_take(log_feed_decoder, &log_feed_last));
}
