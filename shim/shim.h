/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_H
#define SHIM_H 1

/* One shim: its tables, ports, loops and control socket, and their life.
 *
 *
 * Motivation
 * ==========
 *
 * Everything that a shim is made of is a module of its own.  Here they are put
 * together, in an order that lets another shim forward until the last moment
 * ("--take-over"), and run: the main thread forwards packets; the control
 * thread serves the agent, looks after the ports, and ends the loops on a
 * signal.
 *
 *
 * Usage
 * =====
 *
 *    error = eal_init(&eal, huge, shim_pool_bytes(&s.options, huge));
 *    error = shim_create(&s);
 *    error = error ? error : shim_run(&s);           // Until it ends.
 *    shim_destroy(&s);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller sets 'options', 'boot_id' and 'signal_fd', and the rest to zero.
 * Messages are the caller's.  The main thread. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/options.h"
#include "shim/loop/lanes.h"
#include "shim/takeover.h"

struct bursts;
struct flow_table;
struct forward;
struct job_slots;
struct loop;
struct miss;
struct port;
struct rte_mempool;
struct server;
struct shim_stats;
struct tap;

struct shim {
    struct options options;
    uint64_t boot_id;
    struct rte_mempool *pool;
    struct port *host, *uplink;
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;
    struct bursts *bursts;
    struct tap *tap;
    struct forward *forward;
    struct loop *loop;
    struct loop *lane_loops[LANES_MAX]; /* From 1 on, owned by 'loop'. */
    struct server *server;
    struct takeover *old;       /* To the shim that this one replaces, or
                                 * NULL. */
    int signal_fd;
    uint64_t port_restarts;     /* Written by the control thread. */
    struct takeover_old_side old_side;  /* Used by the control thread. */
};

/* Bytes of memory that the packets of a shim with these options need. */
uint64_t shim_pool_bytes(const struct options *, bool huge);

char *shim_create(struct shim *);
void shim_destroy(struct shim *);
char *shim_run(struct shim *);

void shim_get_stats(void *shim, struct shim_stats *);

/* Says something of this shim on standard error. */
void shim_say(const struct shim *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* shim/shim.h */
