/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_BODY_H
#define REST_BODY_H 1

/* Parses and checks the JSON body of a request.
 *
 * docs/openapi.json describes the members of each body.  An unknown member is
 * an error, and error messages name the member and the allowed values: "/rung:
 * 9 is not ...".
 *
 *    error = rest_body_edit(INTENT_JOB_BEGIN, text, size, &edit);
 *    if (!error) {
 *        edit.cojob = xstrdup("asha");
 *        ...use 'edit'...
 *        intent_edit_uninit(&edit);
 *    }
 *
 * An edit owns its strings.  No state. */

#include "controller/intent/intent-edit.h"

struct progress;

#define REST_MAX_WORKERS 1024   /* Workers of a job. */
#define REST_MAX_JOBS 1024      /* Jobs of a stage. */
#define REST_MAX_RUNG 1000
#define REST_MAX_TO_COME 1000000

char *rest_body_edit(enum intent_kind, const char *text, size_t size,
                     struct intent_edit *);

char *rest_body_progress(const char *text, size_t size, struct progress *);

#endif /* controller/northbound/rest/rest-body.h */
