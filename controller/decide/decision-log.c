/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decision-log.h"

#include <stdarg.h>
#include <stdlib.h>

#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

static const char *const kind_names[N_DECISION_KINDS] = {
    [DECISION_ORDER] = "order",
    [DECISION_STAGE] = "stage",
    [DECISION_POLICY] = "policy",
    [DECISION_LEAD] = "lead",
    [DECISION_OPERATOR] = "operator",
};

/* Decision 'id' is element 'id' % 'capacity' of 'ring'. */
struct decision_log {
    struct decision *ring;
    size_t capacity;
    uint64_t last;              /* The newest one's id, 0: none yet. */
};

struct decision_log *
decision_log_create(size_t capacity)
{
    struct decision_log *log = xzalloc(sizeof *log);

    ovs_assert(capacity > 0);
    log->ring = xcalloc(capacity, sizeof *log->ring);
    log->capacity = capacity;
    return log;
}

static void
decision_uninit(struct decision *d)
{
    free(d->subject);
    free(d->actor);
    free(d->reason);
}

void
decision_log_destroy(struct decision_log *log)
{
    if (log) {
        for (size_t i = 0; i < log->capacity; i++) {
            decision_uninit(&log->ring[i]);
        }
        free(log->ring);
        free(log);
    }
}

/* Adds a decision; it replaces the oldest one if the log is full. */
void
decision_log_append(struct decision_log *log, enum decision_kind kind,
                    const char *subject, const char *actor,
                    const char *reason, ...)
{
    struct decision *d = &log->ring[++log->last % log->capacity];
    va_list args;

    decision_uninit(d);
    *d = (struct decision) {
        .id = log->last, .at = time_wall_msec(), .kind = kind,
        .subject = xstrdup(subject), .actor = xstrdup(actor),
    };
    va_start(args, reason);
    d->reason = xvasprintf(reason, args);
    va_end(args);
}

/* Returns the oldest stored decision after 'id', or NULL.  An 'id' larger than
 * the last one, from before a restart, is treated as 0. */
const struct decision *
decision_log_after(const struct decision_log *log, uint64_t id)
{
    uint64_t oldest = (log->last > log->capacity
                       ? log->last - log->capacity + 1 : 1);
    uint64_t next = id > log->last ? oldest : MAX(id + 1, oldest);

    return next <= log->last ? &log->ring[next % log->capacity] : NULL;
}

/* Returns the last decision's id, 0 before the first. */
uint64_t
decision_log_last(const struct decision_log *log)
{
    return log->last;
}

/* Returns {"id", "at", "kind", "subject", "actor", "reason"}. */
static struct json *
to_json(const struct decision *d)
{
    struct json *json = json_object_create();

    json_put_integer(json, "id", d->id);
    json_put_integer(json, "at", d->at);
    json_object_put_string(json, "kind", kind_names[d->kind]);
    json_object_put_string(json, "subject", d->subject);
    json_object_put_string(json, "actor", d->actor);
    json_object_put_string(json, "reason", d->reason);
    return json;
}

/* Returns {"last", "decisions": [...]}: the last decision's id, and at most
 * 'limit' decisions after 'after', the newest ones, oldest first. */
struct json *
decision_log_to_json(const struct decision_log *log, uint64_t after,
                     size_t limit)
{
    struct json *json = json_object_create();
    struct json *array = json_array_create_empty();
    uint64_t id = after > log->last ? 0 : after;
    const struct decision *d;

    if (log->last - id > limit) {
        id = log->last - limit;
    }
    while ((d = decision_log_after(log, id)) != NULL) {
        json_array_add(array, to_json(d));
        id = d->id;
    }
    json_put_integer(json, "last", log->last);
    json_object_put(json, "decisions", array);
    return json;
}
