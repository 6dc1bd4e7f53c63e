/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OVERRIDES_H
#define OVERRIDES_H 1

/* What people decided over the order's head.
 *
 *
 * Motivation
 * ==========
 *
 * An operator knows what no measurement tells: that a search must be done
 * before a meeting, that another one can wait until tomorrow, that a third one
 * shall be left out of all this.  Whoever overrides the order must be seen to
 * do it, by everybody who wonders about the order later, and must be able to
 * take it back.  So each override has a number, a name, a time and, one hopes,
 * a reason; it is kept in the intent database, so that it outlives a
 * controller; and those that have ended are kept for a while.
 *
 *   pin      Goes before everything else.
 *   pause    Has the last level and comes last there.  It trains on, at least
 *            with the floor that the policy's guard_share leaves.
 *   exclude  Is not ordered at all: its traffic is as that of no job.
 *   observe  The whole cluster is excluded: an order is computed and reported,
 *            and nothing is done.
 *
 * A target is "COJOB/JOB", a stage "COJOB/RUNG" or all of a "COJOB"; if a job
 * is called like a rung, it is meant.  Of several overrides for one job, the
 * closest target counts, and of those the newest.
 *
 *
 * Usage
 * =====
 *
 *    error = overrides_add(o, OVERRIDE_PIN, "asha/1", "eva", "demo at noon",
 *                          3600000, now, &id);
 *    if (overrides_run(o, now)) {
 *        overrides_apply(o, cluster);    // Each job's and stage's 'override'.
 *    }
 *    error = overrides_undo(o, id, "eva", now);
 *
 * overrides-db.h keeps them in the database.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Owns all; an override is valid until the next call that takes a non-const
 * pointer.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openvswitch/list.h"

struct cluster;
struct json;

/* In force at a time. */
#define OVERRIDES_MAX 500

/* What has ended is kept for so long; the newest one always, so that no number
 * is given twice. */
#define OVERRIDES_KEEP_MS 600000

#define OVERRIDE_MAX_REASON 200         /* Characters. */
#define OVERRIDE_MAX_MS (366LL * 24 * 3600 * 1000)

enum override_kind {
    OVERRIDE_NONE,
    OVERRIDE_PIN,
    OVERRIDE_PAUSE,
    OVERRIDE_EXCLUDE,
    OVERRIDE_OBSERVE,
    N_OVERRIDE_KINDS
};

extern const char *const override_names[N_OVERRIDE_KINDS];

struct override {
    struct ovs_list node;       /* In struct overrides, by 'id'. */
    int64_t id;                 /* From 1 on. */
    enum override_kind kind;
    char *target;               /* "" of OVERRIDE_OBSERVE. */
    char *who, *reason;         /* 'reason' may be empty. */
    int64_t at;                 /* Epoch ms. */
    int64_t until;              /* Epoch ms, 0: until somebody undoes it. */
    int64_t ended;              /* Epoch ms, 0 while it is in force. */
    bool stored;                /* The database has it as it is. */
    bool seen;                  /* By overrides_end_rows(). */
};

struct overrides {
    struct ovs_list all;        /* Of struct override, the oldest first. */
    bool changed;               /* Since the last overrides_run(). */
};

void overrides_init(struct overrides *);
void overrides_uninit(struct overrides *);

/* Whether 'kind' for 'target' may be; NULL or a message that the caller
 * frees. */
char *override_check(enum override_kind, const char *target,
                     const char *reason, int64_t for_ms,
                     const struct cluster *);

int64_t overrides_add(struct overrides *, enum override_kind,
                      const char *target, const char *who,
                      const char *reason, int64_t for_ms, int64_t now);
const struct override *overrides_find(const struct overrides *, int64_t id);
bool overrides_undo(struct overrides *, int64_t id, int64_t now);

/* What the database has: each row, between begin and end. */
void overrides_begin_rows(struct overrides *);
void overrides_put_row(struct overrides *, const struct override *row);
void overrides_end_rows(struct overrides *);
void overrides_forget_unstored(struct overrides *);

bool overrides_run(struct overrides *, int64_t now,
                   void (*ran_out)(const struct override *, void *aux),
                   void *aux);
void overrides_wait(const struct overrides *, int64_t now);

void overrides_apply(const struct overrides *, struct cluster *);
const struct override *overrides_observe(const struct overrides *);
struct json *overrides_to_json(const struct overrides *);
struct json *override_to_json(const struct override *);

#endif /* controller/model/overrides.h */
