/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_CENTRAL_PRIVATE_H
#define PS_CENTRAL_PRIVATE_H 1

/* What the parts of a central server share.
 *
 * central.c gives groups to group servers, which it calls hosts, and weights;
 * central-frames.c takes what they say. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trainer/ps/server-private.h"

struct group_children;

struct host {
    struct peer *peer;          /* NULL if the place is unused. */
    char *address;              /* Where workers reach it. */
    pid_t pid;                  /* As it says. */
    int group;                  /* Or -1. */
    bool owed;                  /* It has pushed and gets weights. */
    int64_t heard_us;
};

/* A group of the plan. */
struct hosting {
    int host;                   /* Or -1. */
    uint64_t generation;        /* 0 without a host. */
};

struct central {
    struct group_children *children;    /* NULL: others start servers. */
    struct host *hosts;
    int n_hosts;                /* Places. */
    struct hosting *groups;
    bool *rests;                /* Workers, as their hosts know. */
    uint64_t n_plans;           /* The plan that 'groups' are of. */
    uint64_t generation;        /* The last one. */
    int n_losses;
    int64_t lacking_us;         /* Since when a group has no host; 0: all
                                 * have. */
};

static inline struct host *
central_host(const struct server *server, const struct peer *peer)
{
    return &server->central->hosts[peer->host - 1];
}

#endif /* trainer/groups/central-private.h */
