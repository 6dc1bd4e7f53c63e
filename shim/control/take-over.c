/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/control/take-over.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/memory.h"
#include "wire/shim-client.h"
#include "wire/shim-connections.h"
#include "shim/classify/flow-table.h"
#include "shim/classify/job-slot.h"

#define TIMEOUT_MS 2000         /* While the other one forwards. */
#define STEP_MS 250             /* While nobody does. */

struct take_over {
    struct shim_client *client;
    uint32_t pid;               /* Of the other process. */
    bool stopped;
};

/* Returns the peer's process id as the kernel tells it, 0 if it does not. */
static uint32_t
peer_pid(const struct shim_client *client)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return getsockopt(shim_client_fd(client), SOL_SOCKET, SO_PEERCRED, &cred,
                      &size) ? 0 : cred.pid;
}

char *
take_over_begin(const char *path, struct take_over **top)
{
    struct take_over *to = allocate(1, sizeof *to);
    int error = shim_client_open(path, &to->client);

    *top = NULL;
    if (error) {
        free(to);
        return error == ENOENT || error == ECONNREFUSED ? NULL
               : message("%s: cannot take over from there (%s)", path,
                         strerror(error));
    }
    to->pid = peer_pid(to->client);
    error = shim_client_transact(to->client, SHIM_HELLO, NULL, 0, TIMEOUT_MS,
                                 NULL, NULL);
    if (error) {
        take_over_finish(to);
        return message("%s: the shim there does not answer (%s)", path,
                       strerror(error));
    }
    *top = to;
    return NULL;
}

static int
take_slots(struct take_over *to, struct job_slots *slots)
{
    const char *body;
    size_t size;
    int error = shim_client_transact(to->client, SHIM_SLOT_LIST, NULL, 0,
                                     TIMEOUT_MS, (const void **) &body,
                                     &size);

    for (size_t at = 0; !error && at + sizeof(struct shim_slot) <= size;
         at += sizeof(struct shim_slot)) {
        struct shim_slot slot;

        memcpy(&slot, body + at, sizeof slot);
        error = job_slots_set(slots, &slot);
    }
    return error;
}

static int
take_flows(struct take_over *to, struct flow_table *flows)
{
    const char *body;
    size_t size;
    int error = shim_client_transact(to->client, SHIM_FLOW_LIST, NULL, 0,
                                     TIMEOUT_MS, (const void **) &body,
                                     &size);

    for (size_t at = 0; !error && at + sizeof(struct shim_flow) <= size;
         at += sizeof(struct shim_flow)) {
        struct shim_flow flow;

        memcpy(&flow, body + at, sizeof flow);
        error = flow_table_set(flows, &flow.key, flow.slot);
    }
    return error;
}

int
take_over_tables(struct take_over *to, struct flow_table *flows,
                 struct job_slots *slots)
{
    int error = take_slots(to, slots);

    return error ? error : take_flows(to, flows);
}

static int
step(struct take_over *to, uint32_t which, struct shim_state *state)
{
    struct shim_take_over request = { .step = which };
    const void *body;
    size_t size;
    int error = shim_client_transact(to->client, SHIM_TAKE_OVER, &request,
                                     sizeof request, STEP_MS, &body, &size);

    if (!error && state) {
        if (size < sizeof *state) {
            return EPROTO;
        }
        memcpy(state, body, sizeof *state);
    }
    return error;
}

int
take_over_stop(struct take_over *to, struct shim_state *state)
{
    int error = step(to, SHIM_STEP_STOP, state);

    to->stopped = !error;
    return error;
}

int
take_over_connections(struct take_over *to, const void **bodyp, size_t *sizep)
{
    int error = shim_client_transact(to->client, SHIM_CONNECTIONS, NULL, 0,
                                     STEP_MS, bodyp, sizep);

    return error ? error : connections_check(*bodyp, *sizep);
}

void
take_over_finish(struct take_over *to)
{
    if (to->stopped && step(to, SHIM_STEP_LEAVE, NULL) && to->pid) {
        kill(to->pid, SIGKILL);
    }
    shim_client_close(to->client);
    free(to);
}

uint32_t
take_over_pid(const struct take_over *to)
{
    return to->pid;
}
