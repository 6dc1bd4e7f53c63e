/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/overrides.h"

#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "util.h"
#include "wire/json-put.h"

const char *const override_names[N_OVERRIDE_KINDS] = {
    [OVERRIDE_NONE] = "none",       [OVERRIDE_PIN] = "pin",
    [OVERRIDE_PAUSE] = "pause",     [OVERRIDE_EXCLUDE] = "exclude",
    [OVERRIDE_OBSERVE] = "observe", [OVERRIDE_REVOKE] = "revoke",
};

void
overrides_init(struct overrides *o)
{
    ovs_list_init(&o->all);
    o->changed = true;
}

static void
override_destroy(struct override *ov)
{
    ovs_list_remove(&ov->node);
    free(ov->target);
    free(ov->actor);
    free(ov->reason);
    free(ov);
}

void
overrides_uninit(struct overrides *o)
{
    struct override *ov;

    LIST_FOR_EACH_SAFE (ov, node, &o->all) {
        override_destroy(ov);
    }
}

/* Returns true if 'target' is a running stage, "COJOB/RUNG". */
static bool
is_stage(const struct cluster *c, const char *target)
{
    size_t n;
    struct stage **stages = cluster_running_stages(c, &n);
    bool found = false;

    for (size_t i = 0; i < n && !found; i++) {
        char *name = stage_name(stages[i]);

        found = !strcmp(name, target);
        free(name);
    }
    free(stages);
    return found;
}

static bool
is_printable(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char) *s < ' ' || *s == 0x7f) {
            return false;
        }
    }
    return true;
}

char *
override_check_reason(const char *reason)
{
    return (
        strlen(reason) <= OVERRIDE_MAX_REASON && is_printable(reason)
            ? NULL
            : xasprintf("reason: too long or not printable; expected up to %d "
                        "characters of a line",
                        OVERRIDE_MAX_REASON));
}

char *
override_check(enum override_kind kind, const char *target,
               const char *reason, int64_t for_ms, const struct cluster *c)
{
    if (kind == OVERRIDE_REVOKE) {
        if (!*target || strlen(target) > NAME_MAX_LEN
            || !is_printable(target)) {
            return xasprintf(
                "%.64s: not a name of a certificate; expected up to %d "
                "printable characters",
                target, NAME_MAX_LEN);
        }
    } else if (kind == OVERRIDE_OBSERVE
                   ? *target != '\0'
                   : !shash_find(&c->jobs, target)
                         && !shash_find(&c->cojobs, target)
                         && !is_stage(c, target)) {
        return xasprintf(
            "%.64s: no such thing; expected COJOB/JOB, COJOB/RUNG of a "
            "running stage, or COJOB",
            target);
    }
    if (for_ms < 0 || for_ms > OVERRIDE_MAX_MS) {
        return xasprintf("time: %lld ms; expected 0 (no end) to a year",
                         (long long) for_ms);
    }
    return override_check_reason(reason);
}

static size_t
count_in_force(const struct overrides *o)
{
    const struct override *ov;
    size_t n = 0;

    LIST_FOR_EACH (ov, node, &o->all) {
        n += !ov->ended;
    }
    return n;
}

static void
end_override(struct overrides *o, struct override *ov,
             const struct instant *now)
{
    ov->ended = MAX(now->epoch_ms, 1);
    ov->end_ms = now->msec;
    ov->stored = false;
    o->changed = true;
}

/* Adds an override from 'now', for 'for_ms', 0: until it is undone.
 * Ends other overrides of the same target.  Returns its number, or 0 if too
 * many are in force. */
int64_t
overrides_add(struct overrides *o, enum override_kind kind,
              const char *target, const char *actor, const char *reason,
              int64_t for_ms, const struct instant *now)
{
    struct override *ov, *new;
    int64_t id = 1;

    LIST_FOR_EACH (ov, node, &o->all) {
        id = MAX(id, ov->id + 1);
        if (!ov->ended && !strcmp(ov->target, target)
            && (ov->kind == OVERRIDE_REVOKE) == (kind == OVERRIDE_REVOKE)) {
            end_override(o, ov, now);
        }
    }
    if (count_in_force(o) >= OVERRIDES_MAX) {
        return 0;
    }
    new = xmalloc(sizeof *new);
    *new = (struct override) {
        .id = id, .kind = kind, .target = xstrdup(target),
        .actor = xstrdup(actor), .reason = xstrdup(reason),
        .at = now->epoch_ms, .until = for_ms ? now->epoch_ms + for_ms : 0,
        .until_ms = now->msec + for_ms,
    };
    ovs_list_push_back(&o->all, &new->node);
    o->changed = true;
    return id;
}

