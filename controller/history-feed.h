/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HISTORY_FEED_H
#define HISTORY_FEED_H 1

/* Writes stages, what jobs do that are in none, and the use of ports to the
 * history.
 *
 * A stage is written some seconds after its end, when its last bytes have been
 * counted; the use of a port and of unannounced jobs once per minute.  Only
 * the leader writes.  Main thread only. */

struct controller;
struct history_feed;

/* 'ctl' must outlive the feed.  Without a history the feed does nothing. */
struct history_feed *history_feed_create(struct controller *ctl);
void history_feed_destroy(struct history_feed *);

void history_feed_run(struct history_feed *);
void history_feed_wait(const struct history_feed *);

#endif /* controller/history-feed.h */
