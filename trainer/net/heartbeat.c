/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/heartbeat.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/frame.h"
#include "trainer/net/link.h"
#include "trainer/process/report.h"
#include "trainer/process/thread.h"

#define INTERVAL_US 1000000
#define BEATS_A_DEADLINE 4      /* At least. */

struct target {
    char *name;                 /* "HOST:PORT", of the port for data. */

    /* What the worker's thread says, under the mutex. */
    struct frame_hello hello;
    uint16_t port;              /* 0: nowhere. */
    bool changed;

    /* The thread's own. */
    struct link link;
    int64_t heard_us;           /* Or when it connected. */
};

struct heartbeat {
    struct target *targets;
    int n_targets;
    int64_t deadline_us, interval_us;
    _Atomic uint64_t iteration;
    int wake_fd, failure_fd;
    pthread_t thread;
    pthread_mutex_t mutex;      /* Guards what says so, and these: */
    bool end;
    char *failure;
};

/* The thread. */

static void
signal_event(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) < 0) {
        /* It cannot be more readable than it is. */
    }
}

/* Begins to connect to 'target', whose hello is 'hello'; what the connection
 * takes of it is sent when it is there. */
static void
target_connect(struct target *target, const struct frame_hello *hello,
               uint16_t port)
{
    const char *colon = strrchr(target->name, ':');
    struct frame frame = { .type = FRAME_HELLO };
    uint8_t body[FRAME_HELLO_LENGTH];
    struct frame_hello control;
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
    link_mark_control(fd);
    link_init(&target->link, fd);
    target->heard_us = report_monotonic_us();
    control = *hello;
    control.channel = FRAME_CONTROL;
    control.rewind = FRAME_NONE;
    frame_hello_encode(&control, body);
    link_send_copy(&target->link, &frame, body);
}

/* Takes what has come.  Whatever is wrong ends the connection, and the next
 * beat makes another one. */
static void
target_receive(struct target *target)
{
    char text[FRAME_MAX_TEXT], *error;

    for (;;) {
        switch (link_receive(&target->link, &error)) {
        case LINK_AGAIN:
            return;
        case LINK_HEADER:
            if (target->link.frame.type != FRAME_HEARTBEAT
                && target->link.frame.type != FRAME_ABORT) {
                link_close(&target->link);
                return;
            }
            link_set_body(&target->link, text);
            break;
        case LINK_FRAME:
            target->heard_us = report_monotonic_us();
            break;
        case LINK_END:
            free(error);
            link_close(&target->link);
            return;
        }
    }
}

static void
target_beat(struct heartbeat *hb, struct target *target)
{
    struct frame frame = {
        .type = FRAME_HEARTBEAT, .iteration = atomic_load(&hb->iteration),
    };
    struct frame_hello hello;
    uint16_t port;
    bool changed;

    pthread_mutex_lock(&hb->mutex);
    hello = target->hello;
    port = target->port;
    changed = target->changed;
    target->changed = false;
    pthread_mutex_unlock(&hb->mutex);

    if (changed) {
        link_close(&target->link);
    }
    if (target->link.fd < 0) {
        target_connect(target, &hello, port);
    }
    if (target->link.fd >= 0 && link_has_room(&target->link, 0)) {
        link_send(&target->link, &frame, NULL);
    }
}

static bool
is_silent(const struct heartbeat *hb, const struct target *target)
{
    return target->link.fd >= 0
           && report_monotonic_us() - target->heard_us > hb->deadline_us;
}

static void
set_failure(struct heartbeat *hb, const struct target *target)
{
    pthread_mutex_lock(&hb->mutex);
    if (!hb->failure) {
        hb->failure = message("server %s: silent for %lld s", target->name,
                              (long long) hb->deadline_us / 1000000);
    }
    pthread_mutex_unlock(&hb->mutex);
    signal_event(hb->failure_fd);
}

static bool
must_end(struct heartbeat *hb)
{
    bool end;

    pthread_mutex_lock(&hb->mutex);
    end = hb->end;
    pthread_mutex_unlock(&hb->mutex);
    return end;
}

