/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPLAY_RULES_H
#define REPLAY_RULES_H 1

/* Rules of a replay: they replace agent and controller.
 *
 * On a host, the agent's programs tag the packets of jobs, the controller
 * decides their treatment, and a frame's port shows its direction.  A capture
 * contains none of this, so a person writes it as JSON: rules.schema.json, and
 * docs/interfaces.md, "Rules of a replay".
 *
 * The first rule that matches a flow decides.  A member that is missing
 * matches everything.
 *
 *    error = replay_rules_read("rules.json", &rules);
 *    switch (replay_rules_direction(rules, data, size)) { ... }
 *    slot = replay_rules_slot(rules, &key);
 *    replay_rules_destroy(rules);
 *
 * Plain data of the caller, constant once read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/classify/prefix.h"
#include "wire/shim-protocol.h"

struct replay_flow_rule {
    uint16_t slot;
    uint8_t protocol;           /* IPPROTO_*, 0: any. */
    uint16_t local_port, remote_port;   /* 0: any. */
    struct address_prefix local, remote;
};

enum replay_direction {
    REPLAY_FROM_HOST,
    REPLAY_TO_HOST,
    REPLAY_SKIP,                /* Neither: not replayed. */
};

struct replay_rules {
    uint64_t rate_bps;          /* Of the uplink. */
    uint32_t mtu;
    bool tag;
    uint8_t default_dscp;
    uint32_t min_share;         /* As in struct shim_min_share. */

    struct address_prefix *addresses;    /* The host's. */
    size_t n_addresses;
    uint8_t (*macs)[6];
    size_t n_macs;
    enum replay_direction otherwise;    /* Frames without a host's address. */

    struct shim_slot *jobs;     /* Slots 1 .. n_jobs. */
    size_t n_jobs;
    struct replay_flow_rule *flows;
    size_t n_flows, allocated_flows;
};

/* Each returns NULL or a message that begins with 'file' or 'name'. */
char *replay_rules_read(const char *file, struct replay_rules **);
char *replay_rules_parse(const char *name, const char *text,
                         struct replay_rules **);
void replay_rules_destroy(struct replay_rules *);

/* Returns the direction of a frame.  MAC addresses take precedence over those
 * of IP or ARP, and the sender's over the receiver's. */
enum replay_direction replay_rules_direction(const struct replay_rules *,
                                             const uint8_t *frame,
                                             size_t size);

/* Returns 0 if no rule matches. */
uint16_t replay_rules_slot(const struct replay_rules *,
                           const struct shim_flow_key *);

#endif /* shim/replay/rules.h */
