/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/alarm.h"

#include <stdarg.h>
#include <string.h>

#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

const char *const alarm_codes[N_ALARM_CODES] = {
    [ALARM_INTENT_UNREACHABLE] = "intent-unreachable",
    [ALARM_HOSTS_UNREACHABLE] = "hosts-unreachable",
    [ALARM_POLICY_REFUSED] = "policy-refused",
    [ALARM_AGENT_DISCONNECTED] = "agent-disconnected",
    [ALARM_SHIM_DOWN] = "shim-down",
    [ALARM_ORDER_NOT_APPLIED] = "order-not-applied",
    [ALARM_JOBS_REFUSED] = "jobs-refused",
    [ALARM_TABLE_FULL] = "table-full",
    [ALARM_CLAIM_REFUSED] = "claim-refused",
    [ALARM_PROGRESS_REFUSED] = "progress-refused",
    [ALARM_STAGE_IDLE] = "stage-idle",
    [ALARM_ANNOUNCEMENT_WRONG] = "announcement-wrong",
    [ALARM_COVERAGE] = "coverage",
    [ALARM_SHIM_MESSAGES] = "shim-messages",
    [ALARM_ADDRESS_CLAIMED] = "address-claimed",
    [ALARM_SWITCH] = "switch",
    [ALARM_DATABASE_MEMBER] = "database-member",
    [ALARM_DATABASE_SPACE] = "database-space",
    [ALARM_DATABASE_DAMAGED] = "database-damaged",
    [ALARM_GENERATION] = "generation",
    [ALARM_HOST_ROW] = "host-row",
    [ALARM_TWIN_HOSTS] = "twin-hosts",
    [ALARM_HOST_NAME] = "host-name",
    [ALARM_AGENT_VERSION] = "agent-version",
    [ALARM_AGENT_SILENT] = "agent-silent",
    [ALARM_POLICIES_DIFFER] = "policies-differ",
};

bool
alarm_code_parse(const char *text, enum alarm_code *code)
{
    for (*code = 0; *code < N_ALARM_CODES; (*code)++) {
        if (!strcmp(text, alarm_codes[*code])) {
            return true;
        }
    }
    return false;
}

/* Takes ownership of 'text'. */
static void
append(struct json *alarms, enum alarm_code code, char *text, size_t count)
{
    struct json *alarm = json_object_create();

    json_object_put_string(alarm, "code", alarm_codes[code]);
    json_object_put(alarm, "text", json_string_create_nocopy(text));
    json_put_integer(alarm, "count", count);
    json_array_add(alarms, alarm);
}

void
alarm_name(struct alarm_names *names, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (names->n < ALARM_MAX_NAMED) {
        ds_put_cstr(&names->text, names->n ? ", " : "");
        ds_put_format_valist(&names->text, format, args);
    } else if (names->n == ALARM_MAX_NAMED) {
        ds_put_cstr(&names->text, " and others");
    }
    names->n++;
    va_end(args);
}

void
alarm_about(struct json *alarms, enum alarm_code code,
            struct alarm_names *names, const char *before, const char *after)
{
    if (names->n) {
        append(alarms, code,
               xasprintf("%s%s%s", before, ds_cstr(&names->text), after),
               names->n);
    }
    ds_destroy(&names->text);
    *names = (struct alarm_names){ .n = 0 };
}

void
alarm_add(struct json *alarms, enum alarm_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    append(alarms, code, xvasprintf(format, args), 1);
    va_end(args);
}
