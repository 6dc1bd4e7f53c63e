/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/shim-tables.h"

#include <stdlib.h>
#include <string.h>

#include "agent/identify/registry.h"
#include "base/name.h"
#include "util.h"

struct slot_job {
    const char *name;           /* The whole name. */
    struct shim_slot want;      /* 'slot' is its number, 0 if none is free;
                                 * 'name' is shortened to what fits. */
    uint64_t next_bin;          /* First bin that has not been received. */
    bool decided;               /* False: a row that the shim already has for
                                 * this name is as good as 'want'. */
};

void
slot_table_init(struct slot_table *st)
{
    memset(st, 0, sizeof *st);
    shash_init(&st->jobs);
}

void
slot_table_uninit(struct slot_table *st)
{
    shash_destroy_free_data(&st->jobs);
}

static void
give_number(struct slot_table *st, struct slot_job *job, uint16_t number)
{
    job->want.slot = number;
    st->owners[number] = job;
}

/* The last slot is not given: with its flags, its tag would be a reserved one
 * (wire/slot-tag.h). */
static void
find_number(struct slot_table *st, struct slot_job *job)
{
    for (int i = 0; i < REGISTRY_MAX_JOBS; i++) {
        uint16_t number = 1 + (st->last + i) % REGISTRY_MAX_JOBS;

        if (!st->owners[number]) {
            give_number(st, job, number);
            st->last = number;
            return;
        }
    }
}

/* Gives 'job' the number of the adopted row of its name, which counters and
 * claims refer to.  Returns false if no adopted row has the name. */
static bool
take_row(struct slot_table *st, struct slot_job *job)
{
    for (uint16_t i = 1; i < SHIM_MAX_SLOTS; i++) {
        const struct shim_slot *have = &st->installed[i];

        if (have->slot && !st->owners[i]
            && !strcmp(have->name, job->want.name)) {
            give_number(st, job, i);
            return true;
        }
    }
    return false;
}

/* Sets the desired row of the job called 'name', without the row's 'slot' and
 * 'name'.  If not 'decided', the order has no row for the job yet: a row of
 * that name that the shim has may stay. */
void
slot_table_want(struct slot_table *st, const char *name,
                const struct shim_slot *row, bool decided)
{
    struct slot_job *job = shash_find_data(&st->jobs, name);
    uint16_t number = job ? job->want.slot : 0;
    bool is_new = !job;

    if (is_new) {
        job = xzalloc(sizeof *job);
        job->name = shash_add(&st->jobs, name, job)->name;
    }
    job->want = *row;
    job->want.slot = number;
    memset(job->want.name, 0, sizeof job->want.name);
    name_shorten(name, job->want.name, sizeof job->want.name);
    job->decided = decided;
    if (is_new && !take_row(st, job)) {
        find_number(st, job);
    }
}

/* Wants no slot for 'name' any more. */
void
slot_table_unwant(struct slot_table *st, const char *name)
{
    struct slot_job *job = shash_find_and_delete(&st->jobs, name);

    if (job) {
        st->owners[job->want.slot] = NULL;
        free(job);
    }
}

/* Takes over the 'n' rows in 'rows' as what the shim has.  A job that is among
 * them gets the number that it has there, since tags and counters refer to it
 * by that; another keeps its own if it can. */
void
slot_table_adopt(struct slot_table *st, const struct shim_slot *rows, size_t n)
{
    struct shash_node *node;

    memset(st->installed, 0, sizeof st->installed);
    for (size_t i = 0; i < n; i++) {
        uint16_t number = rows[i].slot;

        if (number > 0 && number < SHIM_MAX_SLOTS) {
            struct shim_slot *row = &st->installed[number];

            st->last = MAX(st->last, number);
            *row = rows[i];
            /* Whatever is behind the name's end must not count as a
             * difference. */
            memset(row->name, 0, sizeof row->name);
            memcpy(row->name, rows[i].name,
                   strnlen(rows[i].name, sizeof row->name - 1));
        }
    }
    memset(st->owners, 0, sizeof st->owners);
    SHASH_FOR_EACH (node, &st->jobs) {
        take_row(st, node->data);
    }
    SHASH_FOR_EACH (node, &st->jobs) {
        struct slot_job *job = node->data;

        if (job->want.slot && !st->owners[job->want.slot]) {
            st->owners[job->want.slot] = job;
        }
    }
    SHASH_FOR_EACH (node, &st->jobs) {
        struct slot_job *job = node->data;

        if (st->owners[job->want.slot] != job) {
            job->want.slot = 0;
            find_number(st, job);
        }
    }
}

