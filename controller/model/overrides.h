/* SPDX-License-Identifier: Apache-2.0 */

#ifndef OVERRIDES_H
#define OVERRIDES_H 1

/* Overrides: manual changes of the order by operators.
 *
 * An operator knows what no measurement contains: that a search must end
 * before a meeting, or that another one can wait until tomorrow.  Each
 * override has a number, an actor, a time and a reason, so that other
 * operators can see it and undo it.  Overrides are stored in the intent
 * database, so that they survive a controller; those that have ended are kept
 * for a while.
 *
 *   pin      First in the order.
 *   pause    Last in the order, in the last level.  The job still gets the
 *            min share of the policy's min_share.
 *   exclude  Not ordered: treated like traffic of no job.
 *   observe  Excludes the whole cluster: orders are computed and reported, but
 *            not applied.
 *   revoke   Refuses a host, or a client of REST, by the name in its
 *            certificate (struct host's 'revoked').
 *
 * Else a target is a job "COJOB/JOB", a stage "COJOB/RUNG" or a "COJOB".  If a
 * job has the name of a rung, the target is the job.  The most specific target
 * applies to a job; of several overrides of one target, the newest.
 *
 *    error = override_check(OVERRIDE_PIN, "asha/1", "demo", 3600000, cluster);
 *    struct instant now = instant_now();
 *    id = overrides_add(o, OVERRIDE_PIN, "asha/1", "eva", "demo", 3600000,
 *                       &now);
 *    if (overrides_run(o, &now, ran_out, aux)) {
 *        overrides_apply(o, cluster);    // Each job's and stage's 'override'.
 *    }
 *    overrides_undo(o, id, &now);
 *
 * intent-db.h stores them in the database.
 *
 * Owns all; an override is valid until the next call that takes a non-const
 * pointer.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/instant.h"
#include "openvswitch/list.h"

struct cluster;
struct json;

#define OVERRIDES_MAX 500       /* In force at the same time. */

/* Ended overrides are deleted after this time, except the one with the largest
 * number, so that no number is used twice. */
#define OVERRIDES_KEEP_MS 600000

#define OVERRIDE_MAX_REASON 200         /* Characters. */
#define OVERRIDE_MAX_MS (366LL * 24 * 3600 * 1000)

enum override_kind {
    OVERRIDE_NONE,
    OVERRIDE_PIN,
    OVERRIDE_PAUSE,
    OVERRIDE_EXCLUDE,
    OVERRIDE_OBSERVE,
    OVERRIDE_REVOKE,
    N_OVERRIDE_KINDS
};

extern const char *const override_names[N_OVERRIDE_KINDS];

struct override {
    struct ovs_list node;       /* In struct overrides, by 'id'. */
    int64_t id;                 /* Starts at 1. */
    enum override_kind kind;
    char *target;               /* "" for OVERRIDE_OBSERVE. */
    char *actor;                /* User that added it. */
    char *reason;               /* May be empty. */
    int64_t at;                 /* Epoch ms when it was added. */
    int64_t until;              /* Epoch ms, 0: until it is undone. */
    int64_t ended;              /* Epoch ms, 0 while it is in force. */
    long long until_ms;         /* time_msec() at which it ends if 'until' is
                                 * not 0. */
    long long end_ms;           /* time_msec() at which its end was seen, if
                                 * 'ended' is not 0. */
    bool stored;                /* The database has its current state. */
    bool seen;                  /* Put since overrides_begin_rows(). */
};

struct overrides {
    struct ovs_list all;        /* Of struct override, the oldest first. */
    bool changed;               /* Since the last overrides_run(). */
    struct instant copied;      /* Start of the last copy of the database. */
    bool known;                 /* The database has been copied: rows that are
                                 * new began when they were first seen. */
};

void overrides_init(struct overrides *);
void overrides_uninit(struct overrides *);

/* Returns NULL if the override is allowed, otherwise a message that the caller
 * frees. */
char *override_check(enum override_kind, const char *target,
                     const char *reason, int64_t for_ms,
                     const struct cluster *);

/* Checks an operator's reason likewise. */
char *override_check_reason(const char *reason);

int64_t overrides_add(struct overrides *, enum override_kind,
                      const char *target, const char *actor,
                      const char *reason, int64_t for_ms,
                      const struct instant *now);
const struct override *overrides_find(const struct overrides *, int64_t id);
bool overrides_undo(struct overrides *, int64_t id, const struct instant *now);

/* Copies the database: one call for each row, between begin and end. */
void overrides_begin_rows(struct overrides *, const struct instant *now);
void overrides_put_row(struct overrides *, const struct override *row);
void overrides_end_rows(struct overrides *);
void overrides_forget_unstored(struct overrides *);

/* Returns true if the row of the override may be deleted; 'last' is the
 * largest number of all rows, 'now' is time_msec(). */
bool override_is_expired(const struct override *, int64_t last, long long now);

bool overrides_run(struct overrides *, const struct instant *now,
                   void (*ran_out)(const struct override *, void *aux),
                   void *aux);
void overrides_wait(const struct overrides *);

void overrides_apply(const struct overrides *, struct cluster *);
const struct override *overrides_observe(const struct overrides *);
struct json *overrides_to_json(const struct overrides *);
struct json *override_to_json(const struct override *);

#endif /* controller/model/overrides.h */
