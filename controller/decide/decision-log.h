/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECISION_LOG_H
#define DECISION_LOG_H 1

/* Log of the last decisions, in memory.
 *
 * When a job slows down, an operator needs to know what changed just before.
 * The Event table of the intent database has the actions of operators and
 * leaders; this log also has the changes of the order, which are too frequent
 * for a database, and keeps only the last decisions.
 *
 * Each decision has a number that is unique in this process.  A reader passes
 * the last number that it has received and gets the newer decisions; gaps in
 * the numbers show that some were dropped.
 *
 *    decision_log_append(log, DECISION_ORDER, "asha/1", "stagecoach",
 *                        "rank 0, was 2: stage asha/0 ended");
 *
 *    while ((d = decision_log_after(log, seen)) != NULL) {
 *        ...use 'd'...
 *        seen = d->id;
 *    }
 *
 * The log owns its decisions; one is valid until the next append.  Main thread
 * only. */

#include <stddef.h>
#include <stdint.h>

#include "compiler.h"

struct decision_log;
struct json;

enum decision_kind {
    DECISION_ORDER,             /* A stage has another rank. */
    DECISION_STAGE,             /* A stage began or ended. */
    DECISION_POLICY,            /* The policy changed, or was refused. */
    DECISION_LEAD,              /* This controller leads, or stopped. */
    DECISION_OPERATOR,          /* An operator's action. */
    N_DECISION_KINDS,
};

struct decision {
    uint64_t id;                /* 1 for the first, without gaps. */
    int64_t at;                 /* Epoch ms. */
    enum decision_kind kind;
    char *subject;              /* A job, a stage "COJOB/RUNG", a policy. */
    char *actor;                /* Name of a user or of the program. */
    char *reason;               /* Text. */
};

/* The log keeps the last 'capacity' decisions, at least 1. */
struct decision_log *decision_log_create(size_t capacity);
void decision_log_destroy(struct decision_log *);

void decision_log_append(struct decision_log *, enum decision_kind,
                         const char *subject, const char *actor,
                         const char *reason, ...) OVS_PRINTF_FORMAT(5, 6);

const struct decision *decision_log_after(const struct decision_log *,
                                          uint64_t id);
uint64_t decision_log_last(const struct decision_log *);

struct json *decision_log_to_json(const struct decision_log *,
                                  uint64_t after, size_t limit);

#endif /* controller/decide/decision-log.h */
