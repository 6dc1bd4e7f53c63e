/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/succession.h"

#include <errno.h>
#include <time.h>

#include "wire/shim-protocol.h"
#include "shim/clock/clock.h"
#include "shim/loop/forward.h"
#include "shim/loop/loop.h"

#define MS UINT64_C(1000000)    /* Nanoseconds. */

/* What the host can be without: see SHIM_TAKE_OVER. */
#define END_NS (100 * MS)       /* Until the loop, which may nap until a
                                 * frame comes, receives no more... */
#define DRAIN_NS (30 * MS)      /* ...and its queues are empty. */
#define SUCCESSOR_NS (300 * MS)

static void
sleep_a_little(void)
{
    struct timespec ts = { 0, 20000 };

    nanosleep(&ts, NULL);
}

/* Makes the loop receive no more, or again.  Returns false if it does not
 * listen. */
static bool
set_ending(struct succession *s, bool ending)
{
    uint64_t late = clock_now() + END_NS;

    forward_end(s->forward, ending);
    while (forward_has_ended(s->forward) != ending) {
        if (clock_now() > late) {
            return false;
        }
        sleep_a_little();
    }
    return true;
}

static int
stop_for_successor(struct succession *s)
{
    if (!set_ending(s, true)) {
        set_ending(s, false);
        return EBUSY;
    }
    s->deadline = clock_now() + SUCCESSOR_NS;
    return 0;
}

/* Lets the queues run empty, if that is a matter of milliseconds. */
static int
leave_to_successor(struct succession *s)
{
    uint64_t end = clock_now() + DRAIN_NS;
    struct shim_stats stats;

    if (!s->deadline) {
        return EINVAL;
    }
    do {
        sleep_a_little();
        forward_stats(s->forward, &stats);
    } while (stats.queued_bytes && clock_now() < end);
    if (!loop_leave(s->loop, END_NS)) {
        return EBUSY;
    }
    s->leaving = true;
    return 0;
}

int
succession_step(struct succession *s, uint32_t step)
{
    return step == SHIM_STEP_STOP ? stop_for_successor(s)
           : leave_to_successor(s);
}

bool
succession_check(struct succession *s, uint64_t now)
{
    if (!s->deadline || s->leaving || now <= s->deadline) {
        return false;
    }
    s->deadline = 0;
    set_ending(s, false);
    return true;
}
