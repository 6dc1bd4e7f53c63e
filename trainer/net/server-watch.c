/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/server-watch.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/dispatch.h"
#include "trainer/net/event-loop.h"
#include "trainer/net/heartbeat.h"
#include "trainer/process/control.h"
#include "trainer/process/report.h"

#define MAX_PENDING 16          /* Beats in flight that are measured. */
#define MAX_TRIPS 16384         /* Round trips in the report: the last ones. */

struct target {
    struct server_watch *watch;
    char *name;                 /* "HOST:PORT", of the port for data. */

    /* Set by the worker's thread, under the mutex. */
    struct frame_hello hello;
    uint16_t port;              /* For heartbeats; 0: the server has none. */
    bool changed;

    /* Of the watching thread. */
    struct link link;           /* Closed: connected again at the next beat. */
    struct heartbeat heartbeat;
    uint64_t n_beats, n_answers;        /* On all connections. */
    uint64_t n_closed;          /* 'n_beats' when the last one was opened. */
    int64_t sent_us[MAX_PENDING];       /* Beat i at i % MAX_PENDING. */
    int64_t registered_us;      /* When 'port' was registered last. */
};

struct server_watch {
    struct target *targets;
    int n_targets;
    int64_t timeout_us;
    _Atomic uint64_t iteration;
    _Atomic bool end;
    const struct target *_Atomic silent;        /* The first one, or NULL. */
    int failure_fd;             /* Readable once 'silent' is set. */
    void (*fail)(void *aux, char *why);
    void *aux;
    uint32_t *trips;            /* Round trips, microseconds: trip i at i %
                                 * MAX_TRIPS. */
    uint64_t n_trips;
    uint64_t n_lost;            /* Beats of closed connections without an
                                 * answer. */
    pthread_t thread;
    struct event_loop loop;     /* Of the watching thread. */
    pthread_mutex_t mutex;      /* Guards what the worker's thread sets. */
};

/* The watching thread. */

static void
register_port(struct target *target, uint16_t port)
{
    target->registered_us = clock_monotonic_us();
    report_control_port(port);
}

/* Begins to connect to 'target'; the hello is sent once it is connected. */
static void
target_connect(const struct server_watch *watch, struct target *target,
               const struct frame_hello *hello, uint16_t port)
{
    const char *colon = strrchr(target->name, ':');
    struct frame frame = { .type = FRAME_HELLO, .hello = *hello };
    char *name, *error;
    int fd;

    if (!port || !colon) {
        return;
    }
    name = message("%.*s:%u", (int) (colon - target->name), target->name,
                   port);
    error = address_connect(name, &fd);
    free(name);
    if (error) {
        free(error);            /* Tried again at the next beat. */
        return;
    }
    if (link_tune(fd, NULL)) {
        close(fd);
        return;
    }
    register_port(target, port);
    link_mark_control(fd);
    link_init(&target->link, fd);
    heartbeat_start(&target->heartbeat, watch->timeout_us,
                    clock_monotonic_us());
    frame.hello.channel = FRAME_CONTROL;
    frame.hello.rewind = FRAME_NONE;
    link_send(&target->link, &frame, NULL);
}

static void
target_close(struct target *target)
{
    link_close(&target->link);
    target->watch->n_lost += target->n_beats - target->n_answers;
    target->n_closed = target->n_answers = target->n_beats;
}

static char *
end_frame(void *target_, struct link *link)
{
    struct target *target = target_;

    heartbeat_heard(&target->heartbeat, clock_monotonic_us());
    return NULL;
}

static char *
end_heartbeat(void *target_, struct link *link)
{
    struct target *target = target_;
    struct server_watch *watch = target->watch;
    uint64_t beat = target->n_answers++;

    /* The first one has waited for the connection. */
    if (beat > target->n_closed && target->n_beats - beat <= MAX_PENDING) {
        watch->trips[watch->n_trips++ % MAX_TRIPS] =
            clock_monotonic_us() - target->sent_us[beat % MAX_PENDING];
    }
    return end_frame(target, link);
}

static int
target_wait(void *target_, short *events, int64_t *until_us)
{
    const struct target *target = target_;

    return link_wait(&target->link, true, events);
}

/* Whatever is wrong closes the connection; the next beat opens it again. */
static void
target_run(void *target_, short revents)
{
    static const struct dispatcher dispatcher = {
        .handlers = {
            [FRAME_HEARTBEAT] = { .end = end_heartbeat },
            [FRAME_ABORT] = { dispatch_keep_payload, end_frame },
        },
    };
    struct target *target = target_;
    char *error;

    if (revents & POLLOUT) {
        link_flush(&target->link);
    }
    if (revents & ~POLLOUT
        && dispatch_frames(&target->link, &dispatcher, target, &error)
           != DISPATCH_AGAIN) {
        free(error);
        target_close(target);
    }
}

