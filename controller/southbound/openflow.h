/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OPENFLOW_H
#define OPENFLOW_H 1

/* One OpenFlow 1.3 switch, kept as the policy's levels want it.
 *
 *
 * Motivation
 * ==========
 *
 * A switch serves the levels in order if it puts each DSCP value into the
 * queue of its level.  This module keeps a flow for each level in the switch,
 * "DSCP d -> queue q, then as always", and touches nothing that is not its
 * own: its flows carry its cookie, the difference between what is there and
 * what is wanted is all that is sent, and a lost connection changes nothing in
 * the switch.
 *
 * Two controllers that both believe to be active are told apart by the switch:
 * the first message of each connection asks for the primary role with the
 * leader's generation, and a switch refuses an older one.
 *
 *
 * Usage
 * =====
 *
 *    struct openflow *of = openflow_create("unix:/run/.../br0.mgmt");
 *    openflow_set(of, generation, queues, n);    // As often as one likes.
 *    for (;;) {
 *        openflow_run(of);
 *        openflow_wait(of);
 *        poll_block();
 *    }
 *
 * Until the first openflow_set() it does not connect: a standby leaves the
 * switches alone.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  A place with a slow switch costs nothing: requests in
 * flight are one dump or one batch of changes. */

#include <stddef.h>
#include <stdint.h>

struct json;
struct openflow;

/* Packets with 'dscp' go to 'queue'. */
struct openflow_queue {
    uint8_t dscp;               /* 0 .. 63. */
    uint32_t queue;             /* As the switch numbers them. */
};

#define OPENFLOW_MAX_QUEUES 64

struct openflow *openflow_create(const char *target);
void openflow_destroy(struct openflow *);

void openflow_set(struct openflow *, uint64_t generation,
                  const struct openflow_queue *, size_t n);

void openflow_run(struct openflow *);
void openflow_wait(struct openflow *);

/* {"switch", "state", "flows": [{"dscp", "queue", "packets", "bytes"}]};
 * 'state' is "away", "refused" (another controller is newer), "writing" or
 * "in sync". */
struct json *openflow_status(const struct openflow *);

#endif /* controller/southbound/openflow.h */
