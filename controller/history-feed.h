/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HISTORY_FEED_H
#define HISTORY_FEED_H 1

/* What of the cluster goes into the history, and when.
 *
 * A stage goes there some seconds after its end, when the last of its bytes
 * are counted; an order when the hosts get another version; each port once a
 * minute in which jobs used it.  Only the controller that leads writes.  Main
 * thread only. */

struct controller;
struct history_feed;

/* 'ctl' must outlive the feed; its history may be NULL, which does nothing. */
struct history_feed *history_feed_create(struct controller *ctl);
void history_feed_destroy(struct history_feed *);

void history_feed_run(struct history_feed *);
void history_feed_wait(const struct history_feed *);

#endif /* controller/history-feed.h */
