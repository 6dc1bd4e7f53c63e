/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_SERVER_PRIVATE_H
#define SHIM_SERVER_PRIVATE_H 1

/* What the files of server.h share: server.c has the socket and who comes to
 * it, server-peer.c what goes to and fro with those who are there.
 *
 * Only those two include this. */

#include <stdbool.h>

#include "wire/buffer.h"
#include "shim/control/server.h"

struct peer {
    int fd;                     /* -1: this element is free. */
    bool subscribed;            /* To misses. */
    bool captures;
    bool closing;               /* When its replies are sent. */
    struct buffer rx, tx;
};

struct server {
    struct server_config config;
    char *path;                 /* To be removed at the end, or NULL. */
    char *published_path;       /* To become the path, or NULL. */
    int fd;                     /* Listens. */
    bool captures;              /* For one of: */
    struct peer peers[SERVER_MAX_PEERS];
};

/* server-peer.c: */
void server_peer_run(struct server *, struct peer *);
void server_peer_close(struct peer *);
void server_send_events(struct server *);

#endif /* shim/control/server-private.h */
