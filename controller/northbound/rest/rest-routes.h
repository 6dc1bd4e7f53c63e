/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_ROUTES_H
#define REST_ROUTES_H 1

/* Computes the answers to HTTP requests.
 *
 *
 * Motivation
 * ==========
 *
 * One table has all paths with their methods.  Errors, the list in the reply
 * of "GET /v1" and the test of docs/openapi.json all use it, so they cannot
 * differ from the implementation.  In addition, each control view (control.h)
 * is a path.
 *
 * Handlers do not block.  A handler that must wait prepares a change or a
 * stream in the request, which the caller executes.
 *
 *
 * Usage
 * =====
 *
 *    answer = rest_authorize(actor, method, origin, content_length);
 *    if (!answer.status) {
 *        answer = rest_route(&request);
 *    }
 *    if (!answer.status) {
 *        ...write 'request.change', or stream events...
 *    }
 *
 * Main thread only. */

#include <string.h>

#include "controller/northbound/rest/rest-message.h"

static inline bool
rest_is_read(const char *method)
{
    return (!strcmp(method, MHD_HTTP_METHOD_GET)
            || !strcmp(method, MHD_HTTP_METHOD_HEAD));
}

/* Checks the head of a request.  'actor' is the client's name, NULL if it may
 * not use the API.  'origin' is the header Origin or NULL: browsers send it
 * with the changes of a web page, and no page of ours makes changes, so the
 * page belongs to another site.  'content_length' is the announced size of the
 * body, 0 if unknown.
 *
 * Returns status 0 if the request is allowed, otherwise an error. */
struct rest_answer rest_authorize(const char *actor, const char *method,
                                  const char *origin,
                                  unsigned long long content_length);

/* Returns the answer to a request, or status 0 if 'next' of the request must
 * be done first. */
struct rest_answer rest_route(struct rest_request *);

#endif /* controller/northbound/rest/rest-routes.h */
