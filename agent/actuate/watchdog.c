/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/actuate/watchdog.h"

#include <limits.h>
#include <string.h>

#define SILENT_MS 100           /* Without an answer, before the kernel is
                                 * asked. */
#define STILL_MS 400            /* Without having run: more than a busy machine
                                 * keeps a thread waiting that asked to run
                                 * soon. */

void
watchdog_init(struct watchdog *w, long long now)
{
    memset(w, 0, sizeof *w);
    w->since = now;
}

/* A process listens: what was known is of another one, perhaps. */
void
watchdog_met(struct watchdog *w, long long now)
{
    watchdog_init(w, now);
    w->met = w->exists = w->connected = true;
}

void
watchdog_asked(struct watchdog *w, long long now)
{
    if (!w->asked) {
        w->asked = now;
    }
}

void
watchdog_answered(struct watchdog *w, uint64_t turns, uint64_t turn_age_ns)
{
    w->asked = w->looked = 0;
    w->stuck = turn_age_ns > WATCHDOG_HUNG_MS * UINT64_C(1000000);
    w->turned = turns > 0 && !w->stuck;
}

void
watchdog_lost(struct watchdog *w, long long now)
{
    w->connected = false;
    w->asked = 0;
    w->since = now;
}

void
watchdog_died(struct watchdog *w)
{
    w->exists = false;
}

static bool
is_silent(const struct watchdog *w, long long now)
{
    return w->exists && (!w->connected
                         || (w->asked && now - w->asked >= SILENT_MS));
}

bool
watchdog_wants_progress(const struct watchdog *w, long long now)
{
    return is_silent(w, now) && now - w->looked >= WATCHDOG_LOOK_MS;
}

void
watchdog_progress(struct watchdog *w, long long now, uint64_t steps)
{
    if (!w->looked || steps != w->steps) {
        w->moved = now;
    }
    w->steps = steps;
    w->looked = now;
}

enum watchdog_opinion
watchdog_judge(const struct watchdog *w, long long now)
{
    if (!w->exists) {
        /* Its connection ends, too, and then another process may be there: a
         * successor.  At the start a shim has the time to be found. */
        return (!w->connected
                && (w->met || now - w->since >= WATCHDOG_HUNG_MS)
                ? WATCHDOG_FAILS : WATCHDOG_UNSURE);
    }
    if (w->stuck) {
        return WATCHDOG_FAILS;
    }
    if (is_silent(w, now)) {
        return w->looked && w->looked - w->moved >= STILL_MS
               ? WATCHDOG_FAILS : WATCHDOG_UNSURE;
    }
    return w->turned ? WATCHDOG_FORWARDS : WATCHDOG_UNSURE;
}

long long
watchdog_next(const struct watchdog *w, long long now)
{
    if (!w->exists) {
        return w->since + WATCHDOG_HUNG_MS > now
               ? w->since + WATCHDOG_HUNG_MS : LLONG_MAX;
    }
    if (is_silent(w, now)) {
        return w->looked ? w->looked + WATCHDOG_LOOK_MS : now;
    }
    return w->asked ? w->asked + SILENT_MS : LLONG_MAX;
}
