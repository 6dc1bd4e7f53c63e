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

#include "shim/clock/clock.h"
#include "shim/loop/forward.h"
#include "shim/loop/lanes.h"
#include "shim/loop/nap.h"
#include "shim/loop/wake.h"
#include "shim/ports/port.h"

#define MS 1000000u             /* Nanoseconds. */

#define MAX_WAIT (20 * MS)      /* To look at 'stop' and the rate. */

#define GAP (300 * MS)          /* Less than whoever watches us waits. */

#define LOOP_NICE (-10)         /* Of the loop's thread... */
#define LOOP_SLICE (1 * MS)     /* ...and how long it runs at a time. */

struct loop {
    struct forward *forward;    /* Or: */
    struct lane *lane;          /* One that is not the first. */
    struct loop *next;          /* Of another lane, or NULL. */
    struct port *host, *uplink; /* NULL: this lane has no queue there. */
    struct wake *wake;          /* By other lanes.  NULL: there are none. */
    enum loop_poll poll;
    struct nap nap;
    void (*woke)(void *aux);    /* After a gap.  Or NULL. */
    void *aux;

    /* The loop writes, the control thread reads. */
    clockid_t clock;            /* The loop's CPU time, if 'running'... */
    uint64_t clock_base;        /* ...and what it showed at the start. */
    bool running, paused, left;
    uint64_t turns, turned;     /* Number, and time of the last one. */

    /* The control thread writes, the loop reads. */
    bool stop, pause;
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

/* Returns NULL without memory. */
struct loop *
loop_create(struct forward *forward, struct port *host, struct port *uplink,
            enum loop_poll poll)
{
    struct loop *l = calloc(1, sizeof *l);

    if (l) {
        l->forward = forward;
        l->host = host;
        l->uplink = uplink;
        l->wake = forward_wake(forward);
        l->turned = clock_now();
        l->poll = poll;
    }
    return l;
}

struct loop *
loop_add_lane(struct loop *first, struct lane *lane, struct port *host,
              struct port *uplink)
{
    struct loop *l = calloc(1, sizeof *l);

    if (l) {
        l->lane = lane;
        l->host = host;
        l->uplink = uplink;
        l->wake = lane_wake(lane);
        l->turned = clock_now();
        l->poll = first->poll;
        l->next = first->next;
        first->next = l;
    }
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

/* Sleeps up to 'ns', less if a frame arrives, and returns whether nothing did.
 * An interface that is down makes poll() return at once, so that the rest of a
 * nap follows. */
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
        sleep_ns(ns < NAP_MAX ? ns : NAP_MAX);
    }
    return !n;
}

static bool
turn(struct loop *l, uint64_t now)
{
    return l->lane ? lane_turn(l->lane, now) : forward_turn(l->forward, now);
}

