/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_RECORD_TABLE_H
#define SHIM_CC_RECORD_TABLE_H 1

/* Table of records, of connections or of remote hosts, which the jobs of a
 * host share.
 *
 * Each user of the host can make as many connections as he likes, and to as
 * many hosts, so a job that needs more records than its share of a full table
 * gets them from its own idle ones alone (base/shares.h).  A job is its slot;
 * packets of no job, slot 0, are one job here.  What does not leave the host
 * does not pass the shim, and takes no record.
 *
 *    r = record_table_find(t, &key);
 *    if (!r) {
 *        old = record_table_choose(t, slot, now);        (NULL: none)
 *        ...release what 'old' has...
 *        record_table_remove(t, old);
 *        r = record_table_add(t, &key, slot, now);       (NULL: refused)
 *    }
 *    record_table_move(t, r, slot);          (it is another job's now)
 *
 *    while ((r = record_table_next(t)) != NULL) {
 *        ...remove it if it is old...
 *    }
 *
 * A struct record is the first member of the caller's.  The table owns the
 * records, which do not move; a removed one may become another, with another
 * number.  A look-up has at most RECORD_PROBES probes, and its hash has a
 * secret of the table.  One thread, but for record_table_refused(); nothing is
 * allocated after the start. */

#include <stddef.h>
#include <stdint.h>

#include "base/shares.h"
#include "wire/shim-protocol.h"

#define RECORD_PROBES 16

/* The records of a job are a ring from the oldest to the newest. */
struct record_links {
    struct record_links *older, *newer;
};

struct record {
    struct record_links links; /* Of its job. */
    struct shim_flow_key key;
    struct record *next; /* In the bucket, or of the free ones. */
    uint64_t last;       /* Time of the last packet. */
    uint32_t number;     /* Of all that were added, 0: it is free. */
    uint16_t slot;       /* Its job's, 0: none. */
};

struct record_table {
    size_t size;   /* Bytes of a record. */
    char *records; /* 'shares.size' of them. */
    struct record **buckets, *free;
    uint32_t mask;   /* Number of buckets, less 1. */
    uint32_t number; /* Of the last record that was added. */
    uint32_t swept;  /* Next record of record_table_next(). */
    uint16_t most;   /* Slot with most records at 'most_at'. */
    uint64_t most_at;
    uint64_t secrets[6];
    struct shares shares;
    struct shares_user users[SHIM_MAX_SLOTS]; /* By slot. */
    struct record_links jobs[SHIM_MAX_SLOTS]; /* Ends of the rings. */
};

void record_table_init(struct record_table *, size_t size, uint32_t max);
void record_table_uninit(struct record_table *);

static inline struct record *
record_at(const struct record_table *t, uint32_t i)
{
    return (struct record *) (t->records + i * t->size);
}

struct record *record_table_find(const struct record_table *,
                                 const struct shim_flow_key *);

/* Returns the record that one of 'slot' replaces in a full table, or NULL, and
 * counts what is refused. */
struct record *record_table_choose(struct record_table *, uint16_t slot,
                                   uint64_t now);

/* Adds a record that the table does not have, all zeros behind the struct
 * record.  Returns NULL if there is no space. */
struct record *record_table_add(struct record_table *,
                                const struct shim_flow_key *, uint16_t slot,
                                uint64_t now);
void record_table_remove(struct record_table *, struct record *);
void record_table_move(struct record_table *, struct record *, uint16_t slot);

/* Returns the record after the last one returned, NULL if its place is
 * free. */
struct record *record_table_next(struct record_table *);

/* Any thread.  Returns how many records were refused to the job of 'slot' or
 * taken from it since record_table_forget(). */
static inline uint64_t
record_table_refused(const struct record_table *t, uint16_t slot)
{
    return SHARES_LOAD(&t->users[slot].n_refused);
}

static inline void
record_table_forget(struct record_table *t, uint16_t slot)
{
    __atomic_store_n(&t->users[slot].n_refused, 0, __ATOMIC_RELAXED);
}

#endif /* shim/cc/record-table.h */
