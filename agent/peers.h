/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_PEERS_H
#define AGENT_PEERS_H 1

/* Remote hosts of the shim's congestion control, and their keys.
 *
 * The shim knows which addresses have connections with each other.  The agent
 * reports them; the controller answers with keys for the remote addresses of
 * hosts that it knows (controller/hosts/pair-keys.h), which the agent hands to
 * the shim.  Keys are in no log and in no reply of the agent.  The last keys
 * stay while no controller answers, and a new shim gets them.
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

struct json;
struct shim_key;
struct shim_peer;

#define PEERS_MAX_KEYS 1024

/* All zeros initially. */
struct peers {
    struct json *report;   /* Of the last list, NULL once it is taken. */
    struct shim_key *keys; /* PEERS_MAX_KEYS, NULL before the first; also
                            * of addresses whose key was removed. */
    size_t n_keys;
};

void peers_uninit(struct peers *);

void peers_take_list(struct peers *, const struct shim_peer *, size_t n);

/* Returns what telemetry has as "peers", NULL if there is no new list. */
struct json *peers_take_report(struct peers *);

/* Takes the array of a notification "keys".  Returns false if it is malformed;
 * the keys before the error count. */
bool peers_take_keys(struct peers *, const struct json *keys);

#endif /* agent/peers.h */
