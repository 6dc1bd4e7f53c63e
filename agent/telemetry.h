/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_TELEMETRY_H
#define AGENT_TELEMETRY_H 1

/* Telemetry stream to the controller.
 *
 * Values that change five times a second are not stored in a database.  They
 * go directly to the active controller as JSON-RPC notifications
 * (docs/interfaces.md), and its leases and keys arrive on the same stream.  A
 * message that cannot be sent at once is dropped, because the next one is
 * newer.
 *
 *    tm = telemetry_create(remote, on_lease, on_keys, aux);
 *    telemetry_run(tm);
 *    telemetry_send(tm, telemetry_compose(agent, false));
 *    telemetry_wait(tm);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct job;
struct json;
struct telemetry;

/* Notification of the controller, once a second. */
struct telemetry_lease {
    int64_t generation;         /* Generation whose order is valid. */
    int64_t lease_ms;           /* Validity of the order, in ms from now. */
    int64_t report_ms;          /* For report_set_window(), 0 if not sent. */
    bool pairs;                 /* See links.h. */
};

/* Returns false if a newer controller is known; then the stream connects to
 * the next remote. */
typedef bool telemetry_lease_func(const struct telemetry_lease *, void *aux);

/* Takes keys for the shim, see peers.h.  Returns false if they are
 * malformed. */
typedef bool telemetry_keys_func(const struct json *keys, void *aux);

struct telemetry *telemetry_create(const char *remotes, telemetry_lease_func *,
                                   telemetry_keys_func *, void *aux);
void telemetry_destroy(struct telemetry *);

void telemetry_run(struct telemetry *);
void telemetry_wait(struct telemetry *);

/* Takes ownership of 'params'. */
void telemetry_send(struct telemetry *, struct json *params);

/* Returns what the agent reports, with the bytes to each address if
 * 'pairs'. */
struct json *telemetry_compose(const struct agent *, bool pairs);
struct json *telemetry_compose_job(const struct job *);

bool telemetry_is_connected(const struct telemetry *);

/* Returns whether it is connected, and the numbers of messages. */
struct json *telemetry_to_json(const struct telemetry *);

#endif /* agent/telemetry.h */
