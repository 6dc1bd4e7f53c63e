/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PEER_NET_PRIVATE_H
#define PEER_NET_PRIVATE_H 1

/* What peer-net-join.c, which connects the peers, and peer-net.c, which serves
 * them, share. */

#include <pthread.h>

#include "trainer/net/channel.h"
#include "trainer/net/link.h"
#include "trainer/net/mesh.h"

struct peer_end {
    struct channel channel;     /* Of a lower rank; else only its link. */
    bool pending;               /* The link has a message nobody took. */
    bool present;               /* Neither dead nor ended. */
    int64_t heard_us;           /* When bytes came last, or could not, */
    uint64_t n_heard;           /* and how many had come then. */
    bool drained;               /* It has nothing until poll() says so. */
};

struct peer_net {
    struct peer_net_config config;
    struct peer_end ends[PEER_NET_MAX];
    const struct peer_net_class *class;
    void *aux;

    pthread_t thread;
    bool started, stopping, retry, said_bye;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int wake_fd;                /* Something for the thread to look at. */
    int64_t beat_us;            /* The last heartbeats. */
};

/* Connects to all peers.  Returns NULL or a message. */
char *peer_net_join(struct peer_net *);

#endif /* trainer/net/mesh-private.h */
