/* SPDX-License-Identifier: Apache-2.0 */

/* What people may decide of control.h. */

#include <config.h>

#include "controller/northbound/views/control.h"

#include <inttypes.h>
#include <stdlib.h>

#include "controller/intent/intent-db.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

bool
control_observes(const struct controller *ctl)
{
    return ctl->observe || overrides_observe(&ctl->overrides);
}

/* Only who leads writes to the database. */
static char *
check_lead(const struct controller *ctl)
{
    return (intent_db_is_active(ctl->intent) ? NULL
            : xasprintf("this controller is \"%s\", the one that is "
                        "\"active\" is allowed",
                        intent_db_state(ctl->intent)));
}

/* How long 'for_ms' is, in words; the caller frees. */
static char *
for_how_long(int64_t for_ms)
{
    return (for_ms ? xasprintf("for %"PRId64" s", (for_ms + 999) / 1000)
            : xstrdup("until undone"));
}

char *
control_override(struct controller *ctl, enum override_kind kind,
                 const char *target, int64_t for_ms, const char *who,
                 const char *reason, struct json **json)
{
    char *error = check_lead(ctl);
    char *how_long;
    int64_t id;

    *json = NULL;
    if (!error) {
        error = override_check(kind, target, reason, for_ms, ctl->cluster);
    }
    if (error) {
        return error;
    }
    id = overrides_add(&ctl->overrides, kind, target, who, reason, for_ms,
                       time_wall_msec());
    if (!id) {
        return xasprintf("%.64s: too many overrides, up to %d are allowed, "
                         "undo some", target, OVERRIDES_MAX);
    }
    how_long = for_how_long(for_ms);
    intent_db_operator_event(ctl->intent, who, *target ? target : "cluster",
                             override_names[kind], "%"PRId64", %s%s%s", id,
                             how_long, *reason ? ": " : "", reason);
    free(how_long);
    *json = override_to_json(overrides_find(&ctl->overrides, id));
    return NULL;
}

char *
control_undo(struct controller *ctl, int64_t id, const char *who,
             struct json **json)
{
    const struct override *ov = overrides_find(&ctl->overrides, id);
    char *error = check_lead(ctl);

    *json = NULL;
    if (error) {
        return error;
    }
    if (!ov) {
        return (id ? xasprintf("%"PRId64": no such override, one that "
                               "\"overrides\" lists is allowed", id)
                : xstrdup("nothing is in force that could be undone"));
    }
    if (!overrides_undo(&ctl->overrides, ov->id, time_wall_msec())) {
        return xasprintf("%"PRId64": is not in force any more, one that is "
                         "is allowed", ov->id);
    }
    intent_db_operator_event(ctl->intent, who,
                             *ov->target ? ov->target : "cluster", "undo",
                             "%s %"PRId64" by %s", override_names[ov->kind],
                             ov->id, ov->actor);
    *json = override_to_json(ov);
    return NULL;
}
