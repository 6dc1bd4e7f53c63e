/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_TCP_COUNTERS_H
#define LAB_TCP_COUNTERS_H 1

/* What the TCP of a lab's hosts counts.
 *
 *
 * Motivation
 * ==========
 *
 * A retransmission time-out is the worst that a network does to training: the
 * connection is silent for 200 ms and more, and everybody waits for it.  Each
 * host is a namespace, and its kernel counts them.
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

/* Retransmission time-outs of all hosts since tcp_counters_create(); negative
 * if they cannot be known. */
long long tcp_counters_timeouts(const struct tcp_counters *);

/* Looks up 'name' of 'group' in 'text', which is like /proc/net/netstat: a
 * line of names, then one of values, both beginning with "GROUP:". */
bool tcp_counters_parse(const char *text, const char *group, const char *name,
                        uint64_t *value);

#endif /* lab/measure/tcp-counters.h */
