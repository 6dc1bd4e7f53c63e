/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/agent/nccl-drive.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(EXPRESSION)                                                     \
    do {                                                                     \
        if (!(EXPRESSION)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #EXPRESSION); \
            abort();                                                         \
        }                                                                    \
    } while (0)

/* Calls member 'PLACE' of the table, a function with parameters 'LIST'. */
#define CALL(NET, PLACE, LIST, ...) \
    ((int(*) LIST)(NET)->table[PLACE])(__VA_ARGS__)

bool
nccl_net_open(struct nccl_net *net, void *library, int version)
{
    char symbol[32];
    int n, error;

    snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", version);
    net->table = dlsym(library, symbol);
    net->version = version;
    if (!net->table) {
        return false;
    }
    if (version >= 11) {
        error =
            CALL(net, NCCL_INIT, (void **, uint64_t, void *, void *, void *),
                 &net->context, 1, NULL, NULL, NULL);
    } else if (version == 10) {
        error = CALL(net, NCCL_INIT, (void *, void *), NULL, NULL);
    } else {
        error = CALL(net, NCCL_INIT, (void *), NULL);
    }
    MUST(!error);
    MUST(!CALL(net, NCCL_DEVICES, (int *), &n) && n > 0);
    return true;
}

bool
nccl_net_open_copy(struct nccl_net *net, const char *path, const char *dir,
                   int i, char job, int version)
{
    char text[512], name[] = { job, '\0' };

    setenv("STAGECOACH_JOB", name, 1);
    snprintf(text, sizeof text, "cp %s %s/%d.so", path, dir, i);
    MUST(!system(text));
    snprintf(text, sizeof text, "%s/%d.so", dir, i);
    return nccl_net_open(net, dlopen(text, RTLD_NOW | RTLD_LOCAL), version);
}

static void *
connect_to(struct ring_rank *r, void *handle)
{
    struct nccl_net *net = r->net;
    void *comm = NULL, *offload = NULL;

    if (net->version >= 11) {
        MUST(!CALL(net, NCCL_CONNECT, (void *, int, void *, void **, void **),
                   net->context, r->device, handle, &comm, &offload));
    } else if (net->version == 10) {
        MUST(!CALL(net, NCCL_CONNECT, (int, void *, void *, void **, void **),
                   r->device, NULL, handle, &comm, &offload));
    } else {
        MUST(!CALL(net, NCCL_CONNECT, (int, void *, void **, void **),
                   r->device, handle, &comm, &offload));
    }
    return comm;
}

void
ring_connect(struct ring_rank *const ranks[], int n)
{
    for (int i = 0; i < n; i++) {
        struct ring_rank *to = ranks[(i + 1) % n];
        void *listener, *offload = NULL;
        char handle[128];

        ranks[i]->rank = i;
        ranks[i]->n_ranks = n;
        if (to->net->version >= 11) {
            MUST(!CALL(to->net, NCCL_LISTEN, (void *, int, void *, void **),
                       to->net->context, to->device, handle, &listener));
        } else {
            MUST(!CALL(to->net, NCCL_LISTEN, (int, void *, void **),
                       to->device, handle, &listener));
        }
        while (!ranks[i]->send || !to->recv) {
            if (!ranks[i]->send) {
                ranks[i]->send = connect_to(ranks[i], handle);
            }
            MUST(!CALL(to->net, NCCL_ACCEPT, (void *, void **, void **),
                       listener, &to->recv, &offload));
        }
        MUST(!CALL(to->net, NCCL_CLOSE_LISTEN, (void *), listener));
    }
}

static void *
post_send(struct ring_rank *r, char *data, size_t n)
{
    void *request = r; /* To be replaced in any case. */

    if (r->net->version >= 10) {
        MUST(!CALL(r->net, NCCL_ISEND,
                   (void *, void *, size_t, int, void *, void *, void **),
                   r->send, data, n, 0, NULL, NULL, &request));
    } else if (r->net->version == 9) {
        MUST(!CALL(r->net, NCCL_ISEND,
                   (void *, void *, size_t, int, void *, void **), r->send,
                   data, n, 0, NULL, &request));
    } else {
        MUST(!CALL(r->net, NCCL_ISEND,
                   (void *, void *, int, int, void *, void **), r->send, data,
                   (int) n, 0, NULL, &request));
    }
    return request;
}

