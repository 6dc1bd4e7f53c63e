/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/held-sockets.h"

#include <stdlib.h>

#include "hash.h"
#include "openvswitch/hmap.h"
#include "util.h"

/* A socket that a process has open. */
struct held {
    struct hmap_node node;      /* By 'inode'. */
    uint32_t inode;
    pid_t pid;
    unsigned int look;          /* That saw it last. */
};

/* A process that was looked at. */
struct mark {
    struct hmap_node node;      /* By 'pid'. */
    pid_t pid;
};

struct held_sockets {
    struct hmap sockets;        /* Contains struct held. */
    unsigned int look;          /* Number of the last look. */
};

struct held_sockets *
held_sockets_create(void)
{
    struct held_sockets *h = xzalloc(sizeof *h);

    hmap_init(&h->sockets);
    return h;
}

void
held_sockets_clear(struct held_sockets *h)
{
    struct held *held;

    HMAP_FOR_EACH_POP (held, node, &h->sockets) {
        free(held);
    }
}

void
held_sockets_destroy(struct held_sockets *h)
{
    if (h) {
        held_sockets_clear(h);
        hmap_destroy(&h->sockets);
        free(h);
    }
}

void
held_sockets_begin(struct held_sockets *h)
{
    h->look++;
}

/* The process that has the socket 'inode' open, 0 if none is known. */
pid_t
held_sockets_holder(const struct held_sockets *h, uint32_t inode)
{
    const struct held *held;

    HMAP_FOR_EACH_WITH_HASH (held, node, hash_int(inode, 0), &h->sockets) {
        if (held->inode == inode) {
            return held->pid;
        }
    }
    return 0;
}

/* A socket may be open in several processes, which are related; the first one
 * keeps it while it has it. */
void
held_sockets_see(uint32_t inode, pid_t pid, void *h_)
{
    struct held_sockets *h = h_;
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

/* Ends a look at the 'n' processes in 'pids': what it did not see they no
 * longer have open. */
void
held_sockets_end(struct held_sockets *h, const pid_t *pids, size_t n)
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
