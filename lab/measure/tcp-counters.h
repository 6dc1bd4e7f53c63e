/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_TCP_COUNTERS_H
#define LAB_TCP_COUNTERS_H 1

/* TCP counters of the hosts of a lab.
 *
 *
 * Motivation
 * ==========
 *
 * A retransmission timeout is the most expensive event for training: the
 * connection is idle for at least 200 ms, and all workers wait for it.  Each
 * host is a namespace in which the kernel counts the timeouts.
 *
 *
 * Usage
 * =====
 *
 *    counters = tcp_counters_create(plan);       // After the hosts.
 *    ...
 *    timeouts = tcp_counters_timeouts(counters); // Since then.
 *    tcp_counters_destroy(counters);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct plan;
struct tcp_counters;

struct tcp_counters *tcp_counters_create(const struct plan *);
void tcp_counters_destroy(struct tcp_counters *);

/* Returns the retransmission timeouts of all hosts since
 * tcp_counters_create(), NAN if they are unknown. */
double tcp_counters_timeouts(const struct tcp_counters *);

/* Looks up 'name' of 'group' in 'text', which has the format of
 * /proc/net/netstat: a line of names, then a line of values, both beginning
 * with "GROUP:". */
bool tcp_counters_parse(const char *text, const char *group, const char *name,
                        uint64_t *value);

#endif /* lab/measure/tcp-counters.h */
