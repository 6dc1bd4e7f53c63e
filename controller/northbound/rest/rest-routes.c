/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-routes.h"

#include <stdlib.h>
#include <string.h>

#include "controller/northbound/views/control.h"
#include "controller/northbound/dashboard/dashboard.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "sset.h"
#include "util.h"

#define COJOB "/v1/cojobs/{cojob}"
#define JOB COJOB "/jobs/{job}"
#define STAGE COJOB "/stages/{rung}"

static const struct rest_route routes[] = {
    { "GET", "/v1", false, { NULL }, rest_get_index },
    { "GET", COJOB, false, { NULL }, rest_get_cojob },
    { "PUT", COJOB, true, { NULL }, rest_put_cojob },
    { "DELETE", COJOB, false, { NULL }, rest_delete_cojob },
    { "GET", JOB, false, { NULL }, rest_get_job },
    { "PUT", JOB, true, { NULL }, rest_put_job },
    { "DELETE", JOB, false, { "outcome" }, rest_delete_job },
    { "POST", JOB "/progress", true, { NULL }, rest_post_progress },
    { "PUT", STAGE, true, { NULL }, rest_put_stage },
    { "DELETE", STAGE, false, { NULL }, rest_delete_stage },
    { "GET", "/v1/events", false, { NULL }, rest_get_events },
    { "GET", "/v1/explain/{cojob}/{job}", false, { NULL }, rest_get_explain },
    { "GET", "/v1/history/{kind}", false, { "since", "limit" },
      rest_get_history },
    { "GET", "/v1/rollout", false, { NULL }, rest_get_rollout },
    { "GET", "/metrics", false, { NULL }, rest_get_metrics },
    { "GET", "/healthz", false, { NULL }, rest_get_healthz },
    { "GET", "/readyz", false, { NULL }, rest_get_readyz },
};

/* Stands for each of the control views. */
static const struct rest_route view_route = { "GET", "/v1/VIEW", false,
                                              { NULL }, NULL };

static const struct control_view *
find_view(const char *path)
{
    if (!strncmp(path, "/v1/", 4)) {
        for (size_t i = 0; i < n_control_views; i++) {
            if (!strcmp(path + 4, control_views[i].name)) {
                return &control_views[i];
            }
        }
    }
    return NULL;
}

static bool
is_method(const struct rest_route *route, const char *method)
{
    return (!strcmp(route->method, method)
            || (!strcmp(route->method, "GET") && !strcmp(method, "HEAD")));
}

static struct rest_answer
answer_not_found(const char *path)
{
    struct ds message = DS_EMPTY_INITIALIZER;
    struct sset seen = SSET_INITIALIZER(&seen);
    char *quote = rest_path_quote(path);

    ds_put_format(&message, "%s: not found, one of", quote);
    for (size_t i = 0; i < n_control_views; i++) {
        ds_put_format(&message, " /v1/%s,", control_views[i].name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        if (sset_add(&seen, routes[i].path)) {
            ds_put_format(&message, " %s%s", routes[i].path,
                          i + 1 < ARRAY_SIZE(routes) ? "," : " is allowed");
        }
    }
    sset_destroy(&seen);
    free(quote);
    return rest_answer_message(MHD_HTTP_NOT_FOUND, ds_steal_cstr(&message));
}

/* 'methods' is a sum of 1 (GET), 2 (PUT and DELETE) and 4 (POST). */
static struct rest_answer
answer_not_allowed(const struct rest_request *r, unsigned int methods)
{
    static const struct {
        unsigned int bit;
        const char *allow;
    } sets[] = {
        { 1, "GET, HEAD" }, { 2, "PUT, DELETE" }, { 3, "GET, HEAD, PUT, "
                                                       "DELETE" },
        { 4, "POST" },
    };
    struct rest_answer answer;

    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        if (sets[i].bit == methods) {
            answer = rest_answer_error(MHD_HTTP_METHOD_NOT_ALLOWED,
                                       "%s: %.16s is not for this, %s is "
                                       "allowed", r->path, r->method,
                                       sets[i].allow);
            answer.allow = sets[i].allow;
            return answer;
        }
    }
    OVS_NOT_REACHED();
}

/* Looks for the route of 'r', whose names it takes apart.  Returns NULL and
 * an answer in '*answer' if there is none. */
static const struct rest_route *
find_route(struct rest_request *r, struct rest_answer *answer)
{
    unsigned int methods = 0;

    if (dashboard_owns(r->path)) {
        methods |= 1;
    } else if (find_view(r->path)) {
        if (is_method(&view_route, r->method)) {
            return &view_route;
        }
        methods |= 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        const struct rest_route *route = &routes[i];

        if (rest_path_match(route->path, r->path, r->args)) {
            if (is_method(route, r->method)) {
                return route;
            }
            methods |= (!strcmp(route->method, "GET") ? 1
                        : !strcmp(route->method, "POST") ? 4 : 2);
        }
    }
    *answer = (methods ? answer_not_allowed(r, methods)
               : answer_not_found(r->path));
    return NULL;
}

/* True if 'path' can be shown as it is: no name has anything else. */
static bool
is_plain(const char *path)
{
    for (; *path; path++) {
        if (*path <= ' ' || *path > '~') {
            return false;
        }
    }
    return true;
}

/* True if the query of 'r' has a member that 'route' does not have. */
static bool
has_bad_query(const struct rest_request *r, const struct rest_route *route)
{
    size_t n = 0;

    for (size_t i = 0; route->query[i]; i++) {
        n += r->query(r->query_aux, route->query[i]) != NULL;
    }
    return n != r->n_query;
}

static struct rest_answer
answer_query(const struct rest_request *r, const struct rest_route *route)
{
    return rest_answer_error(
        MHD_HTTP_BAD_REQUEST, "%s: the request has a query, %s%s%s %s "
        "allowed", r->path, route->query[0] ? route->query[0] : "none",
        route->query[0] && route->query[1] ? " and " : "",
        route->query[0] && route->query[1] ? route->query[1] : "",
        route->query[0] && route->query[1] ? "are" : "is");
}

/* Answers 'r'.  An answer without a status means that the request says what is
 * to be done next. */
struct rest_answer
rest_route(struct rest_request *r)
{
    struct rest_answer answer;
    const struct rest_route *route;

    if (!is_plain(r->path)) {
        return answer_not_found(r->path);
    }
    route = find_route(r, &answer);
    if (!route) {
        return answer;
    } else if (r->body_size && !route->body) {
        return rest_answer_error(MHD_HTTP_CONTENT_TOO_LARGE,
                                 "%s: the request has a body, none is "
                                 "allowed", r->path);
    } else if (has_bad_query(r, route)) {
        return answer_query(r, route);
    }
    return (route->handle ? route->handle(r)
            : rest_answer_json(find_view(r->path)->build(r->ctl)));
}

static void
add_route(struct json *array, const char *method, const char *path)
{
    struct json *json = json_object_create();

    json_object_put_string(json, "method", method);
    json_object_put_string(json, "path", path);
    json_array_add(array, json);
}

/* What there is, for people and for the test of docs/openapi.json. */
struct rest_answer
rest_get_index(struct rest_request *r OVS_UNUSED)
{
    struct json *array = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t i = 0; i < n_control_views; i++) {
        char *path = xasprintf("/v1/%s", control_views[i].name);

        add_route(array, "GET", path);
        free(path);
    }
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        add_route(array, routes[i].method, routes[i].path);
    }
    json_object_put(json, "routes", array);
    return rest_answer_json(json);
}
