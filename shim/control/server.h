/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_SERVER_H
#define SHIM_SERVER_H 1

/* The shim's end of its control socket.
 *
 *
 * Motivation
 * ==========
 *
 * The agent fills the tables and reads the counters here, see protocol.h.
 * Other processes of the host may try to talk to it, so the socket has mode
 * 0600, a peer must be root or the shim's own user, and no message can do more
 * than end its own connection.  A peer that does not read its replies loses
 * its connection before it costs much memory.
 *
 *
 * Usage
 * =====
 *
 *    error = server_create(path, &config, &server);
 *    for (;;) {
 *        n = server_wait(server, fds, SERVER_MAX_FDS);
 *        ...poll fds, and others...
 *        server_run(server);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The tables and what 'aux' points to stay the caller's.  One thread, the one
 * that changes the tables. */

#include <poll.h>
#include <stdint.h>

#include "shim/control/protocol.h"

struct flow_table;
struct job_slots;
struct miss;
struct server;

#define SERVER_MAX_PEERS 16
#define SERVER_MAX_FDS (SERVER_MAX_PEERS + 2)

struct server_config {
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;
    uint64_t boot_id;
    uint32_t mtu;

    /* The rest of the shim.  get_stats() need not fill in what the tables
     * know. */
    void *aux;
    void (*get_stats)(void *aux, struct shim_stats *);
    uint64_t (*get_rate)(void *aux);
    void (*set_rate)(void *aux, uint64_t bps);
    void (*set_guard)(void *aux, uint32_t share);
    void (*set_congestion)(void *aux, const struct shim_congestion *);
    uint64_t (*now)(void);      /* Nanoseconds, the tables' clock. */
};

/* Returns NULL or a malloc()'d message that begins with 'path'.  A socket that
 * nobody listens on is replaced; one that somebody does is an error. */
char *server_create(const char *path, const struct server_config *,
                    struct server **);
void server_destroy(struct server *);

int server_wait(struct server *, struct pollfd *, int max);
void server_run(struct server *);

#endif /* shim/control/server.h */
