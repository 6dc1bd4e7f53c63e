/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_QUEUE_WATCH_H
#define LAB_QUEUE_WATCH_H 1

/* How long the queues of the fabric's ports are.
 *
 * A sample is the number of bytes that wait at one port, in all its queues.
 * All samples of all ports together are one distribution: a queue that is long
 * at one of ten ports for a tenth of the time is its 99th percentile.
 *
 *    qw = queue_watch_create(fabric_ns);
 *    ...repeatedly: queue_watch_sample(qw)...
 *    p99 = queue_watch_quantile(qw, 0.99);
 *    queue_watch_destroy(qw);
 *
 * Main thread only. */

struct queue_watch;

/* Watches the queues in network namespace 'ns'.  Without netlink there will be
 * no samples. */
struct queue_watch *queue_watch_create(const char *ns);
void queue_watch_destroy(struct queue_watch *);

/* Adds a sample of each port. */
void queue_watch_sample(struct queue_watch *);

/* Returns the quantile 'q', 0 to 1, of the samples, in bytes, rounded up to a
 * kilobyte; NAN without a sample. */
double queue_watch_quantile(const struct queue_watch *, double q);

#endif /* lab/measure/queue-watch.h */
