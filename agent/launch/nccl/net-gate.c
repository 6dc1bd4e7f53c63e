/* SPDX-License-Identifier: Apache-2.0 */

/* Network plug-in of NCCL that holds the sends of a job back (experimental).
 *
 * It wraps the plug-in that STAGECOACH_NCCL_NET names, in the version of the
 * interface that NCCL asks for, 8 to 12: NCCL gets a copy of that plug-in's
 * table, in which two functions are replaced.  "init" has the copy completed,
 * because a plug-in may fill its own table then.  "isend" returns success
 * without a request while the agent holds the job (wire/hold-page.h); NCCL
 * then tries again, as when a plug-in has no space.  What is under way
 * continues.  Nothing else is touched: the name is the inner plug-in's, so
 * NCCL_NET selects it as before.
 *
 * NCCL looks for the newest version first.  A symbol with a resolver exists
 * as the inner plug-in's does: where that has no version 12, dlsym() returns
 * NULL for ours, and NCCL tries version 11.  The tables of collectives in the
 * network and of transfers by the GPU are passed on.  The transports in NCCL
 * itself cannot be wrapped.
 *
 * NCCL calls "isend" from one thread for each GPU. */

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/launch/nccl/door.h"

/* Places in the table of each version: pointers, the first one to a name. */
enum { INIT = 1, ISEND = 10, MAX_MEMBERS = 22 };

static void *library; /* The inner plug-in, or NULL. */

/* A version of the interface: the inner plug-in's table and the copy. */
struct version {
    pthread_once_t once;
    void *const *inner;
    size_t n_members;
    void *mine[MAX_MEMBERS];
};

__attribute__((constructor)) static void
open_inner(void)
{
    library = door_open_inner("STAGECOACH_NCCL_NET", "net");
}

/* Copies the inner table, beside the functions that are replaced. */
static void
copy_table(struct version *v)
{
    void *init = v->mine[INIT], *isend = v->mine[ISEND];

    memcpy(v->mine, v->inner, v->n_members * sizeof v->mine[0]);
    v->mine[INIT] = init;
    v->mine[ISEND] = isend;
}

static void *
find(struct version *v, const char *symbol)
{
    v->inner = library ? dlsym(library, symbol) : NULL;
    if (!v->inner) {
        return NULL;
    }
    copy_table(v);
    return v->mine;
}

/* Defines ncclNetPlugin_vN.  'INIT_LIST' and 'SEND_LIST' are the parameters of
 * its functions, of which 'INIT_NAMES' and 'SEND_NAMES' are the names. */
#define VERSION(N, N_MEMBERS, INIT_LIST, INIT_NAMES, SEND_LIST, SEND_NAMES) \
    static int init_v##N INIT_LIST;                                         \
    static int isend_v##N SEND_LIST;                                        \
                                                                            \
    static struct version v##N = { .once = PTHREAD_ONCE_INIT,               \
                                   .n_members = N_MEMBERS,                  \
                                   .mine = { [INIT] = (void *) init_v##N,   \
                                             [ISEND] =                      \
                                                 (void *) isend_v##N } };   \
                                                                            \
    static void copy_v##N(void)                                             \
    {                                                                       \
        copy_table(&v##N);                                                  \
    }                                                                       \
                                                                            \
    static int init_v##N INIT_LIST                                          \
    {                                                                       \
        int error = ((int(*) INIT_LIST) v##N.inner[INIT]) INIT_NAMES;       \
                                                                            \
        pthread_once(&v##N.once, copy_v##N);                                \
        return error;                                                       \
    }                                                                       \
                                                                            \
    static int isend_v##N SEND_LIST                                         \
    {                                                                       \
        int error = 0;                                                      \
                                                                            \
        *request = NULL;                                                    \
        if (!door_holds()) {                                                \
            error = ((int(*) SEND_LIST) v##N.inner[ISEND]) SEND_NAMES;      \
            if (*request) {                                                 \
                door_moved(0, 0, size);                                     \
            }                                                               \
        }                                                                   \
        return error;                                                       \
    }                                                                       \
                                                                            \
    __attribute__((used)) static void (*find_v##N(void))(void)              \
    {                                                                       \
        return (void (*)(void)) find(&v##N, "ncclNetPlugin_v" #N);          \
    }                                                                       \
                                                                            \
    __attribute__((visibility("default"),                                   \
                   ifunc("find_v" #N))) void ncclNetPlugin_v##N(void)

#define SEND_9                                                   \
    (void *comm, void *data, size_t size, int tag, void *memory, \
     void **request)
#define SEND_10                                                               \
    (void *comm, void *data, size_t size, int tag, void *memory, void *event, \
     void **request)
#define SEND_10_NAMES (comm, data, size, tag, memory, event, request)
#define INIT_11 \
    (void **context, uint64_t id, void *config, void *log, void *profiler)
#define INIT_11_NAMES (context, id, config, log, profiler)

VERSION(8, 19, (void *log), (log),
        (void *comm, void *data, int size, int tag, void *memory,
         void **request),
        (comm, data, size, tag, memory, request));
VERSION(9, 20, (void *log), (log), SEND_9,
        (comm, data, size, tag, memory, request));
VERSION(10, 20, (void *log, void *profiler), (log, profiler), SEND_10,
        SEND_10_NAMES);
VERSION(11, 22, INIT_11, INIT_11_NAMES, SEND_10, SEND_10_NAMES);
VERSION(12, 22, INIT_11, INIT_11_NAMES, SEND_10, SEND_10_NAMES);

/* Defines a symbol that is the inner plug-in's, or NULL. */
#define PASSED_ON(SYMBOL)                                                  \
    __attribute__((used)) static void (*find_##SYMBOL(void))(void)         \
    {                                                                      \
        return (void (*)(void))(library ? dlsym(library, #SYMBOL) : NULL); \
    }                                                                      \
                                                                           \
    __attribute__((visibility("default"), ifunc("find_" #SYMBOL))) void    \
    SYMBOL(void)

PASSED_ON(ncclCollNetPlugin_v8);
PASSED_ON(ncclCollNetPlugin_v9);
PASSED_ON(ncclCollNetPlugin_v10);
PASSED_ON(ncclCollNetPlugin_v11);
PASSED_ON(ncclCollNetPlugin_v12);
PASSED_ON(ncclGinPlugin_v11);
PASSED_ON(ncclGinPlugin_v12);
PASSED_ON(ncclGinPlugin_v13);
PASSED_ON(ncclGinPlugin_v14);
PASSED_ON(ncclGinPlugin_v15);
