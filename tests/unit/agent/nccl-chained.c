/* SPDX-License-Identifier: Apache-2.0 */

/* Profiler of NCCL for tests, version 5 only: wants operations of the proxy
 * (8), so that it gets collectives (2), too, and keeps a list of what it was
 * told. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED char chained_told[512];

static void
told(const char *what, const void *a, const void *b)
{
    size_t n = strlen(chained_told);

    snprintf(chained_told + n, sizeof chained_told - n, "%s %s %s; ", what,
             a ? (const char *) a : "-", b ? (const char *) b : "-");
}

static int
init(void **context, uint64_t id, int *kinds, const char *name, int nodes,
     int ranks, int rank, void *log)
{
    (void) id, (void) nodes, (void) ranks, (void) rank, (void) log;
    *context = (void *) "context";
    *kinds = 8;
    told("init", name, NULL);
    return 0;
}

static int
start(void *context, void **handle, uint64_t *event)
{
    void *parent;

    memcpy(&parent, event + 1, sizeof parent);
    *handle = (void *) (*event == 2 ? "call" : "other");
    told("start", context, parent);
    return 0;
}

static int
stop(void *handle)
{
    told("stop", handle, NULL);
    return 0;
}

static int
state(void *handle, int which, void *arguments)
{
    (void) which, (void) arguments;
    told("state", handle, NULL);
    return 0;
}

static int
finalize(void *context)
{
    told("finalize", context, NULL);
    return 0;
}

EXPORTED void *ncclProfiler_v5[] = { (void *) "chained", (void *) init,
                                     (void *) start,     (void *) stop,
                                     (void *) state,     (void *) finalize };
