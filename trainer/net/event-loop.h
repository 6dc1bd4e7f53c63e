/* SPDX-License-Identifier: Apache-2.0 */

#ifndef EVENT_LOOP_H
#define EVENT_LOOP_H 1

/* The one poll() of a thread: its descriptors, its timers, and the signals and
 * commands of the process.
 *
 * A source is an object with two functions.  wait() returns the descriptor
 * and the events, or the time, that the source waits for; run() handles them.
 *
 *    event_loop_init(&loop, control, control_ended);
 *    event_loop_add(&loop, &connection_class, &connection);
 *    while (!over) {
 *        int error = event_loop_run(&loop, until_us);
 *
 *        if (error) {
 *            ...ECANCELED: the process is to stop...
 *        }
 *        ...what is to be done after each poll...
 *    }
 *    event_loop_uninit(&loop);
 *
 * Sources, the control and the mutex are the caller's.  A loop belongs to one
 * thread.  If it has a 'mutex', the thread holds it whenever it calls
 * event_loop_run(), which releases it during the poll() only. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct control;

struct event_class {
    /* Returns the descriptor to poll, or -1 for none.  '*events' is POLLIN and
     * '*until_us' INT64_MAX unless the function sets them; run() is called
     * when the time '*until_us' has come, even if there is no event.  A time
     * in the past: without waiting. */
    int (*wait)(void *aux, short *events, int64_t *until_us);

    void (*run)(void *aux, short revents);
};

struct event_loop {
    struct control *control;    /* Or NULL. */
    bool (*stops)(const struct control *);
    bool input;                 /* Also take commands of standard input. */
    pthread_mutex_t *mutex;     /* Released during the poll(), or NULL. */
    bool broken;                /* event_loop_break() was called. */
    bool woken;                 /* event_loop_wake() ended the last poll. */
    int wake_fd;                /* Of event_loop_wake(), or -1. */

    struct event_source *sources;
    struct pollfd *fds;         /* Signals, input, waking, then the
                                 * sources'. */
    int n, allocated;           /* Sources. */
};

/* 'stops' is control_stopped() or control_ended(). */
void event_loop_init(struct event_loop *, struct control *,
                     bool (*stops)(const struct control *));
void event_loop_uninit(struct event_loop *);

/* Sources run in the order in which they were added. */
void event_loop_add(struct event_loop *, const struct event_class *,
                    void *aux);

/* Polls once, at most until 'until_us' of clock_monotonic_us(), and runs the
 * sources for which something has happened.  Returns 0, ECANCELED if the
 * process was stopped, without running a source, or another errno. */
int event_loop_run(struct event_loop *, int64_t until_us);

/* event_loop_wake() ends the poll, from any thread, once the first function
 * has returned 0; it may return another errno. */
int event_loop_allow_wake(struct event_loop *);
void event_loop_wake(struct event_loop *);

/* For run(): no other source runs after this poll. */
void event_loop_break(struct event_loop *);

#endif /* trainer/net/event-loop.h */
