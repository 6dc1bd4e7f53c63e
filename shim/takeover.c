/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/takeover.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/memory.h"
#include "base/service-notify.h"
#include "shim/cc/cc.h"
#include "shim/cc/takeover-state.h"
#include "shim/classify/job-slot.h"
#include "shim/clock/clock.h"
#include "shim/control/server.h"
#include "shim/loop/egress.h"
#include "shim/loop/forward.h"
#include "shim/loop/loop.h"
#include "shim/shim.h"
#include "wire/shim-client.h"

#define MS UINT64_C(1000000)    /* Nanoseconds. */

/* Longest times, see SHIM_TAKE_OVER. */
#define STOP_NS (100 * MS)      /* Until the loops, which may sleep until a
                                 * frame arrives, have stopped. */
#define DRAIN_NS (30 * MS)      /* Until the queues are empty. */
#define LEAVE_NS (300 * MS)     /* From STOP to LEAVE. */

#define SLOTS_MS                                        \
    2000 /* Longest wait for a reply while the old shim \
          * forwards. */
#define STEP_MS 250             /* Longest reply while no shim forwards. */

/* Makes the loops stop receiving, or receive again.  Returns false if they do
 * not react. */
static bool
set_ending(struct shim *s, bool ending)
{
    uint64_t late = clock_now() + STOP_NS;

    forward_end(s->forward, ending);
    while (forward_has_ended(s->forward) != ending) {
        if (clock_now() > late) {
            return false;
        }
        rte_delay_us_sleep(20);
    }
    return true;
}

static int
stop_receiving(struct shim *s)
{
    if (!set_ending(s, true)) {
        set_ending(s, false);
        return EBUSY;
    }
    s->old_side.deadline = clock_now() + LEAVE_NS;
    return 0;
}

static int
drain_and_leave(struct shim *s)
{
    uint64_t end = clock_now() + DRAIN_NS;
    struct shim_stats stats;

    if (!s->old_side.deadline) {
        return EINVAL;
    }
    do {
        rte_delay_us_sleep(20);
        forward_stats(s->forward, &stats);
    } while (stats.queued_bytes && clock_now() < end);
    if (!loop_leave(s->loop, STOP_NS)) {
        return EBUSY;
    }
    s->old_side.leaving = true;
    return 0;
}

int
takeover_step(struct shim *s, uint32_t step)
{
    return step == SHIM_STEP_STOP ? stop_receiving(s) : drain_and_leave(s);
}

bool
takeover_expired(struct shim *s, uint64_t now)
{
    struct takeover_old_side *old = &s->old_side;

    if (!old->deadline || old->leaving || now <= old->deadline) {
        return false;
    }
    old->deadline = 0;
    set_ending(s, false);
    return true;
}

/* Returns the process id at the other end of the socket, 0 if not known. */
static uint32_t
server_pid(const struct shim_client *client)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return getsockopt(shim_client_fd(client), SOL_SOCKET, SO_PEERCRED, &cred,
                      &size) ? 0 : cred.pid;
}

static int
copy_slots(struct takeover *t, struct job_slots *slots)
{
    const void *body = NULL;
    size_t size = 0;
    int error = shim_client_transact(t->client, SHIM_SLOT_LIST, NULL, 0,
                                     SLOTS_MS, &body, &size);
    const struct shim_slot *slot = body;

    for (size_t i = 0; !error && i < size / sizeof *slot; i++) {
        error = job_slots_set(slots, &slot[i]);
    }
    return error;
}

char *
takeover_begin(struct shim *s)
{
    const char *path = s->options.control;
    struct takeover *t = &s->old;
    int error;

    if (!s->options.take_over) {
        return NULL;
    }
    error = shim_client_open(path, &t->client);
    if (error == ENOENT || error == ECONNREFUSED) {
        shim_log(s, "there is no shim to take over from");
        return NULL;
    }
    if (error) {
        return message("%s: cannot take over from there (%s)", path,
                       strerror(error));
    }
    t->pid = server_pid(t->client);
    error = shim_client_transact(t->client, SHIM_HELLO, NULL, 0, SLOTS_MS,
                                 NULL, NULL);
    if (error) {
        return message("%s: the shim there does not reply (%s)", path,
                       strerror(error));
    }
    return (copy_slots(t, s->slots)
                ? duplicate("takeover: the old shim does not send its slots")
                : NULL);
}

static int
send_step(struct takeover *t, uint32_t step, struct shim_state *state)
{
    struct shim_take_over request = { .step = step };
    const void *body;
    size_t size;
    int error = shim_client_transact(t->client, SHIM_TAKE_OVER, &request,
                                     sizeof request, STEP_MS, &body, &size);

    if (!error && state) {
        if (size < sizeof *state) {
            return EPROTO;
        }
        memcpy(state, body, sizeof *state);
    }
    return error;
}

/* Restores congestion control's state from the old shim, which has stopped.
 * Without that state, existing connections are only paced. */
static void
copy_connections(struct shim *s)
{
    const struct takeover_state *head;
    const void *body;
    size_t size;
    int error;

    if (!s->options.cc) {
        return;
    }
    error = shim_client_transact(s->old.client, SHIM_CONNECTIONS, NULL, 0,
                                 STEP_MS, &body, &size);
    error = error ? error : takeover_state_check(body, size);
    if (error) {
        shim_log(s, "takeover: no connections from the old shim (%s), "
                 "existing ones are only paced", strerror(error));
        return;
    }
    head = body;
    cc_restore(forward_cc(s->forward), body, clock_now());
    shim_log(s, "takeover: %"PRIu32" connections and %"PRIu32" remote hosts "
             "copied from the old shim", head->n_connections, head->n_remotes);
}

char *
takeover_finish(struct shim *s)
{
    struct shim_state state;
    char main_pid[32];

    if (!s->old.client) {
        return NULL;
    }
    shim_log(s, "taking over from process %"PRIu32, s->old.pid);
    forward_discard(s->forward);
    if (send_step(&s->old, SHIM_STEP_STOP, &state)) {
        return duplicate("takeover: the old shim does not stop");
    }
    s->old.stopped = true;
    copy_connections(s);
    forward_discard(s->forward);
    egress_set_rate(forward_egress(s->forward), state.rate_bps);
    egress_set_min_share(forward_egress(s->forward), state.min_share);
    if (state.control_dscp) {
        job_slots_set_control(s->slots, state.control_dscp, state.level_dscps);
    }
    job_slots_lease(s->slots, clock_now(), state.lease_left_ms,
                    state.default_dscp);
    server_publish(s->server);
    /* Before the old process ends, which was the service's main process. */
    snprintf(main_pid, sizeof main_pid, "MAINPID=%ld", (long) getpid());
    service_notify(main_pid);
    takeover_end(&s->old);
    return NULL;
}

void
takeover_end(struct takeover *t)
{
    if (t->stopped && send_step(t, SHIM_STEP_LEAVE, NULL) && t->pid) {
        kill(t->pid, SIGKILL);
    }
    shim_client_close(t->client);
    *t = (struct takeover) { .client = NULL };
}
