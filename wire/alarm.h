/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ALARM_H
#define ALARM_H 1

/* Alarms of "controller/status": problems that need an operator.
 *
 * Each is an object {"code", "text", "count"}.  The code is for programs, the
 * text for people: no program may depend on the text.  A cause that concerns
 * several hosts, jobs or stages is one alarm, with their number.
 *
 *    alarm_add(alarms, ALARM_COVERAGE, "%d %% ...", 12);
 *    alarm_name(&names, "%s", "h0");   ...each host with the problem...
 *    alarm_about(alarms, ALARM_SHIM_DOWN, &names, "shim down on ", "");
 *    known = alarm_code_parse("shim-down", &code);
 *
 * No state. */

#include <stdbool.h>
#include <stddef.h>

#include "openvswitch/dynamic-string.h"

struct json;

enum alarm_code {
    ALARM_INTENT_UNREACHABLE,
    ALARM_HOSTS_UNREACHABLE,
    ALARM_POLICY_REFUSED,
    ALARM_AGENT_DISCONNECTED,
    ALARM_SHIM_DOWN,
    ALARM_ORDER_NOT_APPLIED,
    ALARM_JOBS_REFUSED,
    ALARM_TABLE_FULL,
    ALARM_CLAIM_REFUSED,
    ALARM_PROGRESS_REFUSED,
    ALARM_STAGE_IDLE,
    ALARM_ANNOUNCEMENT_WRONG,
    ALARM_COVERAGE,
    ALARM_SHIM_MESSAGES,
    ALARM_ADDRESS_CLAIMED,
    ALARM_SWITCH,
    ALARM_DATABASE_MEMBER,
    ALARM_DATABASE_SPACE,
    ALARM_DATABASE_DAMAGED,
    ALARM_GENERATION,
    ALARM_HOST_ROW,
    ALARM_TWIN_HOSTS,
    ALARM_HOST_NAME,
    ALARM_AGENT_VERSION,
    ALARM_AGENT_SILENT,
    ALARM_POLICIES_DIFFER,
    N_ALARM_CODES,
};

/* As in JSON, such as "shim-down". */
extern const char *const alarm_codes[N_ALARM_CODES];

/* Returns false if 'text' is not a code. */
bool alarm_code_parse(const char *text, enum alarm_code *);

/* Names of an alarm.  The first ALARM_MAX_NAMED are listed. */
struct alarm_names {
    struct ds text;
    size_t n; /* Also those that are not listed. */
};

#define ALARM_MAX_NAMED 5

void alarm_name(struct alarm_names *, const char *format, ...)
    __attribute__((__format__(printf, 2, 3)));

/* Appends an alarm with the text 'before', the names and 'after', unless there
 * are none.  Clears the names. */
void alarm_about(struct json *alarms, enum alarm_code, struct alarm_names *,
                 const char *before, const char *after);

/* Appends an alarm of one thing to the array 'alarms'. */
void alarm_add(struct json *alarms, enum alarm_code, const char *format, ...)
    __attribute__((__format__(printf, 3, 4)));

#endif /* wire/alarm.h */
