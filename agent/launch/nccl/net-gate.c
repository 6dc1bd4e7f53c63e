/* SPDX-License-Identifier: Apache-2.0 */

/* Network plug-in of NCCL that holds the sends of a job back (experimental).
 *
 * It wraps the plug-in that STAGECOACH_NCCL_NET names, in the version of the
 * interface that NCCL requests, 8 to 12: NCCL gets a copy of that plug-in's
 * table, in which two functions are replaced.  "init" has the copy completed,
 * because a plug-in may fill its own table then.  "isend" returns success
 * without a request while the agent holds the job (wire/hold-page.h); NCCL
 * then tries again, as when a plug-in has no space.  What is under way
 * continues.  Nothing else is touched: the name is the inner plug-in's, so
 * NCCL_NET selects it as before.
 *
 * NCCL searches the newest version first.  A symbol with a resolver exists
 * as the inner plug-in's does: where that has no version 12, dlsym() returns
 * NULL for ours, and NCCL tries version 11.  The tables of collectives in the
 * network and of transfers by the GPU are passed on.  The transports in NCCL
 * itself cannot be wrapped.
 *
 * NCCL calls "isend" from one thread for each GPU. */

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/launch/nccl/door.h"

/* Places in the table of each version: pointers, the first one to a name. */
enum { INIT = 1, ISEND = 10, MAX_MEMBERS = 22 };

static void *library; /* The inner plug-in, or NULL. */

__attribute__((constructor)) static void
open_inner(void)
{
    library = door_open_inner("STAGECOACH_NCCL_NET", "net");
}

/* Copies the 'n' members of the table 'inner', beside two functions. */
static void
copy_table(void **table, void *const *inner, size_t n, void *init, void *isend)
{
    memcpy(table, inner, n * sizeof *table);
    table[INIT] = init;
    table[ISEND] = isend;
}

/* Defines ncclNetPlugin_vN with 'N_MEMBERS'.  'INIT_LIST' and 'SEND_LIST' are
 * the parameters of its functions, 'INIT_NAMES' and 'SEND_NAMES' their
 * names.  NCCL has a lock for "init". */
#define VERSION(N, N_MEMBERS, INIT_LIST, INIT_NAMES, SEND_LIST, SEND_NAMES)   \
    static void *const *inner_v##N;                                           \
    static void *table_v##N[MAX_MEMBERS];                                     \
                                                                              \
    static int isend_v##N SEND_LIST                                           \
    {                                                                         \
        int error = 0;                                                        \
                                                                              \
        *request = NULL;                                                      \
        if (!door_holds()) {                                                  \
            error = ((int(*) SEND_LIST) inner_v##N[ISEND]) SEND_NAMES;        \
            if (*request) {                                                   \
                door_moved(0, 0, size);                                       \
            }                                                                 \
        }                                                                     \
        return error;                                                         \
    }                                                                         \
                                                                              \
    static int init_v##N INIT_LIST                                            \
    {                                                                         \
        static bool copied;                                                   \
        int error = ((int(*) INIT_LIST) inner_v##N[INIT]) INIT_NAMES;         \
                                                                              \
        if (!copied) {                                                        \
            copy_table(table_v##N, inner_v##N, N_MEMBERS, (void *) init_v##N, \
                       (void *) isend_v##N);                                  \
            copied = true;                                                    \
        }                                                                     \
        return error;                                                         \
    }                                                                         \
                                                                              \
    __attribute__((used)) static void (*find_v##N(void))(void)                \
    {                                                                         \
        inner_v##N = library ? dlsym(library, "ncclNetPlugin_v" #N) : NULL;   \
        if (inner_v##N) {                                                     \
            copy_table(table_v##N, inner_v##N, N_MEMBERS, (void *) init_v##N, \
                       (void *) isend_v##N);                                  \
        }                                                                     \
        return (void (*)(void))(inner_v##N ? table_v##N : NULL);              \
    }                                                                         \
                                                                              \
    __attribute__((visibility("default"),                                     \
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
