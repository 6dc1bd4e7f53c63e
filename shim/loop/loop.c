/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/loop.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "shim/clock/clock.h"
#include "shim/clock/counter.h"
#include "shim/loop/egress.h"
#include "shim/loop/forward.h"
#include "shim/loop/idle.h"
#include "shim/ports/port.h"

#define MS 1000000u             /* Nanoseconds. */

#define MAX_WAIT (20 * MS)      /* Until the loop reads 'stop' and the rate. */
#define GAP (300 * MS)          /* Below the agent's watchdog interval. */
#define LOOP_NICE (-10)         /* Nice value of the loop's thread. */
#define LOOP_SLICE (1 * MS)     /* Time slice of the loop's thread. */

struct loop {
    struct forward *forward;
    struct port *host, *uplink;
    enum loop_poll poll;
    struct idle idle;
    void (*woke)(void *aux);    /* See loop_on_gap(), or NULL. */
    void *aux;

    /* Written by the loop, read by the control thread. */
    clockid_t clock;            /* CPU time of the thread, if 'running'. */
    uint64_t clock_base;        /* 'clock' at the start of the loop. */
    bool running, paused, left;
    uint64_t polls;             /* Number of polls. */
    uint64_t polled;            /* Time of the last poll. */

    /* Written by the control thread, read by the loop. */
    bool stop, pause;
};

struct loop *
loop_create(struct forward *forward, struct port *host, struct port *uplink,
            enum loop_poll poll)
{
    struct loop *l = allocate(1, sizeof *l);

    l->forward = forward;
    l->host = host;
    l->uplink = uplink;
    l->polled = clock_now();
    l->poll = poll;
    return l;
}

void
loop_destroy(struct loop *l)
{
    free(l);
}

void
loop_on_gap(struct loop *l, void (*woke)(void *aux), void *aux)
{
    l->woke = woke;
    l->aux = aux;
}

