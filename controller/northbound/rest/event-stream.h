/* SPDX-License-Identifier: Apache-2.0 */

#ifndef EVENT_STREAM_H
#define EVENT_STREAM_H 1

/* Server-sent events of "/v1/events".
 *
 * Polling is late and mostly returns nothing new.  A dashboard subscribes
 * instead to four types of events: "decision" (an entry of the decision log),
 * "stage" (an entry about the begin or end of a stage), "order" (a new version
 * is in force) and, once per second, "telemetry".
 *
 * The last EVENTS_KEPT events are stored with an id, from which a client that
 * reconnects continues ("Last-Event-ID").  Telemetry has no id and is not
 * repeated.  The server does not wait for a slow client: if events that the
 * client has not read are no longer stored, it gets an event "lost" and its
 * connection ends.
 *
 *    event_stream_run(es);             // Adds events, wakes clients.
 *    event_stream_wait(es);
 *
 *    client = event_client_create(es, last_event_id, wake, aux);
 *    n = event_client_read(client, buffer, size);  // 0: wait for wake().
 *    event_client_destroy(client);
 *
 * Clients must be destroyed before the stream.  wake() must not destroy one.
 * Main thread only. */

#include <stddef.h>
#include <sys/types.h>

struct controller;
struct event_client;
struct event_stream;
struct json;

#define EVENTS_KEPT 1000

struct event_stream *event_stream_create(const struct controller *);
void event_stream_destroy(struct event_stream *);
void event_stream_run(struct event_stream *);
void event_stream_wait(const struct event_stream *);

/* Adds an event of 'type' and destroys 'json', its data. */
void event_stream_add(struct event_stream *, const char *type, struct json *);

/* Adds a client.  'last' is its Last-Event-ID, or NULL for new events only. */
struct event_client *event_client_create(struct event_stream *,
                                         const char *last,
                                         void (*wake)(void *aux), void *aux);
void event_client_destroy(struct event_client *);

/* Returns the number of bytes written to 'buffer', 0 if there are none now, or
 * -1 at the end of the stream. */
ssize_t event_client_read(struct event_client *, char *buffer, size_t size);

#endif /* controller/northbound/rest/event-stream.h */
