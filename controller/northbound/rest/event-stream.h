/* SPDX-License-Identifier: Apache-2.0 */

#ifndef EVENT_STREAM_H
#define EVENT_STREAM_H 1

/* What happens, as it happens: server-sent events.
 *
 *
 * Motivation
 * ==========
 *
 * A dashboard that asks each second is late and asks in vain.  Here it listens
 * instead, to four types of events: "decision" (an entry of the log of
 * decisions), "stage" (one that is about a stage's beginning or end), "order"
 * (another version is in force) and, once a second, "telemetry".
 *
 * The last EVENTS_KEPT events have numbers, by which a client that comes back
 * goes on where it was ("Last-Event-ID").  Telemetry has none: who missed it
 * gets the next.  A client is never waited for: one that has fallen behind
 * what is kept is told so by an event "lost", and its connection ends.
 *
 *
 * Usage
 * =====
 *
 *    event_stream_run(es);             // Gathers, wakes clients.
 *    event_stream_wait(es);
 *
 *    client = event_client_create(es, last_event_id, wake, aux);
 *    n = event_client_read(client, buffer, size);  // 0: wake() comes, later.
 *    event_client_destroy(client);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Clients must be gone before the stream is; wake() must not destroy one.
 * Main thread only. */

#include <stddef.h>
#include <sys/types.h>

struct controller;
struct event_client;
struct event_stream;

#define EVENTS_KEPT 1000

struct event_stream *event_stream_create(const struct controller *);
void event_stream_destroy(struct event_stream *);
void event_stream_run(struct event_stream *);
void event_stream_wait(const struct event_stream *);

/* 'last' may be NULL: only what is new. */
struct event_client *event_client_create(struct event_stream *,
                                         const char *last,
                                         void (*wake)(void *aux), void *aux);
void event_client_destroy(struct event_client *);

/* Returns how much was written to 'buffer', 0 if there is nothing now, or -1
 * at the end. */
ssize_t event_client_read(struct event_client *, char *buffer, size_t size);

#endif /* controller/northbound/rest/event-stream.h */
