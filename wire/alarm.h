/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ALARM_H
#define ALARM_H 1

/* Alarms of "controller/status": problems that need an operator.
 *
 * Each is an object {"code", "text"}.  The code is for programs, the text for
 * people: no program may depend on the text.
 *
 *    alarm_add(alarms, ALARM_SHIM_DOWN, "shim down on %s", "h0");
 *    known = alarm_code_parse("shim-down", &code);
 *
 * No state. */

#include <stdbool.h>

struct json;

enum alarm_code {
    ALARM_INTENT_UNREACHABLE,
    ALARM_HOSTS_UNREACHABLE,
    ALARM_POLICY_REFUSED,
    ALARM_AGENT_DISCONNECTED,
    ALARM_SHIM_DOWN,
    ALARM_ORDER_NOT_APPLIED,
    ALARM_JOBS_REFUSED,
    ALARM_CLAIM_REFUSED,
    ALARM_PROGRESS_REFUSED,
    ALARM_STAGE_IDLE,
    ALARM_ANNOUNCEMENT_WRONG,
    ALARM_COVERAGE,
    ALARM_SHIM_MESSAGES,
    ALARM_ADDRESS_CLAIMED,
    ALARM_LINK,
    ALARM_SWITCH,
    ALARM_DATABASE_MEMBER,
    ALARM_DATABASE_SPACE,
    ALARM_DATABASE_DAMAGED,
    N_ALARM_CODES,
};

/* As in JSON, such as "shim-down". */
extern const char *const alarm_codes[N_ALARM_CODES];

/* Returns false if 'text' is not a code. */
bool alarm_code_parse(const char *text, enum alarm_code *);

/* Appends an alarm to the array 'alarms'. */
void alarm_add(struct json *alarms, enum alarm_code, const char *format, ...)
    __attribute__((__format__(printf, 3, 4)));

#endif /* wire/alarm.h */
