/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CC_WORLD_H
#define CC_WORLD_H 1

/* Congestion control between two hosts, each with a shim or without, with a
 * clock of the test's own.
 *
 * The sender is host 2, of port 5000 + N for flow N, the receiver host 1, of
 * port 6000 + N.  A packet leaves through one shim and arrives through the
 * other (world_carry() is both); world_turn() lets time pass, world_deliver()
 * carries the shims' messages.  world_open() is a connection's beginning,
 * world_bulk() data as fast as the test says, world_obey() data of senders that
 * go as fast as they were told. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/cc.h"
#include "shim/cc/segment.h"
#include "shim/classify/classify.h"
#include "shim/classify/job-slot.h"
#include "tests/unit/cc-packets.h"

#define MBIT UINT64_C(1000000)
#define MS UINT64_C(1000000)
#define LINK (100 * MBIT)
#define GAP (MS * 13 / 100)     /* Between two packets on the full link. */

enum {
    SENDER,
    RECEIVER,
    DATA = 1448,
    MAX_QUEUES = 64,
    MAX_MESSAGES = 64,
};

/* One host's shim, and what it wanted of its egress. */
struct side {
    struct cc *cc;
    struct job_slots *slots;
    bool queue_used[MAX_QUEUES];
    uint64_t rate[MAX_QUEUES];
    uint32_t start[MAX_QUEUES];         /* Bytes, 0 if it has a rate or none
                                         * is needed... */
    uint32_t sent[MAX_QUEUES];          /* ...and what came since. */
    uint32_t n_starts;
    bool backlog[MAX_QUEUES];           /* There is more in it to come. */
    uint8_t messages[MAX_MESSAGES][1024];
    size_t sizes[MAX_MESSAGES];
    int n_messages;
};

struct world {
    struct side sides[2];
    uint64_t now;
    uint32_t stamp;
};

/* A sender that obeys what it was told. */
struct obedient {
    uint16_t port, slot;        /* The slot is what the receiver knows. */
    uint64_t wants;             /* Nanoseconds between two packets. */
    uint64_t last;              /* When it sent. */
    uint16_t queue;
};

bool side_may_send(const struct side *side, uint16_t queue);

int world_set_up(void **state);
int world_tear_down(void **state);
struct packet_spec world_spec(struct world *w, int from, uint16_t port,
                              uint8_t flags);
struct verdict world_leave(struct world *w, int from, struct cc_packet *p,
                           uint16_t slot);
bool world_arrive(struct world *w, int from, struct cc_packet *p,
                  uint16_t slot);
struct verdict world_carry(struct world *w, int from,
                           const struct packet_spec *spec,
                           struct cc_packet *p);
void world_deliver(struct world *w);
void world_turn(struct world *w, uint64_t ns);
void world_succeed(struct world *w, int who, uint64_t seed);
void world_open(struct world *w, uint16_t port);
void world_open_far(struct world *w, uint16_t port, uint64_t rtt);
uint32_t world_bulk(struct world *w, uint16_t port, int n, uint64_t ns,
                    uint16_t *queue);
struct shim_stats world_stats(const struct world *w, int side);
uint64_t obedient_rate(const struct world *w, const struct obedient *o);
void world_obey(struct world *w, struct obedient *o, int n, uint64_t ns);

#endif /* tests/unit/cc-world.h */