/* There is something to do. */
static void
end_nap(struct loop *l, uint64_t now)
{
    nap_end(&l->nap, now, ((l->host ? port_received(l->host) : 0)
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

/* The same, with the ports' interrupts.  A frame that came before they were
 * switched on causes none, so there is one more turn. */
static void
wait_for_frame(struct loop *l, uint64_t ns)
{
    uint64_t now;

    for_each_port(l, port_arm);
    if (l->wake) {
        wake_prepare(l->wake);
    }
    now = clock_now();
    if (turn(l, now)) {
        end_nap(l, now);
    } else if (sleep_on_ports(l, ns) && ns == MAX_WAIT) {
        for_each_port(l, port_doubt);
    }
    if (l->wake) {
        wake_finish(l->wake);
    }
    for_each_port(l, port_disarm);
}

/* Are there frames that 'port' has not sent? */
static bool
is_behind(struct port *port)
{
    return port && (port_kick(port) | (port_room(port) < PORT_BURST));
}

static bool
can_tell(const struct port *port)
{
    return !port || port_fd(port) >= 0;
}

static bool
holds(const struct port *port)
{
    return port && port_room(port) < PORT_BURST;
}

static bool
is_ending(const struct loop *l)
{
    return (l->lane ? lane_is_ending(l->lane)
            : forward_is_ending(l->forward));
}

/* Returns the nanoseconds until something here can be sent. */
static uint64_t
until_due(const struct loop *l, uint64_t now)
{
    return (l->lane || holds(l->host) || holds(l->uplink) ? UINT64_MAX
            : forward_until_due(l->forward, now));
}

/* Sleeps, after a turn of the loop that found nothing to do. */
static void
idle(struct loop *l, uint64_t now)
{
    bool behind = is_behind(l->host) | is_behind(l->uplink);
    bool blocked = l->lane && lane_is_blocked(l->lane);
    bool can_wait = (l->poll != LOOP_NAP && !behind && !blocked
                     && can_tell(l->host) && can_tell(l->uplink));
    uint64_t due = until_due(l, now);
    bool ending = is_ending(l);

    if (l->poll == LOOP_BUSY) {
        return;
    }
    if (can_wait && !ending
        && (l->poll == LOOP_INTERRUPT || !nap_gathers(&l->nap))) {
        wait_for_frame(l, due < MAX_WAIT ? due : MAX_WAIT);
    } else {
        uint64_t ns = (ending || blocked ? nap_shortest(&l->nap)
                       : nap_next(&l->nap));

        sleep_ns(due < ns ? due : ns);
    }
}

static void
wait_while_paused(struct loop *l)
{
    STORE(&l->paused, true);
    while (LOAD(&l->pause) && !LOAD(&l->stop)) {
        sleep_ns(NAP_MAX);
    }
    STORE(&l->paused, false);
}

/* Asks the kernel to run this thread soon when it wakes up: a turn takes some
 * microseconds, while the training beside it computes for milliseconds, which
 * is more than the uplink's burst.  With six busy processes on two CPUs and
 * eight shims this took flows from 80 to 96 % of their links, with slices of
 * 100 us.  Those cost throughput where one flow goes as fast as it can: a loop
 * that is busy then stops more often than it has to.  Where it is not allowed, or the kernel knows no slices,
 * packets wait a little longer. */
static void
ask_to_run_soon(void)
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
    ask_to_run_soon();
    pthread_getcpuclockid(pthread_self(), &l->clock);
    l->clock_base = clock_read(l->clock);
    STORE(&l->running, true);
    while (!LOAD(&l->stop)) {
        uint64_t now = clock_now();

        if (LOAD(&l->pause)) {
            wait_while_paused(l);
            continue;
        }
        if (now - l->turned > GAP && l->woke && l->turns) {
            l->woke(l->aux);
            now = clock_now();
        }
        STORE(&l->turned, now);
        STORE(&l->turns, l->turns + 1);
        if (turn(l, now)) {
            end_nap(l, now);
        } else {
            idle(l, now);
        }
    }
    STORE(&l->running, false);
    STORE(&l->left, true);
}

uint64_t
loop_turns(const struct loop *l)
{
    return LOAD(&l->turns);
}

uint64_t
loop_turn_age_ns(const struct loop *l)
{
    uint64_t turned = LOAD(&l->turned), now = clock_now();

    for (l = l->next; l; l = l->next) {
        uint64_t other = LOAD(&l->turned);

        turned = other < turned ? other : turned;
    }
    return now > turned ? now - turned : 0;
}

bool
loop_leave(struct loop *l, uint64_t ns)
{
    uint64_t end = clock_now() + ns;

    loop_stop(l);
    for (; l; l = l->next) {
        while (!LOAD(&l->left) && clock_now() < end) {
            sleep_ns(NAP_MIN);
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
        sleep_ns(NAP_MAX);
    }
    return false;
}

/* Makes the loop keep off its ports.  Returns false if it does not within a
 * second or so; then nothing has changed. */
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

/* Returns the CPU time that the loop's threads took, 0 for those that do not
 * run. */
uint64_t
loop_busy_ns(struct loop *l)
{
    uint64_t ns = 0;

    for (; l; l = l->next) {
        ns += LOAD(&l->running) ? clock_read(l->clock) - l->clock_base : 0;
    }
    return ns;
}
