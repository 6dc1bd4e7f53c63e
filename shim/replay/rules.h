/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPLAY_RULES_H
#define REPLAY_RULES_H 1

/* What a replay is told in place of agent and controller.
 *
 *
 * Motivation
 * ==========
 *
 * A shim is told by its agent which flow is whose, and what each job gets; by
 * its place in the network which frames the host sends.  A capture has
 * nothing of that, so a person writes it down: rules.schema.json, and
 * docs/interfaces.md, "Rules of a replay".
 *
 * Of the flow rules that fit a flow the first one decides; what they leave out
 * fits everything.
 *
 *
 * Usage
 * =====
 *
 *    error = replay_rules_read("rules.json", &rules);
 *    switch (replay_rules_direction(rules, data, size)) { ... }
 *    slot = replay_rules_slot(rules, &key);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, the caller's, immutable once read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct replay_prefix {
    uint8_t family;             /* 4 or 6; 0 fits everything. */
    uint8_t bits;               /* Of the address that count. */
    uint8_t address[16];
};

struct replay_flow_rule {
    uint16_t slot;
    uint8_t protocol;           /* IPPROTO_*, 0: any. */
    uint16_t local_port, remote_port;   /* 0: any. */
    struct replay_prefix local, remote;
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

    struct replay_prefix *addresses;    /* The host's. */
    size_t n_addresses;
    uint8_t (*macs)[6];
    size_t n_macs;
    enum replay_direction otherwise;    /* What is neither's. */

    struct shim_slot *jobs;     /* Slots 1 .. n_jobs. */
    size_t n_jobs;
    struct replay_flow_rule *flows;
    size_t n_flows, allocated_flows;
};

/* Returns NULL or a message; 'name' is what messages begin with. */
char *replay_rules_read(const char *file, struct replay_rules **);
char *replay_rules_parse(const char *name, const char *text,
                         struct replay_rules **);
void replay_rules_destroy(struct replay_rules *);

enum replay_direction replay_rules_direction(const struct replay_rules *,
                                             const uint8_t *frame,
                                             size_t size);

/* Returns 0 if the flow is no job's. */
uint16_t replay_rules_slot(const struct replay_rules *,
                           const struct shim_flow_key *);

#endif /* shim/replay/rules.h */
