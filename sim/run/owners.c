/* SPDX-License-Identifier: Apache-2.0 */

/* Accounts of the owners of searches. */

#include <string.h>

#include "order/problem/account.h"
#include "order/problem/memory.h"
#include "sim/run/live.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload.h"

/* Returns what 'stage' adds to the account of its owner. */
static struct account_search
search_of(const struct live *live, const struct live_stage *stage)
{
    const struct sim_stage *record = stage->record;
    double own = workload_rung_iterations(stage->cojob, record->rung);

    return (struct account_search){
        .owner = live->owners[record->cojob],
        .work = live->served[record->cojob]
                + stage->work * (1 + stage->announcement.later / own),
    };
}

void
live_find_debts(const struct live *live)
{
    struct account_search *searches =
        order_alloc(live->n_units, sizeof *searches);
    struct live_stage **stages = order_alloc(live->n_units, sizeof *stages);
    size_t n = 0;

    for (size_t u = 0; u < live->n_units; u++) {
        live->units[u]->stage->place = -1;
    }
    for (size_t u = 0; u < live->n_units; u++) {
        struct live_stage *stage = live->units[u]->stage;

        if (stage->place < 0) {
            stage->place = 0;
            stages[n] = stage;
            searches[n++] = search_of(live, stage);
        }
    }
    account_debts(live->accounts, live->workload->n_cojobs, live->now,
                  live->options->owner_memory_s, searches, n);
    for (size_t i = 0; i < n; i++) {
        stages[i]->debt = searches[i].debt;
    }
    free(searches);
    free(stages);
}

void
live_find_owners(struct live *live)
{
    const struct workload *w = live->workload;

    live->owners = order_alloc(w->n_cojobs, sizeof *live->owners);
    live->accounts = order_alloc(w->n_cojobs, sizeof *live->accounts);
    live->served = order_alloc(w->n_cojobs, sizeof *live->served);
    for (size_t i = 0; i < w->n_cojobs; i++) {
        const char *user = w->cojobs[i].user;
        size_t owner = i;

        for (size_t j = 0; user && j < i && owner == i; j++) {
            const char *other = w->cojobs[j].user;

            owner = other && !strcmp(user, other) ? live->owners[j] : i;
        }
        live->owners[i] = owner;
    }
}
