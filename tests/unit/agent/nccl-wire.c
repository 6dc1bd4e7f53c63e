/* SPDX-License-Identifier: Apache-2.0 */

/* Network plug-in of NCCL within a process, for tests: versions 8 to 12.
 *
 * A message is delivered when its link has carried it, in the order in which
 * all connections have posted: each device is a link, of the rate that
 * wire_set_rate() sets, 0 for no limit.  A connection takes NCCL_DEPTH sends,
 * then refuses.  As some plug-ins do, it completes its tables only when it is
 * initialised.  Thread-safe. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/agent/nccl-drive.h"

#define N_REQUESTS 32

struct request {
    struct pipe *pipe;
    uint64_t number; /* Of its direction. */
    bool is_send;
};

struct message {
    char *data;
    size_t size;
    uint64_t due; /* In ns. */
};

/* A connection; the sender's has 'device'. */
struct pipe {
    struct pipe *next; /* In 'pipes'. */
    pthread_mutex_t mutex;
    int device;
    struct message out[N_REQUESTS], in[N_REQUESTS];
    uint64_t n_out, n_in, n_done;
    struct request requests[2][N_REQUESTS];
};

static struct pipe *_Atomic pipes; /* That exist until the end. */
static _Atomic uint64_t ns_per_kb, free_at[NCCL_MAX_DEVICES];

void wire_set_rate(double bits_per_second);

