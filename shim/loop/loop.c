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
#include "shim/loop/lanes.h"
#include "shim/loop/wake.h"
#include "shim/ports/port.h"

#define MS 1000000u             /* Nanoseconds. */

#define MAX_WAIT (20 * MS)      /* Until the loop reads 'stop' and the rate. */
#define GAP (300 * MS)          /* Below the agent's watchdog interval. */
#define LOOP_NICE (-10)         /* Nice value of the loop's thread. */
#define LOOP_SLICE (1 * MS)     /* Time slice of the loop's thread. */

struct loop {
    struct forward *forward;    /* Lane 0, NULL for another lane. */
    struct lane *lane;          /* Another lane, NULL for lane 0. */
    struct loop *next;          /* The loop of another lane, or NULL. */
    struct port *host, *uplink; /* NULL: this lane has no queue there. */
    struct wake *wake;          /* By other lanes; NULL: there are none. */
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

static struct loop *
new_loop(struct port *host, struct port *uplink, struct wake *wake,
         enum loop_poll poll)
{
    struct loop *l = allocate(1, sizeof *l);

    l->host = host;
    l->uplink = uplink;
    l->wake = wake;
    l->polled = clock_now();
    l->poll = poll;
    return l;
}

struct loop *
loop_create(struct forward *forward, struct port *host, struct port *uplink,
            enum loop_poll poll)
{
    struct loop *l = new_loop(host, uplink, forward_wake(forward), poll);

    l->forward = forward;
    return l;
}

struct loop *
loop_add_lane(struct loop *first, struct lane *lane, struct port *host,
              struct port *uplink)
{
    struct loop *l = new_loop(host, uplink, lane_wake(lane), first->poll);

    l->lane = lane;
    l->next = first->next;
    first->next = l;
    return l;
}

void
loop_destroy(struct loop *l)
{
    while (l) {
        struct loop *next = l->next;

        free(l);
        l = next;
    }
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
        { .fd = l->host ? port_fd(l->host) : -1, .events = POLLIN },
        { .fd = l->uplink ? port_fd(l->uplink) : -1, .events = POLLIN },
        { .fd = l->wake ? l->wake->fd : -1, .events = POLLIN },
    };
    struct timespec ts = { 0, ns };
    int n = ppoll(fds, 3, &ts, NULL);

    if (n > 0 && (fds[0].revents | fds[1].revents) & ~POLLIN) {
        sleep_ns(ns < IDLE_MAX_NS ? ns : IDLE_MAX_NS);
    }
    return !n;
}

static bool
poll_once(struct loop *l, uint64_t now)
{
    return l->lane ? lane_poll(l->lane, now) : forward_poll(l->forward, now);
}

static void
end_idle(struct loop *l, uint64_t now)
{
    idle_end(&l->idle, now, ((l->host ? port_received(l->host) : 0)
                             + (l->uplink ? port_received(l->uplink) : 0)));
}

static void
for_each_port(struct loop *l, void (*f)(struct port *))
{
    if (l->host) {
        f(l->host);
    }
    if (l->uplink) {
        f(l->uplink);
    }
}

/* Blocks up to 'ns' with the ports' interrupts enabled.  A frame that arrived
 * before that causes no interrupt, so there is one more poll. */
static void
wait_for_frame(struct loop *l, uint64_t ns)
{
    uint64_t now;

    for_each_port(l, port_arm);
    if (l->wake) {
        wake_prepare(l->wake);
    }
    now = clock_now();
    if (poll_once(l, now)) {
        end_idle(l, now);
    } else if (sleep_on_ports(l, ns) && ns == MAX_WAIT) {
        for_each_port(l, port_check_rx_irq);
    }
    if (l->wake) {
        wake_finish(l->wake);
    }
    for_each_port(l, port_disarm);
}

static bool
is_behind(struct port *port)
{
    return port && (port_kick(port) | (port_tx_space(port) < PORT_BURST));
}

static bool
has_rx_irq(const struct port *port)
{
    return !port || port_fd(port) >= 0;
}

static bool
holds_frames(const struct port *port)
{
    return port && port_tx_space(port) < PORT_BURST;
}

/* Returns the nanoseconds until a queued packet can be sent. */
static uint64_t
until_due(const struct loop *l, uint64_t now)
{
    return (l->lane || holds_frames(l->host) || holds_frames(l->uplink)
            ? UINT64_MAX : egress_until_due(forward_egress(l->forward), now));
}

/* Sleeps or blocks after a poll that found nothing. */
static void
sleep_idle(struct loop *l, uint64_t now)
{
    bool behind = is_behind(l->host) | is_behind(l->uplink);
    bool blocked = l->lane && lane_is_blocked(l->lane);
    bool can_wait = (l->poll != LOOP_SLEEP && !behind && !blocked
                     && has_rx_irq(l->host) && has_rx_irq(l->uplink));
    uint64_t due = until_due(l, now);
    bool ending = (l->lane ? lane_is_ending(l->lane)
                   : forward_is_ending(l->forward));

    if (l->poll == LOOP_BUSY) {
        return;
    }
    if (can_wait && !ending
        && (l->poll == LOOP_INTERRUPT || !idle_sleeps_first(&l->idle))) {
        wait_for_frame(l, due < MAX_WAIT ? due : MAX_WAIT);
    } else {
        uint64_t ns = (ending || blocked ? idle_shortest(&l->idle)
                       : idle_next(&l->idle));

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
        if (poll_once(l, now)) {
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

    for (l = l->next; l; l = l->next) {
        uint64_t other = LOAD(&l->polled);

        polled = other < polled ? other : polled;
    }
    return now > polled ? now - polled : 0;
}

bool
loop_leave(struct loop *l, uint64_t ns)
{
    uint64_t end = clock_now() + ns;

    loop_stop(l);
    for (; l; l = l->next) {
        while (!LOAD(&l->left) && clock_now() < end) {
            sleep_ns(IDLE_MIN_NS);
        }
        if (!LOAD(&l->left)) {
            return false;
        }
    }
    return true;
}

void
loop_stop(struct loop *l)
{
    for (; l; l = l->next) {
        STORE(&l->stop, true);
    }
}

static bool
wait_until_paused(struct loop *l)
{
    for (int i = 0; i < 1000; i++) {
        if (LOAD(&l->paused)) {
            return true;
        }
        sleep_ns(IDLE_MAX_NS);
    }
    return false;
}

/* Makes the loops leave their ports alone until loop_resume().  Returns false,
 * with the loops resumed, if one does not pause within about a second. */
bool
loop_pause(struct loop *l)
{
    for (struct loop *i = l; i; i = i->next) {
        STORE(&i->pause, true);
    }
    for (struct loop *i = l; i; i = i->next) {
        if (!wait_until_paused(i)) {
            loop_resume(l);
            return false;
        }
    }
    return true;
}

void
loop_resume(struct loop *l)
{
    for (; l; l = l->next) {
        STORE(&l->pause, false);
    }
}

/* Returns the CPU time of the threads that are running a loop. */
uint64_t
loop_busy_ns(struct loop *l)
{
    uint64_t ns = 0;

    for (; l; l = l->next) {
        ns += LOAD(&l->running) ? clock_read(l->clock) - l->clock_base : 0;
    }
    return ns;
}