/* Returns override 'id', or the newest one in force if 'id' is 0; NULL if
 * not found. */
const struct override *
overrides_find(const struct overrides *o, int64_t id)
{
    const struct override *ov, *last = NULL;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (ov->id == id) {
            return ov;
        }
        last = ov->ended ? last : ov;
    }
    return id ? NULL : last;
}

static struct override *
find_override(const struct overrides *o, int64_t id)
{
    return CONST_CAST(struct override *, overrides_find(o, id));
}

/* Ends override 'id' at 'now'.  Returns false if it is not in force. */
bool
overrides_undo(struct overrides *o, int64_t id, const struct instant *now)
{
    struct override *ov = find_override(o, id);

    if (!ov || ov->ended) {
        return false;
    }
    end_override(o, ov, now);
    return true;
}

void
overrides_begin_rows(struct overrides *o, const struct instant *now)
{
    struct override *ov;

    o->copied = *now;

    LIST_FOR_EACH (ov, node, &o->all) {
        ov->seen = false;
    }
}

/* Returns the time_msec() of the stamp 'at' of a row that is new in this copy
 * of the database. */
static long long
row_msec(const struct overrides *o, int64_t at)
{
    return o->known ? o->copied.msec : instant_msec(&o->copied, at);
}

/* Copies a row of the database.  An override that has been ended here, and not
 * yet in the database, stays ended. */
void
overrides_put_row(struct overrides *o, const struct override *row)
{
    struct override *ov = row->id ? find_override(o, row->id) : NULL;
    struct ovs_list *before = &o->all;
    struct override *next;

    if (ov) {
        ov->seen = true;
        if (row->ended && !ov->ended) {
            ov->ended = row->ended;
            ov->end_ms = o->copied.msec;
            o->changed = true;
        }
        ov->stored = ov->ended == row->ended;
        return;
    }
    ov = xmemdup(row, sizeof *row);
    ov->target = xstrdup(row->target);
    ov->actor = xstrdup(row->actor);
    ov->reason = xstrdup(row->reason);
    ov->stored = ov->seen = true;
    ov->until_ms = row_msec(o, row->at) + (row->until - row->at);
    ov->end_ms = row_msec(o, row->ended);
    LIST_FOR_EACH (next, node, &o->all) {
        if (next->id > ov->id) {
            before = &next->node;
            break;
        }
    }
    ovs_list_insert(before, &ov->node);
    o->changed = true;
}

/* Removes the overrides that are no longer in the database. */
void
overrides_end_rows(struct overrides *o)
{
    struct override *ov;

    o->known = true;
    LIST_FOR_EACH_SAFE (ov, node, &o->all) {
        if (!ov->seen && ov->stored) {
            o->changed |= !ov->ended;
            override_destroy(ov);
        }
    }
}

/* Removes the overrides that this controller did not store before it lost the
 * leadership. */
void
overrides_forget_unstored(struct overrides *o)
{
    struct override *ov;

    LIST_FOR_EACH_SAFE (ov, node, &o->all) {
        if (!ov->seen) {
            override_destroy(ov);
            o->changed = true;
        }
    }
}

bool
override_is_expired(const struct override *ov, int64_t last, long long now)
{
    return (ov->ended && ov->id != last
            && now > ov->end_ms + OVERRIDES_KEEP_MS);
}

/* Ends the overrides that have expired and calls 'ran_out' for each.  Returns
 * true if any override has changed since the last call. */
bool
overrides_run(struct overrides *o, const struct instant *now,
              void (*ran_out)(const struct override *, void *aux), void *aux)
{
    struct override *ov;
    bool changed;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->ended && ov->until && now->msec >= ov->until_ms) {
            end_override(o, ov, now);
            ran_out(ov, aux);
        }
    }
    changed = o->changed;
    o->changed = false;
    return changed;
}

