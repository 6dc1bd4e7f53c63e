/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PAIR_KEYS_H
#define PAIR_KEYS_H 1

/* Keys between shims: which two hosts may exchange messages.
 *
 * A key that all hosts have lets one host forge messages of all, so each pair
 * of hosts has a key of its own: a hash of the two names under a master key.
 * Each leader makes a random master key, and another one each hour, and keeps
 * it in memory only.  A host gets the keys of the hosts that it has
 * connections with, on its telemetry connection and nowhere else, so that with
 * them it can write messages about flows that end at it, and no others.
 *
 * An agent reports the addresses of its host that its shim sees, and those of
 * its peers.  An address belongs to the host that reports it: with TLS, that
 * of the certificate.  If two hosts report one, neither is believed: the peers
 * lose the key for this address, and there is an alarm for as long.
 *
 *    pair_keys_renew(pk);                        // A leader; hourly.
 *    pair_keys_learn(pk, report, first);         // Each telemetry message.
 *    changes = pair_keys_take(pk, "h0");         // To that host, if not NULL.
 *    pair_keys_forget(pk, "h0");                 // It is no host any more.
 *
 * A host keeps the keys that are not mentioned: those of a host that this
 * leader does not know yet stay as the previous leader gave them.  If a host
 * is revoked, that could be its key, which the previous leader had no time to
 * take away: then the keys of addresses that no host has reported to this
 * leader within PAIR_KEYS_GRACE_MS end.
 *
 * It also counts what shims refuse (struct shim_peer), for an alarm with the
 * names of hosts.  Main thread only. */

#include <stdbool.h>

/* Agents report to a new leader within this time. */
#define PAIR_KEYS_GRACE_MS 4000

struct json;
struct pair_keys;
struct telemetry_report;

struct pair_keys *pair_keys_create(void);
void pair_keys_destroy(struct pair_keys *);

/* Makes another master key.  pair_keys_run() does so hourly; 'revoked': there
 * is a host that an operator has revoked. */
void pair_keys_renew(struct pair_keys *);
void pair_keys_run(struct pair_keys *, bool revoked);
void pair_keys_wait(const struct pair_keys *);

/* Handles a report.  'first': of a connection, as the agent has no keys. */
void pair_keys_learn(struct pair_keys *, const struct telemetry_report *,
                     bool first);
void pair_keys_forget(struct pair_keys *, const char *host);

/* Changes when there may be something for other hosts than those that have
 * reported since; never 0. */
unsigned int pair_keys_seqno(const struct pair_keys *);

/* Returns what 'host' does not have yet, an array of docs/interfaces.md, NULL
 * if there is nothing.  The caller has to send it. */
struct json *pair_keys_take(struct pair_keys *, const char *host);

/* Appends the alarms. */
void pair_keys_alarms(const struct pair_keys *, struct json *alarms);

#endif /* controller/hosts/pair-keys.h */
