/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CC_WORLD_H
#define CC_WORLD_H 1

/* Congestion control between two hosts with or without a shim, in virtual
 * time.
 *
 * The sender is host 2, port 5000 + N for flow N, the receiver host 1, port
 * 6000 + N.  A packet leaves through one shim and arrives through the other
 * (world_carry() does both); world_poll() advances the time, world_deliver()
 * carries the shims' messages.  world_open() opens a connection, world_bulk()
 * sends data at a fixed rate, world_obey() sends at the granted rates. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/cc.h"
#include "shim/cc/segment.h"
#include "shim/classify/classify.h"
#include "shim/classify/job-slot.h"
#include "tests/unit/shim/cc-packets.h"

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

/* A host's shim, and its calls of the egress. */
struct side {
    struct cc *cc;
    struct job_slots *slots;
    bool strict_switch;
    bool queue_used[MAX_QUEUES];
    uint64_t rate[MAX_QUEUES];
    uint32_t start[MAX_QUEUES];         /* Bytes that may leave before a
                                         * grant, 0: no limit. */
    uint32_t sent[MAX_QUEUES];          /* Bytes since flow_start(). */
    uint32_t n_starts;
    bool backlog[MAX_QUEUES];           /* The queue is not empty. */
    uint64_t late[MAX_QUEUES];          /* See egress_flow_late(). */
    uint8_t messages[MAX_MESSAGES][1024];
    size_t sizes[MAX_MESSAGES];
    int n_messages;
};

struct world {
    struct side sides[2];
    uint64_t now;
    uint32_t stamp;
};

/* A sender that honours its grants. */
struct obedient {
    uint16_t port, slot;        /* Slot at the receiver. */
    uint64_t wants;             /* Nanoseconds between two packets. */
    uint64_t last;              /* Time of the last packet. */
    uint16_t queue;
};

bool side_may_send(const struct side *side, uint16_t queue);

int world_set_up(void **state);
int world_set_up_strict(void **state);  /* The switch serves the ranks. */
int world_tear_down(void **state);

#define WORLD_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, world_set_up, world_tear_down, struct world *w)

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
void world_poll(struct world *w, uint64_t ns);
void world_restart(struct world *w, int host, uint64_t seed);
void world_take_over(struct world *w, int side, uint64_t seed);
void world_open(struct world *w, uint16_t port);
void world_remove_shim(struct world *w, int host);
uint16_t world_data(struct world *w, uint16_t port, bool arrives);
uint8_t world_ecn(struct world *w, uint16_t port, uint8_t ecn);
void world_open_far(struct world *w, uint16_t port, uint64_t rtt);
uint32_t world_bulk(struct world *w, uint16_t port, int n, uint64_t ns,
                    uint16_t *queue);
struct shim_stats world_stats(const struct world *w, int side);
uint64_t obedient_rate(const struct world *w, const struct obedient *o);
void world_obey(struct world *w, struct obedient *o, int n, uint64_t ns);

#endif /* tests/unit/shim/cc-world.h */
