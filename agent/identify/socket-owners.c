/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/socket-owners.h"

#include <stdlib.h>

#include "hash.h"
#include "openvswitch/hmap.h"
#include "util.h"

/* A socket and its owner. */
struct held {
    struct hmap_node node;      /* By 'inode'. */
    uint32_t inode;
    pid_t pid;
    unsigned int look;          /* Number of the inspection that found it
                                 * last. */
};

/* An inspected process. */
struct mark {
    struct hmap_node node;      /* By 'pid'. */
    pid_t pid;
};

struct socket_owners {
    struct hmap sockets;        /* Contains struct held. */
    unsigned int look;          /* Number of the last inspection. */
};

struct socket_owners *
socket_owners_create(void)
{
    struct socket_owners *h = xzalloc(sizeof *h);

    hmap_init(&h->sockets);
    return h;
}

void
socket_owners_clear(struct socket_owners *h)
{
    struct held *held;

    HMAP_FOR_EACH_POP (held, node, &h->sockets) {
        free(held);
    }
}

void
socket_owners_destroy(struct socket_owners *h)
{
    if (h) {
        socket_owners_clear(h);
        hmap_destroy(&h->sockets);
        free(h);
    }
}

void
socket_owners_begin(struct socket_owners *h)
{
    h->look++;
}

/* Returns the process that has the socket 'inode' open, 0 if unknown. */
pid_t
socket_owners_find(const struct socket_owners *h, uint32_t inode)
{
    const struct held *held;

    HMAP_FOR_EACH_WITH_HASH (held, node, hash_int(inode, 0), &h->sockets) {
        if (held->inode == inode) {
            return held->pid;
        }
    }
    return 0;
}

/* A socket may be open in several related processes.  The first one stays its
 * owner while it has the socket open. */
void
socket_owners_add(uint32_t inode, pid_t pid, void *h_)
{
    struct socket_owners *h = h_;
    struct held *held;

    HMAP_FOR_EACH_WITH_HASH (held, node, hash_int(inode, 0), &h->sockets) {
        if (held->inode == inode) {
            if (held->look != h->look) {
                held->pid = pid;
            }
            held->look = h->look;
            return;
        }
    }
    held = xmalloc(sizeof *held);
    held->inode = inode;
    held->pid = pid;
    held->look = h->look;
    hmap_insert(&h->sockets, &held->node, hash_int(inode, 0));
}

/* Ends an inspection of the 'n' processes in 'pids': removes their sockets
 * that it has not found. */
void
socket_owners_end(struct socket_owners *h, const pid_t *pids, size_t n)
{
    struct hmap looked = HMAP_INITIALIZER(&looked);
    struct mark *marks = xcalloc(MAX(n, 1), sizeof *marks);
    struct held *held;

    for (size_t i = 0; i < n; i++) {
        marks[i].pid = pids[i];
        hmap_insert(&looked, &marks[i].node, hash_int(pids[i], 0));
    }
    HMAP_FOR_EACH_SAFE (held, node, &h->sockets) {
        const struct mark *mark;

        if (held->look == h->look) {
            continue;
        }
        HMAP_FOR_EACH_WITH_HASH (mark, node, hash_int(held->pid, 0),
                                 &looked) {
            if (mark->pid == held->pid) {
                hmap_remove(&h->sockets, &held->node);
                free(held);
                break;
            }
        }
    }
    hmap_destroy(&looked);
    free(marks);
}
