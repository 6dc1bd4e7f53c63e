/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "wire/alarm.h"

#include <stdarg.h>
#include <string.h>

#include "openvswitch/json.h"
#include "util.h"

const char *const alarm_codes[N_ALARM_CODES] = {
    [ALARM_INTENT_UNREACHABLE] = "intent-unreachable",
    [ALARM_HOSTS_UNREACHABLE] = "hosts-unreachable",
    [ALARM_POLICY_REFUSED] = "policy-refused",
    [ALARM_AGENT_DISCONNECTED] = "agent-disconnected",
    [ALARM_SHIM_DOWN] = "shim-down",
    [ALARM_ORDER_NOT_APPLIED] = "order-not-applied",
    [ALARM_JOBS_REFUSED] = "jobs-refused",
    [ALARM_CLAIM_REFUSED] = "claim-refused",
    [ALARM_PROGRESS_REFUSED] = "progress-refused",
    [ALARM_STAGE_IDLE] = "stage-idle",
    [ALARM_ANNOUNCEMENT_WRONG] = "announcement-wrong",
    [ALARM_COVERAGE] = "coverage",
    [ALARM_SHIM_MESSAGES] = "shim-messages",
    [ALARM_ADDRESS_CLAIMED] = "address-claimed",
    [ALARM_LINK] = "link",
    [ALARM_SWITCH] = "switch",
    [ALARM_DATABASE_MEMBER] = "database-member",
    [ALARM_DATABASE_SPACE] = "database-space",
    [ALARM_DATABASE_DAMAGED] = "database-damaged",
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

void
alarm_add(struct json *alarms, enum alarm_code code, const char *format, ...)
{
    struct json *alarm = json_object_create();
    va_list args;

    va_start(args, format);
    json_object_put_string(alarm, "code", alarm_codes[code]);
    json_object_put_nocopy(
        alarm, xstrdup("text"),
        json_string_create_nocopy(xvasprintf(format, args)));
    va_end(args);
    json_array_add(alarms, alarm);
}
