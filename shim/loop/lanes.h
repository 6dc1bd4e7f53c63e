/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LANES_H
#define SHIM_LANES_H 1

/* All lanes but the first, as lane 0 sees them; lane.h says what they are.
 *
 *
 * Usage
 * =====
 *
 *    ls = lanes_create(&config);
 *    ...a thread for each lanes_get(ls, 1), ...
 *
 *    n = port_receive(port, frames, 32);
 *    n = lanes_share(ls, from_host, frames, n);
 *    ...treat the 'n' that are left...
 *    for (k = 1; k < n_lanes; k++) {
 *        n = lane_take_sent(lanes_get(ls, k), frames, verdicts, 32);
 *        ...queue them...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Ports, tables and misses stay the caller's.  lanes_share() and
 * lanes_wake_up() are for lane 0's thread, lanes_have_ended() and
 * lanes_add_stats() for any. */

#include <stdbool.h>
#include <stdint.h>

struct flow_table;
struct job_slots;
struct lane;
struct lanes;
struct miss;
struct port;
struct rte_mbuf;
struct shim_stats;
struct tap;
struct wake;

#define LANES_MAX 16

struct lanes_config {
    unsigned int n;             /* With lane 0: 2 to LANES_MAX. */
    struct port *host, *uplink;
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;        /* Of lane 0. */
    struct tap *tap;            /* NULL: frames are not captured. */
    bool all_arrive;            /* See struct lane_config... */
    bool tag, vxlan;            /* ...and struct forward_config. */
    const bool *ending, *ended; /* Lane 0's. */
};

struct lanes *lanes_create(const struct lanes_config *);
void lanes_destroy(struct lanes *);

struct lane *lanes_get(struct lanes *, unsigned int number);
struct wake *lanes_main_wake(struct lanes *);

uint16_t lanes_share(struct lanes *, bool from_host, struct rte_mbuf **,
                     uint16_t n);

/* Lane 0 has ended: the others are to look. */
void lanes_wake_up(struct lanes *);

bool lanes_have_ended(const struct lanes *);
void lanes_add_stats(const struct lanes *, struct shim_stats *);

#endif /* shim/loop/lanes.h */
