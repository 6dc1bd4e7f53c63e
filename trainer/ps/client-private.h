/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_CLIENT_PRIVATE_H
#define PS_CLIENT_PRIVATE_H 1

/* What the parts of a worker's client share.
 *
 * client.c has the calls of client.h, client-send.c what leaves,
 * client-step.c the loop and what comes, client-return.c connections that are
 * opened again and the way back to a checkpoint, client-group.c what goes to a
 * group server instead. */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/net/channel.h"
#include "trainer/ps/client.h"
#include "trainer/net/frame.h"
#include "trainer/ps/group-link.h"
#include "trainer/schemes/shard.h"
#include "trainer/net/transfers.h"
#include "trainer/schemes/sync.h"

struct heartbeat;

#define CLIENT_MAX_MESSAGES 256 /* That the worker has not asked for yet. */
#define CLIENT_N_FIXED 4        /* Descriptors that are not channels'. */

struct client_server {
    struct channel channel;
    struct shard shard;
    uint64_t n_answers;         /* Weights that have come, in this epoch. */
    uint64_t iteration;         /* Of the weights it gave us last. */

    /* In this exchange, of the gradient and of the next weights: what has
     * been queued, and what has come, from here on to the shard's end. */
    size_t sent_from, got_from;
    uint64_t next;              /* Iteration of what has come. */
    uint32_t n_owed;            /* Answers that are to come. */
    struct transfers transfers;
};

struct ps_client {
    struct ps_client_config config;
    struct client_server *servers;
    struct pollfd *fds;         /* Signals, input, heartbeats, group server,
                                 * channels. */
    struct heartbeat *heartbeat;
    struct group_link *group;   /* Where gradients go instead, if nonnull. */
    bool pulled;                /* In this exchange, from the central one. */
    bool rests;                 /* And has said so to the central one. */

    /* Of the exchange that is going on. */
    struct frame push;          /* What we send; 'type' 0 if nothing. */
    const float *gradient;      /* Its vector, */
    size_t final_from;          /* which is final from here on. */
    bool complete;              /* It is, and so is 'push'. */
    bool offered;               /* By ps_client_offer(). */
    enum ps_result result;      /* Of parts that have left since, */
    char *error;                /* and why they could not. */
    float *weights;             /* NULL if no answer is expected. */
    double loss;                /* Of the iteration before, by the servers. */
    bool gone_back;             /* To a checkpoint. */
    bool opened;                /* A connection: more than the welcome may
                                 * have come with it. */
    uint32_t ahead;             /* Answers that we need not wait for. */

    struct sync_message messages[CLIENT_MAX_MESSAGES];  /* A ring. */
    size_t first_message, n_messages;
    struct sync_message incoming;
};

static inline struct client_server *
client_end(const struct ps_client *client)
{
    return client->servers + client->config.n_servers;
}

/* client.c */

/* Waits until everything is sent and all servers' ranges of 'weights' are
 * there.  '*iteration' becomes the one that the first server has us begin. */
enum ps_result client_finish(struct ps_client *, float *weights,
                             uint64_t *iteration, char **errorp);

/* client-send.c */

/* Sends 'server' its range of the first weights, or what is final and was not
 * sent of that of the gradient. */
void client_send(const struct ps_client *, struct client_server *);

/* client-step.c */

/* Waits for the control, if 'input' for its input too, and for the servers,
 * at most until 'until_us'.  Sends and receives what can be. */
enum ps_result client_step(struct ps_client *, bool input, int64_t until_us,
                           char **errorp);

/* All of the weights that answer a gradient have come, from 'server' or its
 * group server; 'last' is the frame that had the last of them. */
void client_take_answer(struct ps_client *, struct client_server *,
                        const struct frame *last);

/* client-return.c */

/* Connects to a server for the first time or again. */
char *client_open(struct ps_client *, struct client_server *,
                  int64_t timeout_us);

/* The connection to a server is broken.  Opens it again, and sends again what
 * the server does not have. */
char *client_reopen(struct ps_client *, struct client_server *);

/* All servers and we are to begin again at the same iteration.  'epochs' are
 * those that the servers have to leave; at least one has. */
char *client_start_again(struct ps_client *, const uint64_t epochs[]);

/* Whether the server's last welcome says that what we pushed is not there. */
bool client_lacks_push(const struct ps_client *,
                       const struct client_server *);

/* client-group.c */

/* Another group server has our group: the frame that has come to 'server'
 * says so. */
void client_move(struct ps_client *, struct client_server *);

/* The gradient is complete and goes to the group server, after what the
 * scheme is to know before. */
void client_send_to_group(struct ps_client *);

/* Says that our group is not to wait for us, once. */
void client_rest(struct ps_client *);

/* Talks to the group server. */
enum ps_result client_run_group(struct ps_client *, char **errorp);

#endif /* trainer/ps/client-private.h */