/* Stores in '*changes' what has to be sent so that the shim has what is
 * wanted, and from now on takes it that the shim has it. */
void
slot_table_changes(struct slot_table *st, struct slot_changes *changes)
{
    struct shash_node *node;

    changes->n_set = changes->n_clear = 0;
    SHASH_FOR_EACH (node, &st->jobs) {
        struct slot_job *job = node->data;
        struct shim_slot *have;

        if (!job->want.slot) {
            find_number(st, job);
        }
        have = &st->installed[job->want.slot];
        if (job->want.slot
            && (job->decided
                    ? memcmp(&job->want, have, sizeof *have) != 0
                    : !have->slot || strcmp(job->want.name, have->name))) {
            *have = changes->set[changes->n_set++] = job->want;
        }
    }
    for (uint16_t i = 1; i < SHIM_MAX_SLOTS; i++) {
        if (st->installed[i].slot && !st->owners[i]) {
            st->installed[i].slot = 0;
            changes->clear[changes->n_clear++] = i;
        }
    }
}

/* Returns the number of the slot of the job called 'name', 0 if none. */
uint16_t
slot_table_number(const struct slot_table *st, const char *name)
{
    const struct slot_job *job = shash_find_data(&st->jobs, name);

    return job ? job->want.slot : 0;
}

/* Returns the name of the job that has 'slot', NULL if none has. */
const char *
slot_table_name(const struct slot_table *st, uint16_t slot)
{
    const struct slot_job *job
        = slot < SHIM_MAX_SLOTS ? st->owners[slot] : NULL;

    return job ? job->name : NULL;
}

/* Returns the number of the next bin of the job that has 'slot', which the
 * caller may change; NULL if none has. */
uint64_t *
slot_table_next_bin(struct slot_table *st, uint16_t slot)
{
    struct slot_job *job = slot < SHIM_MAX_SLOTS ? st->owners[slot] : NULL;

    return job ? &job->next_bin : NULL;
}

/* Traffic. */

/* Returns the increase of a counter from '*lastp' to 'now', and stores
 * 'now' in '*lastp'.  A counter that has decreased was reset to 0. */
static uint64_t
increase(uint64_t *lastp, uint64_t now)
{
    uint64_t delta = now >= *lastp ? now - *lastp : now;

    *lastp = now;
    return delta;
}

/* Adds the counters of a slot with a valid number. */
static void
add_slot(struct traffic *tr, const struct shim_slot_stats *slot,
         traffic_func *on_slot, void *aux)
{
    struct traffic_slot *last = &tr->slots[slot->slot];
    bool starting = tr->old && !last->seen;
    uint64_t tx = increase(&last->tx_bytes, slot->tx_bytes);
    uint64_t rx = increase(&last->rx_bytes, slot->rx_bytes);
    uint64_t dropped = increase(&last->dropped, slot->tx_dropped);
    unsigned int level =
        (slot->level < SHIM_N_LEVELS ? slot->level : SHIM_LEVEL_DEFAULT);

    last->seen = true;
    if (!starting) {
        tr->total.level_bytes[level] += tx;
        tr->total.level_dropped[level] += dropped;
        if (tx || rx) {
            on_slot(slot->slot, tx, rx, aux);
        }
    }
}

/* Adds a reply to SHIM_STATS with 'n' slots.  Calls 'on_slot' with 'aux' for
 * each slot with traffic since the last reply. */
void
traffic_add_stats(struct traffic *tr, const struct shim_stats *stats,
                  const struct shim_slot_stats *slots, size_t n,
                  traffic_func *on_slot, void *aux)
{
    bool first = !tr->boot_id;
    struct traffic_totals total = tr->total;

    if (tr->boot_id != stats->boot_id) {
        tr->old = first;
        memset(tr->slots, 0, sizeof tr->slots);
        memset(&tr->last, 0, sizeof tr->last);
        tr->boot_id = stats->boot_id;
    }
    total.tx_bytes += increase(&tr->last.tx_bytes, stats->tx_bytes);
    total.rx_bytes += increase(&tr->last.rx_bytes, stats->rx_bytes);
    total.ip_bytes += increase(&tr->last.ip_bytes, stats->tx_ip_bytes);
    total.default_bytes +=
        increase(&tr->last.default_bytes, stats->tx_default_bytes);
    if (!first) {
        tr->total = total;
    }
    for (size_t i = 0; i < n; i++) {
        if (slots[i].slot > 0 && slots[i].slot < SHIM_MAX_SLOTS) {
            add_slot(tr, &slots[i], on_slot, aux);
        }
    }
}