static void
sleep_ns(uint64_t ns)
{
    struct timespec ts = { 0, ns };

    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Blocks up to 'ns', less if a frame arrives.  Returns true if none did.  An
 * interface that is down makes poll() return at once, so this sleeps then. */
static bool
sleep_on_ports(struct loop *l, uint64_t ns)
{
    struct pollfd fds[] = {
        { .fd = port_fd(l->host), .events = POLLIN },
        { .fd = port_fd(l->uplink), .events = POLLIN },
    };
    struct timespec ts = { 0, ns };
    int n = ppoll(fds, 2, &ts, NULL);

    if (n > 0 && (fds[0].revents | fds[1].revents) & ~POLLIN) {
        sleep_ns(ns < IDLE_MAX_NS ? ns : IDLE_MAX_NS);
    }
    return !n;
}

static void
end_idle(struct loop *l, uint64_t now)
{
    idle_end(&l->idle, now, port_received(l->host) + port_received(l->uplink));
}

/* Blocks up to 'ns' with the ports' interrupts enabled.  A frame that arrived
 * before that causes no interrupt, so there is one more poll. */
static void
wait_for_frame(struct loop *l, uint64_t ns)
{
    uint64_t now;

    port_arm(l->host);
    port_arm(l->uplink);
    now = clock_now();
    if (forward_poll(l->forward, now)) {
        end_idle(l, now);
    } else if (sleep_on_ports(l, ns) && ns == MAX_WAIT) {
        port_check_rx_irq(l->host);
        port_check_rx_irq(l->uplink);
    }
    port_disarm(l->host);
    port_disarm(l->uplink);
}

static bool
is_behind(struct port *port)
{
    return port_kick(port) | (port_tx_space(port) < PORT_BURST);
}

static bool
has_rx_irq(const struct port *port)
{
    return port_fd(port) >= 0;
}

static bool
holds_frames(const struct port *port)
{
    return port_tx_space(port) < PORT_BURST;
}

/* Returns the nanoseconds until a queued packet can be sent. */
static uint64_t
until_due(const struct loop *l, uint64_t now)
{
    return (holds_frames(l->host) || holds_frames(l->uplink)
                ? UINT64_MAX
                : egress_until_due(forward_egress(l->forward), now));
}

/* Sleeps or blocks after a poll that found nothing. */
static void
sleep_idle(struct loop *l, uint64_t now)
{
    bool behind = is_behind(l->host) | is_behind(l->uplink);
    bool can_wait = (l->poll != LOOP_SLEEP && !behind && has_rx_irq(l->host)
                     && has_rx_irq(l->uplink));
    uint64_t due = until_due(l, now);
    bool ending = forward_is_ending(l->forward);

    if (l->poll == LOOP_BUSY) {
        return;
    }
    if (can_wait && !ending
        && (l->poll == LOOP_INTERRUPT || !idle_sleeps_first(&l->idle))) {
        wait_for_frame(l, due < MAX_WAIT ? due : MAX_WAIT);
    } else {
        uint64_t ns = (ending ? idle_shortest(&l->idle) : idle_next(&l->idle));

        sleep_ns(due < ns ? due : ns);
    }
}

static void
wait_while_paused(struct loop *l)
{
    STORE(&l->paused, true);
    while (LOAD(&l->pause) && !LOAD(&l->stop)) {
        sleep_ns(IDLE_MAX_NS);
    }
    STORE(&l->paused, false);
}

/* Requests low scheduling latency.  A poll takes microseconds, while training
 * processes on the same CPU compute for milliseconds, longer than the uplink's
 * burst.  With eight shims beside six busy processes on two CPUs this raised
 * flows from 80 to 96 % of their links, measured with slices of 100 us.
 * Shorter slices cost throughput of a single fast flow, because a busy loop is
 * preempted more often.  Without permission, or on a kernel without slices,
 * packets wait a little longer. */
static void
request_low_latency(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {
        .size = sizeof attr,
        .policy = SCHED_OTHER,
        .nice = LOOP_NICE,
        .runtime = LOOP_SLICE,
    };

    if (syscall(SYS_sched_setattr, 0, &attr, 0)) {
        attr.nice = 0;
        syscall(SYS_sched_setattr, 0, &attr, 0);
    }
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}

/* Forwards packets until loop_stop(). */
void
loop_run(struct loop *l)
{
    request_low_latency();
    pthread_getcpuclockid(pthread_self(), &l->clock);
    l->clock_base = clock_read(l->clock);
    STORE(&l->running, true);
    while (!LOAD(&l->stop)) {
        uint64_t now = clock_now();

        if (LOAD(&l->pause)) {
            wait_while_paused(l);
            continue;
        }
        if (now - l->polled > GAP && l->woke && l->polls) {
            l->woke(l->aux);
            now = clock_now();
        }
        STORE(&l->polled, now);
        STORE(&l->polls, l->polls + 1);
        if (forward_poll(l->forward, now)) {
            end_idle(l, now);
        } else {
            sleep_idle(l, now);
        }
    }
    STORE(&l->running, false);
    STORE(&l->left, true);
}

uint64_t
loop_polls(const struct loop *l)
{
    return LOAD(&l->polls);
}

uint64_t
loop_poll_age_ns(const struct loop *l)
{
    uint64_t polled = LOAD(&l->polled), now = clock_now();

    return now > polled ? now - polled : 0;
}

bool
loop_leave(struct loop *l, uint64_t ns)
{
    uint64_t end = clock_now() + ns;

    loop_stop(l);
    while (!LOAD(&l->left) && clock_now() < end) {
        sleep_ns(IDLE_MIN_NS);
    }
    return LOAD(&l->left);
}

void
loop_stop(struct loop *l)
{
    STORE(&l->stop, true);
}

/* Makes the loop leave its ports alone until loop_resume().  Returns false,
 * with the loop resumed, if it does not pause within about a second. */
bool
loop_pause(struct loop *l)
{
    STORE(&l->pause, true);
    for (int i = 0; i < 1000; i++) {
        if (LOAD(&l->paused)) {
            return true;
        }
        sleep_ns(IDLE_MAX_NS);
    }
    loop_resume(l);
    return false;
}

void
loop_resume(struct loop *l)
{
    STORE(&l->pause, false);
}

/* Returns the CPU time of the thread if it is running the loop. */
uint64_t
loop_busy_ns(struct loop *l)
{
    return LOAD(&l->running) ? clock_read(l->clock) - l->clock_base : 0;
}
