/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_BODY_H
#define REST_BODY_H 1

/* Parses and checks the JSON body of a request.
 *
 *
 * Motivation
 * ==========
 *
 * docs/openapi.json describes the members of each body.  An unknown member is
 * an error, and error messages name the member and the allowed values: "/rung:
 * 9 is not ...".
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
 * A change owns the members of its edit, except the names of cojob, job and
 * owner, which are not in the body.  No state. */

#include <stdbool.h>
#include <stdint.h>

#include "controller/intent/intent-edit.h"

#define REST_MAX_WORKERS 1024   /* Workers of a job. */
#define REST_MAX_JOBS 1024      /* Jobs of a stage. */
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
    int64_t iteration;          /* Completed iterations of the job. */
    char *metric;               /* Name of the metric, or NULL. */
    double value;               /* Value of 'metric'. */
};

char *rest_body_progress(const char *text, size_t size,
                         struct rest_progress *);
void rest_progress_uninit(struct rest_progress *);

#endif /* controller/northbound/rest/rest-body.h */
