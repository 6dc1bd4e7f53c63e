/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_BODY_H
#define REST_BODY_H 1

/* What a request's body says, checked member by member.
 *
 *
 * Motivation
 * ==========
 *
 * A body comes from a person or a script.  Each kind has its members, as
 * docs/openapi.json describes them; what nobody asks for is an error, and the
 * message says where it is and what is allowed: "/rung: 9 is not ...".
 *
 *
 * Usage
 * =====
 *
 *    struct rest_change change;
 *
 *    error = rest_body_change(INTENT_JOB_BEGIN, text, size, &change);
 *    if (!error) {
 *        change.edit.cojob = "asha";
 *        ...use change.edit...
 *        rest_change_uninit(&change);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A change owns what its edit points to, but for the names of cojob, job and
 * owner, which no body has.  No state. */

#include <stdbool.h>
#include <stdint.h>

#include "controller/intent/intent-edit.h"

#define REST_MAX_WORKERS 1024   /* Of a job. */
#define REST_MAX_JOBS 1024      /* Of a stage. */
#define REST_MAX_RUNG 1000

struct rest_change {
    struct intent_edit edit;
    struct intent_worker *workers;
    char **jobs;
};

char *rest_body_change(enum intent_kind, const char *text, size_t size,
                       struct rest_change *);
void rest_change_uninit(struct rest_change *);

struct rest_progress {
    int64_t iteration;          /* Completed, from the job's beginning. */
    char *metric;               /* NULL: none is told. */
    double value;
};

char *rest_body_progress(const char *text, size_t size,
                         struct rest_progress *);
void rest_progress_uninit(struct rest_progress *);

#endif /* controller/northbound/rest/rest-body.h */
