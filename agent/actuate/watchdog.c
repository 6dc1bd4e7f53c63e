/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/actuate/watchdog.h"

#include <limits.h>
#include <string.h>

#define REPLY_MS 100            /* Without a reply, before the kernel's data is
                                 * read. */
#define STILL_MS 400            /* Without having run, before the shim counts
                                 * as hung: longer than a busy machine delays a
                                 * thread that is ready to run. */

void
watchdog_init(struct watchdog *w, long long now)
{
    memset(w, 0, sizeof *w);
    w->since = now;
}

/* A new connection may be to another process, so everything starts over. */
void
watchdog_connected(struct watchdog *w, long long now)
{
    watchdog_init(w, now);
    w->known = w->exists = w->connected = true;
}

void
watchdog_requested(struct watchdog *w, long long now)
{
    if (!w->requested) {
        w->requested = now;
    }
}

void
watchdog_received(struct watchdog *w, uint64_t polls, uint64_t poll_age_ns)
{
    w->requested = w->checked = 0;
    w->stuck = poll_age_ns > WATCHDOG_HUNG_MS * UINT64_C(1000000);
    w->polls = polls > 0 && !w->stuck;
}

void
watchdog_disconnected(struct watchdog *w, long long now)
{
    w->connected = false;
    w->requested = 0;
    w->since = now;
}

static bool
is_unresponsive(const struct watchdog *w, long long now)
{
    return w->exists && (!w->connected
                         || (w->requested && now - w->requested >= REPLY_MS));
}

bool
watchdog_wants_progress(const struct watchdog *w, long long now)
{
    return is_unresponsive(w, now) && now - w->checked >= WATCHDOG_CHECK_MS;
}

void
watchdog_progress(struct watchdog *w, long long now, uint64_t steps)
{
    if (!w->checked || steps != w->steps) {
        w->ran = now;
    }
    w->steps = steps;
    w->checked = now;
}

enum watchdog_verdict
watchdog_judge(const struct watchdog *w, long long now)
{
    if (!w->exists) {
        /* After a takeover the new shim connects before the old connection
         * ends.  After the agent's start, a running shim has some time to be
         * connected to. */
        return (!w->connected
                && (w->known || now - w->since >= WATCHDOG_HUNG_MS)
                ? WATCHDOG_FAILS : WATCHDOG_UNSURE);
    }
    if (w->stuck) {
        return WATCHDOG_FAILS;
    }
    if (is_unresponsive(w, now)) {
        return w->checked && w->checked - w->ran >= STILL_MS
               ? WATCHDOG_FAILS : WATCHDOG_UNSURE;
    }
    return w->polls ? WATCHDOG_FORWARDS : WATCHDOG_UNSURE;
}

long long
watchdog_next(const struct watchdog *w, long long now)
{
    if (!w->exists) {
        return w->since + WATCHDOG_HUNG_MS > now
               ? w->since + WATCHDOG_HUNG_MS : LLONG_MAX;
    }
    if (is_unresponsive(w, now)) {
        return w->checked ? w->checked + WATCHDOG_CHECK_MS : now;
    }
    return w->requested ? w->requested + REPLY_MS : LLONG_MAX;
}
