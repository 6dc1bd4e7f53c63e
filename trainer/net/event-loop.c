/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE 1

#include "trainer/net/event-loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/process/control.h"

#define N_FIXED 3               /* Descriptors of the loop itself. */

struct event_source {
    const struct event_class *class;
    void *aux;
    int64_t until_us;           /* Of the last wait(). */
};

void
event_loop_init(struct event_loop *loop, struct control *control,
                bool (*stops)(const struct control *))
{
    memset(loop, 0, sizeof *loop);
    loop->control = control;
    loop->stops = stops;
    loop->wake_fd = -1;
    loop->fds = allocate(N_FIXED, sizeof *loop->fds);
}

void
event_loop_uninit(struct event_loop *loop)
{
    if (loop->wake_fd >= 0) {
        close(loop->wake_fd);
    }
    free(loop->sources);
    free(loop->fds);
}

void
event_loop_add(struct event_loop *loop, const struct event_class *class,
               void *aux)
{
    if (loop->n == loop->allocated) {
        loop->allocated = 2 * loop->allocated + 4;
        loop->sources = reallocate(loop->sources, loop->allocated,
                                   sizeof *loop->sources);
        loop->fds = reallocate(loop->fds, N_FIXED + loop->allocated,
                               sizeof *loop->fds);
    }
    loop->sources[loop->n++] = (struct event_source) { class, aux, 0 };
}

/* Asks all sources.  Returns the time until which to wait. */
static int64_t
fill_fds(struct event_loop *loop, int64_t until_us)
{
    const struct control *control = loop->control;

    loop->fds[0].fd = control ? control_signal_fd(control) : -1;
    loop->fds[1].fd = control && loop->input ? control_input_fd(control) : -1;
    loop->fds[2].fd = loop->wake_fd;
    loop->fds[0].events = loop->fds[1].events = loop->fds[2].events = POLLIN;
    for (int i = 0; i < loop->n; i++) {
        struct event_source *source = &loop->sources[i];
        struct pollfd *fd = &loop->fds[N_FIXED + i];

        fd->events = POLLIN;
        source->until_us = INT64_MAX;
        fd->fd = source->class->wait(source->aux, &fd->events,
                                     &source->until_us);
        until_us = source->until_us < until_us ? source->until_us : until_us;
    }
    return until_us;
}

static int
poll_until(struct event_loop *loop, int64_t until_us)
{
    int64_t left = until_us <= 0 ? 0 : until_us - clock_monotonic_us();
    struct timespec ts = { 0, 0 };
    int error;

    if (left > 0) {
        ts = (struct timespec) { left / 1000000, left % 1000000 * 1000 };
    }
    if (loop->mutex) {
        pthread_mutex_unlock(loop->mutex);
    }
    error = ppoll(loop->fds, N_FIXED + loop->n,
                  until_us == INT64_MAX ? NULL : &ts, NULL) < 0 ? errno : 0;
    if (loop->mutex) {
        pthread_mutex_lock(loop->mutex);
    }
    return error;
}

/* Runs the sources that have an event or have reached their time. */
static void
run_sources(struct event_loop *loop)
{
    int64_t now = clock_monotonic_us();

    loop->broken = false;
    for (int i = 0; i < loop->n && !loop->broken; i++) {
        struct event_source *source = &loop->sources[i];
        struct pollfd *fd = &loop->fds[N_FIXED + i];

        if ((fd->fd >= 0 && fd->revents) || source->until_us <= now) {
            source->class->run(source->aux, fd->fd >= 0 ? fd->revents : 0);
        }
    }
}

int
event_loop_run(struct event_loop *loop, int64_t until_us)
{
    int error = poll_until(loop, fill_fds(loop, until_us));

    loop->woken = !error && loop->fds[2].revents;
    if (error) {
        return error == EINTR ? 0 : error;
    }
    if (loop->control) {
        if (loop->fds[0].revents || loop->fds[1].revents) {
            control_run(loop->control);
        }
        if (loop->stops(loop->control)) {
            return ECANCELED;
        }
    }
    if (loop->woken) {
        eventfd_t n_wakes;

        eventfd_read(loop->wake_fd, &n_wakes);
    }
    run_sources(loop);
    return 0;
}

int
event_loop_allow_wake(struct event_loop *loop)
{
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return loop->wake_fd < 0 ? errno : 0;
}

void
event_loop_wake(struct event_loop *loop)
{
    eventfd_write(loop->wake_fd, 1);    /* Fails only if it is not read. */
}

void
event_loop_break(struct event_loop *loop)
{
    loop->broken = true;
}
