/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/successor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/service-notify.h"
#include "wire/shim-connections.h"
#include "shim/clock/clock.h"
#include "shim/control/server.h"
#include "shim/control/take-over.h"
#include "shim/loop/forward.h"
#include "shim/classify/job-slot.h"
#include "shim/shim.h"

char *
successor_begin(struct shim *s)
{
    char *error;

    if (!s->options.take_over) {
        return NULL;
    }
    error = take_over_begin(s->options.control, &s->old);
    if (!error && !s->old) {
        shim_say(s, "there is no shim to take over from");
    }
    if (!error && s->old && take_over_tables(s->old, s->flows, s->slots)) {
        error = duplicate("the other shim does not tell its tables");
    }
    return error;
}

/* Goes on with the connections that the other shim, which has stopped, knows.
 * If it does not tell them, they are plain TCP's and paced. */
static void
take_connections(struct shim *s)
{
    struct shim_connections head;
    const void *body;
    size_t size;
    int error;

    if (!s->options.cc) {
        return;
    }
    error = take_over_connections(s->old, &body, &size);
    if (error) {
        shim_say(s, "the other shim does not tell its connections (%s), they "
                 "are only paced", strerror(error));
        return;
    }
    connections_head(body, &head);
    forward_restore(s->forward, body);
    shim_say(s, "%"PRIu32" connections and %"PRIu32" hosts are known from the "
             "other shim", head.n_connections, head.n_peers);
}

char *
successor_finish(struct shim *s)
{
    struct shim_state state;
    char main_pid[32];
    int error;

    if (!s->old) {
        return NULL;
    }
    shim_say(s, "taking over from process %"PRIu32, take_over_pid(s->old));
    forward_discard(s->forward);
    error = take_over_stop(s->old, &state);
    if (error) {
        return duplicate("the other shim does not let go");
    }
    take_connections(s);
    forward_discard(s->forward);
    forward_set_rate(s->forward, state.rate_bps);
    forward_set_guard(s->forward, state.guard);
    job_slots_lease(s->slots, clock_now(), state.lease_left_ms,
                    state.default_dscp);
    server_publish(s->server);
    /* Before the other ends, which was the service until now. */
    snprintf(main_pid, sizeof main_pid, "MAINPID=%ld", (long) getpid());
    service_notify(main_pid);
    take_over_finish(s->old);
    s->old = NULL;
    return NULL;
}
