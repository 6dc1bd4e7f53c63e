/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROLLER_HOSTS_TELEMETRY_H
#define CONTROLLER_HOSTS_TELEMETRY_H 1

/* Receives the agents' telemetry and sends orders and leases to them.
 *
 * Counters and progress change too often for a database: 5 messages per
 * second and host are more write transactions than a RAFT cluster takes.  So
 * agents send them as JSON-RPC notifications: changes at once, counters as
 * often as the lease says, and once a second what has not changed.  On the
 * same connection the controller pushes the order of the host, whole, when it
 * is new, and after each connect unless the agent has it.  It sends leases: an
 * agent keeps its last order while it receives leases, and falls back to fair
 * sharing by itself when they stop.  It also sends the keys of the host's shim
 * (pair-keys.h).
 *
 * A connection is closed if a message does not conform to docs/interfaces.md;
 * the agent may connect again.  Without TLS, every client that reaches the
 * port could speak for every host, so TCP is only allowed on the loopback
 * interface.  With TLS, the common name of the client's certificate is the
 * only host it may speak for.
 *
 *    error = telemetry_create("punix:/run/...", 0, cluster, &t);
 *    telemetry_run(t, active);                 // Changes the cluster.
 *    pushed = telemetry_push(t, version);
 *    telemetry_send_leases(t, generation, version, lease_ms);
 *    telemetry_wait(t);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct pair_keys;
struct telemetry;

/* Agents at the same time, unless an option says otherwise. */
#define TELEMETRY_MAX_AGENTS 16384

char *telemetry_create(const char *remote, size_t max, struct cluster *,
                       struct telemetry **);
void telemetry_destroy(struct telemetry *);

/* Agents connect to the active controller, because only the leader's lease is
 * valid.  A standby controller, with 'open' false, closes their connections,
 * so that they try another one. */
void telemetry_run(struct telemetry *, bool open);
void telemetry_wait(const struct telemetry *);

/* Sends the orders up to 'version' that agents do not have.  Returns the
 * version up to which all have been sent theirs, -1 while some have not read
 * what came before.  Only for a leader that intent_db_may_push(). */
int64_t telemetry_push(struct telemetry *, int64_t version);
void telemetry_send_leases(struct telemetry *, int64_t generation,
                           int64_t version, int64_t lease_ms);

/* Returns NULL if 'passive', such as "pssl:6643", is allowed as the address of
 * the telemetry server, otherwise a message that the caller frees. */
char *telemetry_check_remote(const char *passive);

/* Checks a message from 'host' to the server at 'passive'.  'name' is the
 * common name of the client's certificate, NULL without one: over TLS it then
 * speaks for no host.  'known' is the host of the connection's earlier
 * messages, NULL before the first.  Returns NULL if the message is allowed,
 * otherwise an error message that the caller frees. */
char *telemetry_check_host(const char *passive, const char *name,
                           const char *known, const char *host);

/* Return the keys between shims, and forget those of 'host', which was
 * removed. */
const struct pair_keys *telemetry_keys(const struct telemetry *);
void telemetry_forget(struct telemetry *, const char *host);

/* Returns the number of connected agents that have sent a message. */
size_t telemetry_n_agents(const struct telemetry *);

#endif /* controller/hosts/telemetry.h */