void
overrides_wait(const struct overrides *o)
{
    const struct override *ov;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->ended && ov->until) {
            poll_timer_wait_until(ov->until_ms);
        }
    }
    if (o->changed) {
        poll_immediate_wake();
    }
}

/* Returns the newest override of 'target' in force, or NULL. */
static const struct override *
newest_override(const struct overrides *o, const char *target)
{
    const struct override *ov, *found = NULL;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->ended && ov->kind < OVERRIDE_OBSERVE
            && !strcmp(ov->target, target)) {
            found = ov;
        }
    }
    return found;
}

static const struct override *
override_of_stage(const struct overrides *o, const struct cluster *c,
                  const struct stage *stage)
{
    char *name = stage_name(stage);
    const struct override *ov = (shash_find(&c->jobs, name) ? NULL
                                 : newest_override(o, name));

    free(name);
    return ov ? ov : newest_override(o, stage->cojob_name);
}

static const struct override *
override_of_job(const struct overrides *o, const struct cluster *c,
                const struct job *job)
{
    const struct override *ov = newest_override(o, job->full_name);

    return (ov ? ov
            : job->stage && stage_is_running(job->stage)
            ? override_of_stage(o, c, job->stage)
            : newest_override(o, job->cojob->name));
}

/* Discards a rank that came from an override, which an order of whole stages
 * would keep. */
static void
set_stage(struct stage *stage, enum override_kind kind)
{
    if (stage->override && stage->override != kind) {
        stage->rank = -1;
    }
    stage->override = kind;
}

static void
set_job(struct job *job, const struct override *ov)
{
    enum override_kind kind = ov ? ov->kind : OVERRIDE_NONE;

    job->override = kind;
    job->override_id = ov ? ov->id : 0;
}

/* Sets 'revoked' of all hosts. */
static void
apply_revocations(const struct overrides *o, struct cluster *c)
{
    const struct override *ov;
    struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        struct host *host = node->data;

        host->revoked = false;
    }
    c->n_revoked = 0;
    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->ended && ov->kind == OVERRIDE_REVOKE) {
            cluster_get_host(c, ov->target)->revoked = true;
            c->n_revoked++;
        }
    }
}

/* Sets 'override' of jobs and running stages, and 'revoked' of hosts. */
void
overrides_apply(const struct overrides *o, struct cluster *c)
{
    const struct override *ov;
    struct shash_node *node;
    struct stage **stages;
    size_t n;

    apply_revocations(o, c);
    stages = cluster_running_stages(c, &n);
    for (size_t i = 0; i < n; i++) {
        ov = override_of_stage(o, c, stages[i]);
        set_stage(stages[i], ov ? ov->kind : OVERRIDE_NONE);
    }
    free(stages);
    SHASH_FOR_EACH (node, &c->jobs) {
        struct job *job = node->data;

        set_job(job, override_of_job(o, c, job));
    }
}

/* Returns the OVERRIDE_OBSERVE in force, or NULL. */
const struct override *
overrides_observe(const struct overrides *o)
{
    const struct override *ov;

    LIST_FOR_EACH (ov, node, &o->all) {
        if (!ov->ended && ov->kind == OVERRIDE_OBSERVE) {
            return ov;
        }
    }
    return NULL;
}

struct json *
override_to_json(const struct override *ov)
{
    struct json *json = json_object_create();

    json_put_integer(json, "id", ov->id);
    json_object_put_string(json, "kind", override_names[ov->kind]);
    json_object_put_string(json, "target", ov->target);
    json_object_put_string(json, "actor", ov->actor);
    json_object_put_string(json, "reason", ov->reason);
    json_put_integer(json, "at", ov->at);
    json_put_integer(json, "until", ov->until);
    json_put_integer(json, "ended", ov->ended);
    return json;
}

/* Returns the reply of "controller/overrides". */
struct json *
overrides_to_json(const struct overrides *o)
{
    struct json *array = json_array_create_empty();
    struct json *json = json_object_create();
    const struct override *ov;

    LIST_FOR_EACH (ov, node, &o->all) {
        json_array_add(array, override_to_json(ov));
    }
    json_object_put(json, "overrides", array);
    return json;
}
