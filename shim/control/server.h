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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct bursts;
struct flow_table;
struct job_slots;
struct miss;
struct server;
struct tap;

#define SERVER_MAX_PEERS 16
#define SERVER_MAX_FDS (SERVER_MAX_PEERS + 2)

struct server_config {
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;
    struct bursts *bursts;      /* NULL: nothing is known of them. */
    struct tap *tap;            /* NULL: there are no captures. */
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

    /* Optional.  take_over() does a step of struct shim_take_over and returns
     * 0 or a positive errno; it fills in of the state what the tables do not
     * know. */
    void (*get_ports)(void *aux, struct shim_ports *);
    int (*take_over)(void *aux, uint32_t step, struct shim_state *);

    /* Optional.  Writes the body of SHIM_CONNECTIONS's reply, for which there
     * is room in any message, and its size.  Returns 0 or a positive errno. */
    int (*get_connections)(void *aux, void *body, size_t *size);

    /* Somebody may listen on the socket: then it stays his until
     * server_publish(). */
    bool succeeds;
};

/* Returns NULL or a malloc()'d message that begins with 'path'.  A socket that
 * nobody listens on is replaced; one that somebody does is an error. */
char *server_create(const char *path, const struct server_config *,
                    struct server **);
void server_destroy(struct server *);

/* Puts the socket of a server that succeeds another in its place.  Returns
 * NULL or a malloc()'d message. */
char *server_publish(struct server *);

/* Leaves the socket's name alone from now on: it is a successor's. */
void server_abandon(struct server *);

int server_wait(struct server *, struct pollfd *, int max);
void server_run(struct server *);

/* After how many milliseconds server_run() should be called even if there is
 * no event, at most 'max'. */
int server_timeout(const struct server *, int max);

#endif /* shim/control/server.h */
