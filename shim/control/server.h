/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_SERVER_H
#define SHIM_SERVER_H 1

/* Server of the shim's control socket: see wire/shim-protocol.h.
 *
 * The agent writes the job slots and reads the counters here.  Other processes
 * of the host may try to connect, so the socket has mode 0600, a client must
 * be root or the shim's own user, and an invalid message can do no more than
 * end its connection.  A client that does not read its replies is disconnected
 * before they cost much memory.
 *
 *    error = server_create(path, &config, &server);
 *    for (;;) {
 *        n = server_wait(server, fds);
 *        ...poll 'n' elements of fds...
 *        server_run(server);
 *    }
 *
 * The slots and what 'aux' points to stay the caller's.  One thread, which is
 * the only one that changes the slots. */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct bursts;
struct cc;
struct flow_cache;
struct job_slots;
struct server;

#define SERVER_MAX_CLIENTS 16
#define SERVER_MAX_FDS (SERVER_MAX_CLIENTS + 1)

struct server_config {
    struct job_slots *slots;
    struct flow_cache *flows;
    struct bursts *bursts;
    struct cc *cc; /* NULL for none. */
    uint64_t boot_id;
    uint32_t mtu;

    /* The rest of the shim.  get_stats() fills in the counters of all but
     * the slots. */
    void *aux;
    void (*get_stats)(void *aux, struct shim_stats *);
    uint64_t (*get_rate)(void *aux);
    void (*set_min_share)(void *aux, uint32_t share);
    uint64_t (*now)(void); /* Nanoseconds, the clock of the slots. */

    /* take_over() executes a step of struct shim_take_over, returns 0 or a
     * positive errno, and fills in the state that is not in the slots. */
    void (*get_ports)(void *aux, struct shim_ports *);
    int (*take_over)(void *aux, uint32_t step, struct shim_state *);

    /* Writes the null-terminated reply to SHIM_ABOUT. */
    void (*get_about)(void *aux, char *text, size_t size);

    /* Stores the body of the reply to SHIM_CONNECTIONS, for which
     * any message has space, and its size.  Returns 0 or a positive errno. */
    int (*get_connections)(void *aux, void *body, size_t *size);

    /* Creates the socket as PATH.new, which server_publish() renames to PATH:
     * until then that is another shim's socket. */
    bool publish_later;
};

/* Returns NULL or a message that begins with 'path'.  Replaces a socket on
 * which no process listens; fails if one does. */
char *server_create(const char *path, const struct server_config *,
                    struct server **);
void server_destroy(struct server *);

/* Does nothing without 'publish_later'.  Returns NULL or a message. */
char *server_publish(struct server *);

/* Makes server_destroy() keep the socket's file, which now belongs to the
 * shim that has taken over. */
void server_abandon(struct server *);

/* Fills in the events to wait for and returns their number. */
int server_wait(struct server *, struct pollfd fds[SERVER_MAX_FDS]);

/* Does all that is possible without waiting.  Must be called after each
 * event. */
void server_run(struct server *);

#endif /* shim/control/server.h */