static void
target_beat(struct server_watch *watch, struct target *target)
{
    struct frame frame = {
        .type = FRAME_HEARTBEAT,
        .heartbeat.iteration = atomic_load(&watch->iteration),
    };
    struct frame_hello hello;
    uint16_t port;
    bool changed;

    pthread_mutex_lock(&watch->mutex);
    hello = target->hello;
    port = target->port;
    changed = target->changed;
    target->changed = false;
    pthread_mutex_unlock(&watch->mutex);

    if (changed) {
        target_close(target);
    }
    if (target->link.fd < 0) {
        target_connect(watch, target, &hello, port);
    }
    if (target->link.fd >= 0 && link_has_space(&target->link, 0)) {
        if (clock_monotonic_us() - target->registered_us
            >= HEARTBEAT_REGISTER_US) {
            register_port(target, port);
        }
        target->sent_us[target->n_beats++ % MAX_PENDING] =
            clock_monotonic_us();
        link_send(&target->link, &frame, NULL);
    }
}

static void *
watch_main(void *watch_)
{
    struct server_watch *watch = watch_;
    struct heartbeat all = { .timeout_us = watch->timeout_us };

    while (!watch->end) {
        int64_t now = clock_monotonic_us();
        bool beat = heartbeat_due(&all, now) || watch->loop.woken;

        for (int i = 0; i < watch->n_targets; i++) {
            struct target *target = &watch->targets[i];

            if (!watch->silent && target->link.fd >= 0
                && heartbeat_is_silent(&target->heartbeat, now)) {
                watch->silent = target;
                eventfd_write(watch->failure_fd, 1);
            }
            if (beat) {
                target_beat(watch, target);
            }
        }
        event_loop_run(&watch->loop, heartbeat_next_us(&all));
    }
    return NULL;
}

/* The worker's thread. */

static void
watch_free(struct server_watch *watch)
{
    for (int i = 0; i < watch->n_targets; i++) {
        link_close(&watch->targets[i].link);
        free(watch->targets[i].name);
    }
    event_loop_uninit(&watch->loop);
    if (watch->failure_fd >= 0) {
        close(watch->failure_fd);
    }
    pthread_mutex_destroy(&watch->mutex);
    free(watch->trips);
    free(watch->targets);
    free(watch);
}

static int
failure_wait(void *watch_, short *events, int64_t *until_us)
{
    const struct server_watch *watch = watch_;

    return watch->failure_fd;
}

static void
failure_run(void *watch_, short revents)
{
    const struct server_watch *watch = watch_;
    const struct target *target = watch->silent;

    watch->fail(watch->aux, message("server %s: silent for %lld s",
                                    target->name,
                                    (long long) watch->timeout_us / 1000000));
}

char *
server_watch_create(const char *const names[], int n_servers,
                    int64_t timeout_us, struct event_loop *loop,
                    void (*fail)(void *aux, char *why), void *aux,
                    struct server_watch **watchp)
{
    static const struct event_class class = { target_wait, target_run };
    static const struct event_class failure_class = { failure_wait,
                                                      failure_run };
    struct server_watch *watch = allocate(1, sizeof *watch);
    char *error;

    watch->targets = allocate(n_servers, sizeof *watch->targets);
    watch->n_targets = n_servers;
    watch->trips = allocate(MAX_TRIPS, sizeof *watch->trips);
    watch->timeout_us = timeout_us;
    watch->fail = fail;
    watch->aux = aux;
    watch->failure_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&watch->mutex, NULL);
    event_loop_init(&watch->loop, NULL, NULL);
    for (int i = 0; i < n_servers; i++) {
        watch->targets[i].watch = watch;
        watch->targets[i].name = duplicate(names[i]);
        link_init(&watch->targets[i].link, -1);
        event_loop_add(&watch->loop, &class, &watch->targets[i]);
    }
    error = event_loop_allow_wake(&watch->loop) || watch->failure_fd < 0
            ? message("heartbeats: %s", strerror(errno))
            : thread_start(&watch->thread, "heartbeats", watch_main, watch);
    if (error) {
        watch_free(watch);
        watch = NULL;
    } else {
        event_loop_add(loop, &failure_class, watch);
    }
    *watchp = watch;
    return error;
}

void
server_watch_destroy(struct server_watch *watch)
{
    if (watch) {
        watch->end = true;
        event_loop_wake(&watch->loop);
        pthread_join(watch->thread, NULL);
        report_heartbeats(watch->trips, watch->n_trips < MAX_TRIPS
                          ? watch->n_trips : MAX_TRIPS, watch->n_lost);
        watch_free(watch);
    }
}

void
server_watch_set(struct server_watch *watch, int i,
                 const struct frame_hello *hello, uint16_t port)
{
    struct target *target = &watch->targets[i];

    pthread_mutex_lock(&watch->mutex);
    target->changed = target->changed || target->port != port
                      || target->hello.epoch != hello->epoch;
    target->hello = *hello;
    target->port = port;
    pthread_mutex_unlock(&watch->mutex);
    event_loop_wake(&watch->loop);
}

void
server_watch_set_iteration(struct server_watch *watch, uint64_t iteration)
{
    atomic_store(&watch->iteration, iteration);
}