/* Sends and receives until 'until_us', or until something has changed. */
static void
wait_and_receive(struct heartbeat *hb, struct pollfd *fds, int64_t until_us)
{
    int64_t left = until_us - report_monotonic_us();

    fds[0].fd = hb->wake_fd;
    fds[0].events = POLLIN;
    fds[0].revents = 0;
    for (int i = 0; i < hb->n_targets; i++) {
        fds[1 + i].fd = hb->targets[i].link.fd;
        fds[1 + i].events = link_events(&hb->targets[i].link);
        fds[1 + i].revents = 0;
    }
    poll(fds, 1 + hb->n_targets, left > 0 ? left / 1000 + 1 : 0);
    for (int i = 0; i < hb->n_targets; i++) {
        struct target *target = &hb->targets[i];

        if (fds[1 + i].revents & POLLOUT) {
            link_flush(&target->link);
        }
        if (fds[1 + i].revents & ~POLLOUT) {
            target_receive(target);
        }
    }
}

static void *
heartbeat_main(void *hb_)
{
    struct heartbeat *hb = hb_;
    struct pollfd *fds = allocate(1 + hb->n_targets, sizeof *fds);

    while (!must_end(hb)) {
        int64_t until = report_monotonic_us() + hb->interval_us;
        uint64_t n_wakes;

        for (int i = 0; i < hb->n_targets; i++) {
            target_beat(hb, &hb->targets[i]);
        }
        do {
            wait_and_receive(hb, fds, until);
        } while (!fds[0].revents && report_monotonic_us() < until);
        if (fds[0].revents
            && read(hb->wake_fd, &n_wakes, sizeof n_wakes) < 0) {
            /* Somebody will wake us again. */
        }
        for (int i = 0; i < hb->n_targets; i++) {
            if (is_silent(hb, &hb->targets[i])) {
                set_failure(hb, &hb->targets[i]);
            }
        }
    }
    free(fds);
    return NULL;
}

/* The worker's thread. */

static void
heartbeat_free(struct heartbeat *hb)
{
    for (int i = 0; i < hb->n_targets; i++) {
        link_close(&hb->targets[i].link);
        free(hb->targets[i].name);
    }
    if (hb->wake_fd >= 0) {
        close(hb->wake_fd);
    }
    if (hb->failure_fd >= 0) {
        close(hb->failure_fd);
    }
    pthread_mutex_destroy(&hb->mutex);
    free(hb->targets);
    free(hb->failure);
    free(hb);
}

char *
heartbeat_create(const char *const names[], int n_servers,
                 int64_t deadline_us, struct heartbeat **hbp)
{
    struct heartbeat *hb = allocate(1, sizeof *hb);
    char *error;

    hb->targets = allocate(n_servers, sizeof *hb->targets);
    hb->n_targets = n_servers;
    hb->deadline_us = deadline_us;
    hb->interval_us = deadline_us / BEATS_A_DEADLINE < INTERVAL_US
                      ? deadline_us / BEATS_A_DEADLINE : INTERVAL_US;
    hb->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hb->failure_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&hb->mutex, NULL);
    for (int i = 0; i < n_servers; i++) {
        hb->targets[i].name = duplicate(names[i]);
        link_init(&hb->targets[i].link, -1);
    }
    error = hb->wake_fd < 0 || hb->failure_fd < 0
            ? message("heartbeats: %s", strerror(errno))
            : thread_start(&hb->thread, "heartbeats", heartbeat_main, hb);
    if (error) {
        heartbeat_free(hb);
        hb = NULL;
    }
    *hbp = hb;
    return error;
}

void
heartbeat_destroy(struct heartbeat *hb)
{
    if (hb) {
        pthread_mutex_lock(&hb->mutex);
        hb->end = true;
        pthread_mutex_unlock(&hb->mutex);
        signal_event(hb->wake_fd);
        pthread_join(hb->thread, NULL);
        heartbeat_free(hb);
    }
}

void
heartbeat_watch(struct heartbeat *hb, int i, const struct frame_hello *hello,
                uint16_t port)
{
    struct target *target = &hb->targets[i];

    pthread_mutex_lock(&hb->mutex);
    target->changed = target->changed || target->port != port
                      || target->hello.epoch != hello->epoch;
    target->hello = *hello;
    target->port = port;
    pthread_mutex_unlock(&hb->mutex);
    signal_event(hb->wake_fd);
}

void
heartbeat_set_iteration(struct heartbeat *hb, uint64_t iteration)
{
    atomic_store(&hb->iteration, iteration);
}

int
heartbeat_fd(const struct heartbeat *hb)
{
    return hb->failure_fd;
}

char *
heartbeat_failure(struct heartbeat *hb)
{
    char *failure;

    pthread_mutex_lock(&hb->mutex);
    failure = duplicate(hb->failure ? hb->failure : "a server is silent");
    pthread_mutex_unlock(&hb->mutex);
    return failure;
}
