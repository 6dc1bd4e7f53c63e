/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/iterations.h"

#include <math.h>
#include <stdlib.h>

#include "agent/progress/pauses.h"
#include "util.h"
#include "wire/shim-protocol.h"

#define LOOK_MS 1000            /* Time between searches for a period. */
#define PROVED_MS 3000          /* The same, once a period is well proved. */
#define PROVED 0.7              /* Score from which a period is well proved. */
#define MAX_MISSING 6000        /* Largest gap in the bins, as a number;
                                 * after a longer one the silence of the job
                                 * has an unknown length. */
#define WELL 0.6                /* Part of the best score from which a
                                 * series counts as proved. */
#define ROUND 0.05              /* Part of an iteration that is rounded up. */

enum { SENT, RECEIVED, BOTH, N_SERIES };

struct iterations {
    uint64_t next;              /* Number of the next bin, 0 before the
                                 * first. */
    long long next_look;
    struct pauses series[N_SERIES];
};

struct iterations *
iterations_create(void)
{
    struct iterations *it = xzalloc(sizeof *it);

    for (int i = 0; i < N_SERIES; i++) {
        pauses_init(&it->series[i]);
    }
    return it;
}

void
iterations_destroy(struct iterations *it)
{
    free(it);
}

static void
take_bin(struct iterations *it, uint64_t sent, uint64_t received)
{
    pauses_add_bins(&it->series[SENT], sent);
    pauses_add_bins(&it->series[RECEIVED], received);
    pauses_add_bins(&it->series[BOTH], sent + received);
    it->next++;
}

void
iterations_add_bins(struct iterations *it, uint64_t first,
                    const struct shim_bin *bins, size_t n, long long now)
{
    if (!it->next || first < it->next - MIN(it->next, MAX_MISSING)
        || first > it->next + MAX_MISSING) {
        it->next = first;       /* A number in the past means that the shim
                                 * has restarted. */
    }
    while (it->next < first) {
        take_bin(it, 0, 0);
    }
    for (size_t i = MIN(n, it->next - first); i < n; i++) {
        take_bin(it, bins[i].tx, bins[i].rx);
    }
    if (now >= it->next_look) {
        double best = 0;

        for (int i = 0; i < N_SERIES; i++) {
            pauses_look(&it->series[i]);
            best = fmax(best, it->series[i].score);
        }
        it->next_look = now + (best >= PROVED ? PROVED_MS : LOOK_MS);
    }
}

int64_t
iterations_count(const struct iterations *it)
{
    double best = 0, least = INFINITY;

    for (int i = 0; i < N_SERIES; i++) {
        if (it->series[i].period > 0) {
            best = fmax(best, it->series[i].proved);
        }
    }
    for (int i = 0; i < N_SERIES; i++) {
        const struct pauses *p = &it->series[i];

        if (p->period > 0 && p->proved >= WELL * best) {
            least = fmin(least, pauses_count(p));
        }
    }
    return isfinite(least) ? (int64_t) (least + ROUND) : -1;
}