__attribute__((visibility("default"))) void
wire_set_rate(double bits_per_second)
{
    ns_per_kb = bits_per_second ? 8e3 * 1e9 / bits_per_second : 0;
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* Returns when the link has carried 'size' bytes more. */
static uint64_t
carry(int device, size_t size)
{
    uint64_t now = now_ns(), before = free_at[device], after;

    do {
        after = (before > now ? before : now) + size * ns_per_kb / 1000;
    } while (!atomic_compare_exchange_weak(&free_at[device], &before, after));
    return after;
}

static void complete(void);

static int
init_8(void *log)
{
    (void) log;
    complete();
    return 0;
}

static int
init_10(void *log, void *profiler)
{
    (void) log, (void) profiler;
    complete();
    return 0;
}

static int
init_11(void **context, uint64_t id, void *config, void *log, void *profiler)
{
    (void) id, (void) config, (void) log, (void) profiler;
    *context = &free_at;
    complete();
    return 0;
}

static int
devices(int *n)
{
    *n = NCCL_MAX_DEVICES;
    return 0;
}

static int
properties(int device, void *p)
{
    (void) device, (void) p;
    return 0;
}

/* A handle is the address of where the listener finds its pipe. */
static int
listen_8(int device, void *handle, void **listener)
{
    (void) device;
    *listener = calloc(1, sizeof(_Atomic(struct pipe *)));
    memcpy(handle, listener, sizeof *listener);
    return 0;
}

static int
listen_11(void *context, int device, void *handle, void **listener)
{
    return context == &free_at ? listen_8(device, handle, listener) : 3;
}

static int
connect_8(int device, void *handle, void **comm, void **offload)
{
    struct pipe *pipe = calloc(1, sizeof *pipe);
    struct pipe *_Atomic *listener;

    (void) offload;
    pthread_mutex_init(&pipe->mutex, NULL);
    pipe->device = device;
    memcpy(&listener, handle, sizeof listener);
    pipe->next = atomic_exchange(&pipes, pipe);
    *listener = *comm = pipe;
    return 0;
}

static int
connect_10(int device, void *config, void *handle, void **comm, void **offload)
{
    (void) config;
    return connect_8(device, handle, comm, offload);
}

static int
connect_11(void *context, int device, void *handle, void **comm,
           void **offload)
{
    return context == &free_at ? connect_8(device, handle, comm, offload) : 3;
}

static int
accept_8(void *listener, void **comm, void **offload)
{
    (void) offload;
    *comm = *(struct pipe * _Atomic *) listener;
    return 0;
}

/* Posts in a direction, unless NCCL_DEPTH requests wait already. */
static int
post(struct pipe *pipe, bool is_send, void *data, size_t size, void **request)
{
    uint64_t *n = is_send ? &pipe->n_out : &pipe->n_in;
    struct message *list = is_send ? pipe->out : pipe->in;

    *request = NULL;
    pthread_mutex_lock(&pipe->mutex);
    if (*n - pipe->n_done < NCCL_DEPTH) {
        struct request *r = &pipe->requests[is_send][*n % N_REQUESTS];

        *r = (struct request){ pipe, *n, is_send };
        list[*n % N_REQUESTS] =
            (struct message){ data, size,
                              is_send ? carry(pipe->device, size) : 0 };
        ++*n;
        *request = r;
    }
    pthread_mutex_unlock(&pipe->mutex);
    return 0;
}

static int
isend_8(void *comm, void *data, int size, int tag, void *memory,
        void **request)
{
    (void) tag, (void) memory;
    return post(comm, true, data, size, request);
}

static int
isend_9(void *comm, void *data, size_t size, int tag, void *memory,
        void **request)
{
    (void) tag, (void) memory;
    return post(comm, true, data, size, request);
}

static int
isend_10(void *comm, void *data, size_t size, int tag, void *memory,
         void *event, void **request)
{
    (void) tag, (void) memory, (void) event;
    return post(comm, true, data, size, request);
}

static int
irecv_8(void *comm, int n, void **data, int *sizes, int *tags, void **memory,
        void **request)
{
    (void) tags, (void) memory;
    return n == 1 ? post(comm, false, data[0], sizes[0], request) : 3;
}

static int
irecv_9(void *comm, int n, void **data, size_t *sizes, int *tags,
        void **memory, void **request)
{
    (void) tags, (void) memory;
    return n == 1 ? post(comm, false, data[0], sizes[0], request) : 3;
}

static int
irecv_10(void *comm, int n, void **data, size_t *sizes, int *tags,
         void **memory, void **events, void **request)
{
    (void) events;
    return irecv_9(comm, n, data, sizes, tags, memory, request);
}

static int
test(void *request, int *done, int *size)
{
    struct request *r = request;
    struct pipe *pipe = r->pipe;

    pthread_mutex_lock(&pipe->mutex);
    while (pipe->n_done < pipe->n_in && pipe->n_done < pipe->n_out
           && pipe->out[pipe->n_done % N_REQUESTS].due <= now_ns()) {
        struct message *out = &pipe->out[pipe->n_done % N_REQUESTS];
        struct message *in = &pipe->in[pipe->n_done % N_REQUESTS];

        memcpy(in->data, out->data, out->size);
        in->size = out->size;
        pipe->n_done++;
    }
    *done = r->number < pipe->n_done;
    *size = pipe->out[r->number % N_REQUESTS].size;
    pthread_mutex_unlock(&pipe->mutex);
    return 0;
}

static int
close_comm(void *comm)
{
    (void) comm; /* The other end may still use it. */
    return 0;
}

static int
close_listener(void *listener)
{
    free(listener);
    return 0;
}

#define TABLE(N, INIT, LISTEN, CONNECT, SEND, RECV)                       \
    __attribute__((visibility("default"))) void *ncclNetPlugin_v##N[] = { \
        [NCCL_NAME] = (void *) "wire",                                    \
        [NCCL_INIT] = (void *) init_##INIT,                               \
        [NCCL_DEVICES] = (void *) devices,                                \
        [NCCL_PROPERTIES] = (void *) properties,                          \
        [NCCL_LISTEN] = (void *) listen_##LISTEN,                         \
        [NCCL_CONNECT] = (void *) connect_##CONNECT,                      \
        [NCCL_ACCEPT] = (void *) accept_8,                                \
        [NCCL_ISEND] = (void *) isend_##SEND,                             \
        [NCCL_IRECV] = (void *) irecv_##RECV,                             \
        [NCCL_CLOSE_SEND] = (void *) close_comm,                          \
        [NCCL_CLOSE_RECV] = (void *) close_comm,                          \
        [NCCL_CLOSE_LISTEN] = (void *) close_listener,                    \
        [NCCL_MAX_MEMBERS - 1] = NULL                                     \
    }

TABLE(8, 8, 8, 8, 8, 8);
TABLE(9, 8, 8, 8, 9, 9);
TABLE(10, 10, 8, 10, 10, 10);
TABLE(11, 11, 11, 11, 10, 10);
#ifndef WIRE_WITHOUT_12
TABLE(12, 11, 11, 11, 10, 10);
#endif

static void
complete(void)
{
    void **const tables[] = { ncclNetPlugin_v8, ncclNetPlugin_v9,
                              ncclNetPlugin_v10, ncclNetPlugin_v11,
#ifndef WIRE_WITHOUT_12
                              ncclNetPlugin_v12
#endif
    };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        tables[i][NCCL_TEST] = (void *) test;
    }
}
