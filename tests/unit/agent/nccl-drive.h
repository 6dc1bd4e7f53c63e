/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NCCL_DRIVE_H
#define NCCL_DRIVE_H 1

/* Calls a network plug-in as NCCL's proxy does, without NCCL and a GPU.
 *
 * The ranks of a job form a ring.  A collective is cut into chunks, of which
 * NCCL_DEPTH are under way; a rank forwards what it has received.  The proxy
 * of a rank is a thread that calls ring_progress() for all its collectives in
 * turn, and tries again what a plug-in refuses.  Each chunk has a number, by
 * which a lost or late one is found: all errors abort.
 *
 *    nccl_net_open(&net, dlopen(...), 12);
 *    ring_connect(ranks, n);
 *    while (!ring_progress(&ranks[0], &op)) continue;
 *
 * A rank and an op belong to one thread, but 'n_posted' and 'n_received'. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_MAX_DEVICES 8
#define NCCL_DEPTH 4
#define NCCL_CHUNK (128 * 1024)

/* Places in the table of a plug-in, versions 8 to 12. */
enum {
    NCCL_NAME,
    NCCL_INIT,
    NCCL_DEVICES,
    NCCL_PROPERTIES,
    NCCL_LISTEN,
    NCCL_CONNECT,
    NCCL_ACCEPT,
    NCCL_ISEND = 10,
    NCCL_IRECV,
    NCCL_TEST = 13,
    NCCL_CLOSE_SEND,
    NCCL_CLOSE_RECV,
    NCCL_CLOSE_LISTEN,
    NCCL_MAX_MEMBERS = 22
};

struct nccl_net {
    void *const *table;
    int version;
    void *context; /* Since version 11. */
};

/* Opens a version, and initialises it.  Returns false without one. */
bool nccl_net_open(struct nccl_net *, void *library, int version);

/* The same for a copy of the file 'path', as DIR/I.so, which has a state of
 * its own, as in a process of 'job'. */
bool nccl_net_open_copy(struct nccl_net *, const char *path, const char *dir,
                        int i, char job, int version);

struct ring_rank {
    struct nccl_net *net;
    int device, rank, n_ranks;
    void *send, *recv;
    uint64_t n_sent, n_expected; /* Chunks. */
    char out[NCCL_DEPTH][NCCL_CHUNK], in[NCCL_DEPTH][NCCL_CHUNK];
    _Atomic uint64_t n_posted, n_received; /* Bytes. */
};

void ring_connect(struct ring_rank *const ranks[], int n);

enum ring_kind { ALL_REDUCE, ALL_GATHER, BROADCAST, SHIFT, N_KINDS };

struct ring_op {
    enum ring_kind kind;
    int root;            /* Of a broadcast. */
    int n_chunks, bytes; /* Of a rank's part. */
    int posted, sent, expected, received;
    void *sends[NCCL_DEPTH], *recvs[NCCL_DEPTH];
};

/* Does what can be done now.  Returns true if the rank has nothing left to
 * do. */
bool ring_progress(struct ring_rank *, struct ring_op *);

#endif /* tests/unit/agent/nccl-drive.h */
