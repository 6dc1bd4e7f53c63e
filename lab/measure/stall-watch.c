/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/measure/stall-watch.h"

#include <stdlib.h>

#include "openvswitch/shash.h"
#include "util.h"

struct watched {
    long long iteration;
    long long since;            /* Time of the last progress, or of the first
                                 * sample, ms. */
    uint64_t moved;             /* Bytes moved since then. */
    long long seen;             /* Time of the last sample, ms. */
    bool logged;
};

struct stall_watch {
    struct shash jobs;          /* By "COJOB/JOB". */
    uint64_t limit;             /* Bytes in STALL_MS above which a link counts
                                 * as busy. */
};

struct stall_watch *
stall_watch_create(int64_t rate_bps)
{
    struct stall_watch *sw = xmalloc(sizeof *sw);

    shash_init(&sw->jobs);
    sw->limit = rate_bps / 8 * STALL_MS / 1000 / 100;
    return sw;
}

void
stall_watch_destroy(struct stall_watch *sw)
{
    if (sw) {
        shash_destroy_free_data(&sw->jobs);
        free(sw);
    }
}

bool
stall_watch_job(struct stall_watch *sw, const char *cojob, const char *job,
                long long iteration, uint64_t moved, long long now_ms)
{
    char *name = xasprintf("%s/%s", cojob, job);
    struct watched *w = shash_find_data(&sw->jobs, name);

    if (!w) {
        w = xzalloc(sizeof *w);
        w->iteration = -1;
        shash_add(&sw->jobs, name, w);
    }
    free(name);

    /* A job that was not sampled for STALL_MS / 2 was between stages: restart
     * its stall timer. */
    w->moved += moved;
    if (w->iteration != iteration || w->moved > sw->limit
        || now_ms - w->seen > STALL_MS / 2) {
        w->iteration = iteration;
        w->since = now_ms;
        w->moved = 0;
        w->logged = false;
    }
    w->seen = now_ms;
    if (now_ms - w->since <= STALL_MS || w->logged) {
        return false;
    }
    w->logged = true;
    return true;
}
