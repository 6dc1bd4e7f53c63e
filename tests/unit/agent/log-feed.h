/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_FEED_H
#define LOG_FEED_H 1

/* A decoder of logs that a test feeds.
 *
 *    log_feed_open("csv:/x,metric=loss");
 *    log_feed("iteration,loss\n1,0.5\n");
 *    log_feed_expect(1, 0.5);
 *    log_feed_close();
 *
 * One at a time. */

#include <stdbool.h>
#include <stdint.h>

#include "agent/tail/log-decoder.h"
#include "wire/log-spec.h"

extern struct log_spec log_feed_spec;
extern struct log_decoder *log_feed_decoder;
extern struct progress log_feed_last; /* The last reported progress. */

void log_feed_open(const char *spec);
void log_feed_close(void);
void log_feed(const char *text);

/* Fail unless the text fed last has reported this progress, or none. */
void log_feed_expect(int64_t iteration, double value);
void log_feed_expect_nothing(void);

#endif /* tests/unit/agent/log-feed.h */
