/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GROUP_SERVER_H
#define GROUP_SERVER_H 1

/* The server of one group of workers, under the scheme "groups".
 *
 * It pushes the mean of its workers' gradients to the central server and gives
 * them the weights that come back.  So the traffic of a group stays near it,
 * and the central server receives one gradient per group.
 *
 * The central server assigns the workers, and may assign others at any time.
 * A group server has no model: it keeps the gradients of one step, their mean
 * and the weights that it passes on, and nothing beyond the step.  When it
 * dies, its workers push the gradients that did not count to another one.
 * After a lost connection to the central server it enlists as a new group
 * server.
 *
 * group_server_run() blocks until the end; one thread. */

#include <stdint.h>

struct central_class;
struct control;

struct group_server_config {
    const char *central;        /* "HOST:PORT". */
    const char *address;        /* To listen at; workers connect to it. */
    uint16_t port;              /* 0: the kernel's choice. */
    const char *congestion;     /* TCP congestion control, or NULL. */
    int64_t reconnect_timeout_us;       /* Of the central server. */
    int64_t heartbeat_timeout_us;       /* Of the central server; 0: silence is
                                         * never too long. */
    struct control *control;    /* Its end, or stop, ends the server. */
};

/* For struct ps_server_config: the central server's side. */
extern const struct central_class central_server;

/* Returns NULL if the training ended, or the server was told to, otherwise a
 * message. */
char *group_server_run(const struct group_server_config *);

#endif /* trainer/groups/group-server.h */
