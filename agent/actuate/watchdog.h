/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WATCHDOG_H
#define WATCHDOG_H 1

/* Decides whether the shim forwards packets.
 *
 * A shim that has exited is easy to detect, one that hangs is not.  If the
 * agent enables the bypass while the shim forwards, every frame is duplicated;
 * if it does not while the shim hangs, the host has no network.  The decision
 * uses three sources, of which only the last is the shim's own code:
 *
 *   - the kernel reports whether the process exists;
 *   - the kernel reports whether the process's main thread, which forwards,
 * has run.  This is read only while the shim does not reply, which can also
 *     happen on a busy machine;
 *   - the shim's replies contain the age of its last poll.
 *
 *    watchdog_init(&w, now);
 *    watchdog_connected(&w, now);
 *    watchdog_requested(&w, now);                  // Sent SHIM_PORTS.
 *    watchdog_received(&w, ports.polls, ports.poll_age_ns);
 *    watchdog_disconnected(&w, now);
 *    w.exists = false;                             // The process has exited.
 *    if (watchdog_wants_progress(&w, now)) {
 *        watchdog_progress(&w, now, steps);
 *    }
 *    verdict = watchdog_judge(&w, now);
 *
 * Plain data of the caller.  Times are in milliseconds. */

#include <stdbool.h>
#include <stdint.h>

#define WATCHDOG_HUNG_MS 500    /* Age of a poll above which the shim hangs;
                                 * an idle loop sleeps 20 ms at most. */
#define WATCHDOG_CHECK_MS 100   /* Between checks of a process that does not
                                 * reply. */

enum watchdog_verdict { WATCHDOG_UNSURE, WATCHDOG_FORWARDS, WATCHDOG_FAILS };

struct watchdog {
    long long since;            /* Time of the last connect or disconnect. */
    bool known;                 /* A shim has connected since the start. */
    bool exists;                /* Its process has not exited. */
    bool connected;
    long long requested;        /* Time of the oldest request without a reply,
                                 * 0 if there is none. */
    bool polls;                 /* Last reply: the loop polls. */
    bool stuck;                 /* Last reply: the last poll is too old. */

    /* The kernel's data about a process that does not reply. */
    long long checked;          /* Time of the last check, 0 if none yet. */
    long long ran;              /* Time when the thread was last seen to have
                                 * run. */
    uint64_t steps;             /* At the last check. */
};

void watchdog_init(struct watchdog *, long long now);

void watchdog_connected(struct watchdog *, long long now);
void watchdog_requested(struct watchdog *, long long now);
void watchdog_received(struct watchdog *, uint64_t polls,
                       uint64_t poll_age_ns);
void watchdog_disconnected(struct watchdog *, long long now);

/* Returns true if it is time to check whether the shim's thread has run; then
 * watchdog_progress() reports 'steps', any number that changes when the thread
 * runs. */
bool watchdog_wants_progress(const struct watchdog *, long long now);
void watchdog_progress(struct watchdog *, long long now, uint64_t steps);

enum watchdog_verdict watchdog_judge(const struct watchdog *, long long now);

/* Returns the time at which the verdict may change without an event, LLONG_MAX
 * if never. */
long long watchdog_next(const struct watchdog *, long long now);

#endif /* agent/actuate/watchdog.h */
