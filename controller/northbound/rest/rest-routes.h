/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_ROUTES_H
#define REST_ROUTES_H 1

/* Which path is answered by what.
 *
 *
 * Motivation
 * ==========
 *
 * One table has every path with its methods, so that what is not allowed, what
 * "GET /v1" lists and what docs/openapi.json describes cannot differ from what
 * is there.  Beside it, each control view (control.h) is a path of its own.
 *
 * A handler is a function from a request to an answer.  What takes time is not
 * done by handlers: they say that the change or the stream that they have
 * prepared in the request is to come next.
 *
 *
 * Usage
 * =====
 *
 *    answer = rest_route(&request);
 *    if (!answer.status) {
 *        ...write 'request.change', or stream events...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include "controller/northbound/rest/rest-answer.h"
#include "controller/northbound/rest/rest-request.h"

struct rest_route {
    const char *method;         /* "GET" means HEAD too. */
    const char *path;           /* As rest_path_match() wants it. */
    bool body;                  /* One is allowed. */
    const char *query[3];       /* Members that are allowed, then NULL. */
    struct rest_answer (*handle)(struct rest_request *);
};

struct rest_answer rest_route(struct rest_request *);

/* Groups of handlers. */
struct rest_answer rest_get_index(struct rest_request *);
struct rest_answer rest_get_healthz(struct rest_request *);
struct rest_answer rest_get_readyz(struct rest_request *);
struct rest_answer rest_get_metrics(struct rest_request *);
struct rest_answer rest_get_explain(struct rest_request *);
struct rest_answer rest_get_history(struct rest_request *);
struct rest_answer rest_get_rollout(struct rest_request *);
struct rest_answer rest_get_events(struct rest_request *);

struct rest_answer rest_get_cojob(struct rest_request *);
struct rest_answer rest_put_cojob(struct rest_request *);
struct rest_answer rest_delete_cojob(struct rest_request *);
struct rest_answer rest_get_job(struct rest_request *);
struct rest_answer rest_put_job(struct rest_request *);
struct rest_answer rest_delete_job(struct rest_request *);
struct rest_answer rest_post_progress(struct rest_request *);
struct rest_answer rest_put_stage(struct rest_request *);
struct rest_answer rest_delete_stage(struct rest_request *);

#endif /* controller/northbound/rest/rest-routes.h */
