/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WATCHDOG_H
#define WATCHDOG_H 1

/* Does the shim forward?
 *
 *
 * Motivation
 * ==========
 *
 * A shim that is gone is easy to tell.  One that hangs is not: to take it for
 * hung when it is not means that every frame goes twice, to take it for well
 * when it hangs cuts the host off.  So there are three witnesses, and only the
 * last one is the shim's own code:
 *
 *   - the kernel says whether the process exists;
 *   - the kernel says whether the process's main thread, which forwards, has
 *     run at all.  It is asked when the shim does not answer, which on a busy
 *     machine need not mean anything;
 *   - the shim answers, and says when its loop last turned.
 *
 *
 * Usage
 * =====
 *
 *    watchdog_init(&w, now);
 *    watchdog_met(&w, now);                        // A connection.
 *    watchdog_asked(&w, now);
 *    watchdog_answered(&w, ports.turns, ports.turn_age_ns);
 *    watchdog_lost(&w, now);                       // The connection ended.
 *    watchdog_died(&w);                            // So did the process.
 *    if (watchdog_wants_progress(&w, now)) {
 *        watchdog_progress(&w, now, steps);
 *    }
 *    opinion = watchdog_judge(&w, now);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * None.  Times are milliseconds. */

#include <stdbool.h>
#include <stdint.h>

#define WATCHDOG_HUNG_MS 500    /* A loop naps for 20 ms at most. */
#define WATCHDOG_LOOK_MS 100    /* Between two looks at a silent process. */

enum watchdog_opinion {
    WATCHDOG_UNSURE,
    WATCHDOG_FORWARDS,
    WATCHDOG_FAILS,
};

struct watchdog {
    long long since;            /* When the present state began. */
    bool met, exists;           /* There was, and there is, a process. */
    bool connected;
    long long asked;            /* The oldest question without answer, 0 if
                                 * there is none. */
    bool turned, stuck;         /* By the last answer. */

    /* What the kernel says of a process that is silent. */
    long long looked;           /* 0: not yet in this silence. */
    long long moved;            /* When it was last seen to have run. */
    uint64_t steps;
};

void watchdog_init(struct watchdog *, long long now);

void watchdog_met(struct watchdog *, long long now);
void watchdog_asked(struct watchdog *, long long now);
void watchdog_answered(struct watchdog *, uint64_t turns,
                       uint64_t turn_age_ns);
void watchdog_lost(struct watchdog *, long long now);
void watchdog_died(struct watchdog *);

/* 'steps' is any number that changes when the thread runs. */
bool watchdog_wants_progress(const struct watchdog *, long long now);
void watchdog_progress(struct watchdog *, long long now, uint64_t steps);

enum watchdog_opinion watchdog_judge(const struct watchdog *, long long now);

/* When its opinion may change without news. */
long long watchdog_next(const struct watchdog *, long long now);

#endif /* agent/actuate/watchdog.h */
