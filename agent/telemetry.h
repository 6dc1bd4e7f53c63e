/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_TELEMETRY_H
#define AGENT_TELEMETRY_H 1

/* Telemetry stream to the controller, and the shim's remote hosts, which it
 * tells and gets keys for.
 *
 * Values that change five times a second are not stored in a database.  They
 * go directly to the active controller as JSON-RPC notifications
 * (docs/interfaces.md), and its orders, leases and keys arrive on the same
 * stream.  A
 * message that cannot be sent at once is dropped, because the next one is
 * newer.
 *
 * A controller of many hosts spends its time on reading reports.  So a report
 * has only what is new: the jobs with a change, and once a second everything.
 * Bytes alone are news as often as the lease says.  The first reports of a
 * connection are whole, and so are all of them if the lease, of an older
 * controller, does not say.
 *
 *    tm = telemetry_create(remote, on_lease, on_keys, aux);
 *    telemetry_run(tm);
 *    if (...TELEMETRY_MS have passed...) {
 *        telemetry_report(tm, agent, pairs, peers_take_report(&peers));
 *    }
 *    telemetry_wait(tm);
 *
 * The shim knows which addresses have connections with each other.  The agent
 * reports them; the controller replies with keys for the remote addresses of
 * hosts that it knows (controller/hosts/pair-keys.h), which the agent hands to
 * the shim.  Keys are in no log and in no reply of the agent.  The last keys
 * stay while no controller replies, and a new shim gets them.
 *
 * A process that may write packets can send with any source, so that the shim
 * sees addresses that are not this host's.  Only those are reported that the
 * kernel delivers on this host, or sends elsewhere than to the remote host: to
 * a pod.
 *
 *    peers_take_list(&peers, list, n);           // From the shim.
 *    json = peers_take_report(&peers);           // To the controller.
 *    if (peers_take_keys(&peers, keys)) {        // From the controller.
 *        actuator_set_keys(actuator, peers.keys, peers.n_keys);
 *    }
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct job;
struct job_reported;
struct json;
struct shim_key;
struct shim_peer;
struct telemetry;

#define TELEMETRY_MS 200         /* Between two reports of what changes. */
#define TELEMETRY_REPEAT_MS 1000 /* Of what does not. */

/* Notification of the controller, once a second. */
struct telemetry_lease {
    int64_t generation;         /* Generation that has the valid order. */
    int64_t lease_ms;           /* Validity of the order, in ms from now. */
    int64_t report_ms;          /* For report_set_window(), 0 if not sent. */
    int64_t counters_ms;        /* Between two reports of a job with new bytes
                                 * and no other change; 0 if not sent: each
                                 * report has everything. */
    bool pairs;                 /* See links.h. */
};

/* Returns false if a newer controller is known; then the stream connects to
 * the next remote. */
typedef bool telemetry_lease_func(const struct telemetry_lease *, void *aux);

/* Takes keys for the shim.  Returns false if they are
 * malformed. */
typedef bool telemetry_keys_func(const struct json *keys, void *aux);

/* Takes an order.  Returns NULL or a message that the caller frees. */
typedef char *telemetry_order_func(const struct json *, void *aux);

struct telemetry *telemetry_create(const char *remotes, telemetry_lease_func *,
                                   telemetry_keys_func *, void *aux);
void telemetry_take_orders(struct telemetry *, telemetry_order_func *);
void telemetry_destroy(struct telemetry *);

void telemetry_run(struct telemetry *);
void telemetry_wait(struct telemetry *);

/* Takes ownership of 'params'. */
bool telemetry_send(struct telemetry *, struct json *params);

/* Reports what the controller does not know yet: with 'pairs' also the bytes
 * to each address, and 'peers', of which it takes ownership, unless NULL. */
void telemetry_report(struct telemetry *, const struct agent *, bool pairs,
                      struct json *peers);
struct json *telemetry_compose_job(const struct job *);

/* Returns true if a job that was reported as 'reported' must be reported as
 * 'now'; 'counters_ms' is as in the last lease.  Bytes after a pause begin a
 * transfer, and wait for nothing. */
bool telemetry_is_due(const struct job_reported *reported,
                      const struct job_reported *now, int64_t counters_ms);

bool telemetry_is_connected(const struct telemetry *);

/* Returns whether it is connected, and the numbers of messages. */
struct json *telemetry_to_json(const struct telemetry *);

#define PEERS_MAX_KEYS 1024

/* All zeros initially. */
struct peers {
    struct json *report;   /* Of the last list, NULL once it is taken. */
    struct shim_key *keys; /* PEERS_MAX_KEYS, NULL before the first; also of
                            * addresses that have no key any more. */
    size_t n_keys;
};

void peers_uninit(struct peers *);

void peers_take_list(struct peers *, const struct shim_peer *, size_t n);

/* Returns what telemetry has as "peers", NULL if there is no new list. */
struct json *peers_take_report(struct peers *);

/* Takes the array of a notification "keys".  Returns false if it is malformed;
 * the keys before the error count. */
bool peers_take_keys(struct peers *, const struct json *keys);

#endif /* agent/telemetry.h */
