/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_H
#define SHIM_H 1

/* A shim: creates its tables, ports, loop and control socket, and runs it.
 *
 * Each part of a shim is a module of its own.  This one creates them in an
 * order that lets another shim forward until the last moment (see takeover.h).
 * The main thread forwards packets; the control thread serves the agent,
 * checks the ports, and ends the loop on a signal.
 *
 *    error = eal_init(&eal, huge, shim_pool_bytes(&s.options, huge));
 *    error = shim_create(&s);
 *    error = error ? error : shim_run(&s);           // Until a signal.
 *    shim_destroy(&s);
 *
 * The caller sets 'options', 'boot_id' and 'signal_fd', and the rest to zero.
 * Messages belong to the caller.  The main thread. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/options.h"
#include "shim/takeover.h"

struct bursts;
struct flow_cache;
struct forward;
struct job_slots;
struct loop;
struct port;
struct rte_mempool;
struct server;

struct shim {
    struct options options;
    uint64_t boot_id;
    struct rte_mempool *pool;
    struct port *host, *uplink;
    struct flow_cache *flows;
    struct job_slots *slots;
    struct bursts *bursts;
    struct forward *forward;
    struct loop *loop;
    struct server *server;
    struct takeover old; /* Connection to the shim to be replaced. */
    int signal_fd;
    uint64_t port_restarts;     /* Written by the control thread. */
    struct takeover_old_side old_side;  /* Used by the control thread. */
};

/* Returns the bytes of memory for the packets of a shim. */
uint64_t shim_pool_bytes(const struct options *, bool huge);

char *shim_create(struct shim *);
void shim_destroy(struct shim *);
char *shim_run(struct shim *);

/* Logs to standard error. */
void shim_log(const struct shim *, const char *, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* shim/shim.h */