static void *
post_recv(struct ring_rank *r, char *data)
{
    void *to = data, *memory = NULL, *event = NULL, *request = NULL;
    size_t size = NCCL_CHUNK;
    int size_8 = NCCL_CHUNK, tag = 0;

    if (r->net->version >= 10) {
        MUST(!CALL(
            r->net, NCCL_IRECV,
            (void *, int, void **, size_t *, int *, void **, void **, void **),
            r->recv, 1, &to, &size, &tag, &memory, &event, &request));
    } else if (r->net->version == 9) {
        MUST(!CALL(r->net, NCCL_IRECV,
                   (void *, int, void **, size_t *, int *, void **, void **),
                   r->recv, 1, &to, &size, &tag, &memory, &request));
    } else {
        MUST(!CALL(r->net, NCCL_IRECV,
                   (void *, int, void **, int *, int *, void **, void **),
                   r->recv, 1, &to, &size_8, &tag, &memory, &request));
    }
    return request;
}

/* Returns true if 'request' is done, and stores its size. */
static bool
is_done(struct ring_rank *r, void *request, int *size)
{
    int done;

    MUST(!CALL(r->net, NCCL_TEST, (void *, int *, int *), request, &done,
               size));
    return done;
}

/* Returns the chunks that the rank sends and receives, and how many of those
 * it sends are its own. */
static void
plan(const struct ring_rank *r, const struct ring_op *op, int *sends,
     int *recvs, int *own)
{
    int others = r->n_ranks - 1;
    int from_root = (r->rank - op->root + r->n_ranks) % r->n_ranks;

    *own = op->n_chunks;
    switch (op->kind) {
    case ALL_REDUCE:
        *sends = *recvs = 2 * others * op->n_chunks;
        break;
    case ALL_GATHER:
        *sends = *recvs = others * op->n_chunks;
        break;
    case BROADCAST:
        *sends = from_root < others ? op->n_chunks : 0;
        *recvs = from_root ? op->n_chunks : 0;
        *own = from_root ? 0 : op->n_chunks;
        break;
    default:
        *sends = *recvs = op->n_chunks;
        break;
    }
}

bool
ring_progress(struct ring_rank *r, struct ring_op *op)
{
    int sends, recvs, own, size;

    plan(r, op, &sends, &recvs, &own);
    if (op->expected < recvs && op->expected < op->received + NCCL_DEPTH) {
        void *request = post_recv(r, r->in[op->expected % NCCL_DEPTH]);

        if (request) {
            op->recvs[op->expected++ % NCCL_DEPTH] = request;
        }
    }
    if (op->posted < sends && op->posted < op->sent + NCCL_DEPTH
        && op->posted < op->received + own) {
        char *data = r->out[op->posted % NCCL_DEPTH];
        void *request;

        memcpy(data, &r->n_sent, sizeof r->n_sent);
        request = post_send(r, data, op->bytes);
        if (request) {
            op->sends[op->posted++ % NCCL_DEPTH] = request;
            r->n_sent++;
            r->n_posted += op->bytes;
        }
    }
    if (op->sent < op->posted
        && is_done(r, op->sends[op->sent % NCCL_DEPTH], &size)) {
        op->sent++;
    }
    if (op->received < op->expected
        && is_done(r, op->recvs[op->received % NCCL_DEPTH], &size)) {
        MUST(size == op->bytes
             && !memcmp(r->in[op->received % NCCL_DEPTH], &r->n_expected,
                        sizeof r->n_expected));
        r->n_expected++;
        op->received++;
        r->n_received += size;
    }
    return op->sent == sends && op->received == recvs;
}
