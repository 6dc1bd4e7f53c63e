/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-routes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/hosts/hosts-db.h"
#include "controller/intent/intent-db.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/owners.h"
#include "controller/northbound/dashboard/dashboard.h"
#include "controller/northbound/rest/peer.h"
#include "controller/northbound/rest/rest-listen.h"
#include "controller/northbound/views/cojobs-report.h"
#include "controller/northbound/views/control.h"
#include "controller/northbound/views/metrics.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "sset.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-get.h"
#include "wire/json-put.h"
#include "wire/progress-datagram.h"

/* Returns true if 'path' matches 'pattern', in which a segment "{...}" matches
 * any segment of 1 to REST_MAX_ARG - 1 bytes, and stores these segments in
 * 'args'.  Otherwise 'args' is undefined. */
bool
rest_path_match(const char *pattern, const char *path,
                char args[REST_MAX_ARGS][REST_MAX_ARG])
{
    size_t n = 0;

    for (;;) {
        if (*pattern == '{') {
            size_t size = strcspn(path, "/");

            if (!size || size >= REST_MAX_ARG) {
                return false;
            }
            ovs_assert(n < REST_MAX_ARGS);
            memcpy(args[n], path, size);
            args[n++][size] = '\0';
            path += size;
            pattern += strcspn(pattern, "/");
        } else if (*pattern != *path) {
            return false;
        } else if (!*path) {
            return true;
        } else {
            pattern++;
            path++;
        }
    }
}

/* Returns 'path' truncated to REST_MAX_QUOTE characters and with '?' for each
 * character that is not printable ASCII.  The caller frees. */
char *
rest_path_quote(const char *path)
{
    char *quote = xmemdup0(path, strnlen(path, REST_MAX_QUOTE));

    for (char *p = quote; *p; p++) {
        if (*p <= ' ' || *p > '~') {
            *p = '?';
        }
    }
    return quote;
}

/* Returns the reply 'json'; takes ownership of 'json'. */
struct rest_reply
rest_reply_json(struct json *json)
{
    return (struct rest_reply){ .status = MHD_HTTP_OK, .json = json };
}

/* Returns the reply 'text' of MIME type 'type'; takes ownership of 'text'. */
struct rest_reply
rest_reply_text(const char *type, char *text)
{
    return (struct rest_reply){
        .status = MHD_HTTP_OK,
        .text = text,
        .type = type,
    };
}

/* Returns an error; takes ownership of 'message', "PLACE: WHAT, what is
 * allowed". */
struct rest_reply
rest_reply_message(unsigned int status, char *message)
{
    struct json *json = json_object_create();

    json_object_put(json, "error", json_string_create_nocopy(message));
    return (struct rest_reply){ .status = status, .json = json };
}

struct rest_reply
rest_reply_error(unsigned int status, const char *format, ...)
{
    va_list args;
    char *message;

    va_start(args, format);
    message = xvasprintf(format, args);
    va_end(args);
    return rest_reply_message(status, message);
}

static bool
add_headers(struct MHD_Response *response, const struct rest_reply *reply)
{
    const char *type = reply->json ? "application/json" : reply->type;

    return (
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type)
        && MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                   "no-store")
        && (!reply->allow
            || MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                       reply->allow))
        && (reply->status == MHD_HTTP_OK
            || MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION,
                                       "close")));
}

/* Sends and uninitializes 'reply'.  An error closes the connection, because
 * the rest of the request may not have been read. */
enum MHD_Result
rest_reply_send(struct MHD_Connection *mc, struct rest_reply *reply)
{
    enum MHD_Result result = MHD_NO;
    struct MHD_Response *response;
    char *text;

    text = (reply->json ? json_to_string(reply->json, JSSF_SORT)
                        : xstrdup(reply->text));
    response = MHD_create_response_from_buffer(strlen(text), text,
                                               MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
    } else {
        if (add_headers(response, reply)) {
            result = MHD_queue_response(mc, reply->status, response);
        }
        MHD_destroy_response(response);
    }
    rest_reply_uninit(reply);
    return result;
}

void
rest_reply_uninit(struct rest_reply *reply)
{
    json_destroy(reply->json);
    free(reply->text);
    *reply = (struct rest_reply){ .status = 0 };
}

#define COJOB "/v1/cojobs/{cojob}"
#define JOB COJOB "/jobs/{job}"
#define STAGE COJOB "/stages/{rung}"

struct rest_route {
    const char *method;         /* "GET" means HEAD too; a request may have a
                                 * body if it is "PUT" or "POST". */
    const char *path;           /* Pattern for rest_path_match(). */
    enum peer_role role;        /* That a client must have at least. */
    const char *query[3];       /* Allowed query parameters, then NULL. */
    struct rest_reply (*handle)(struct rest_request *); /* Or NULL. */
    enum intent_kind kind;      /* Change to prepare if 'handle' is null. */
};

/* Handlers.  A reply with status 0 means that the request's 'edit' is to be
 * written first. */

/* A reply shows that the main loop runs. */
static struct rest_reply
get_healthz(struct rest_request *r OVS_UNUSED)
{
    return rest_reply_text("text/plain", xstrdup("ok\n"));
}

static struct rest_reply
get_readyz(struct rest_request *r)
{
    const char *missing = (!intent_db_answers(r->ctl->intent) ? "intent"
                           : !hosts_db_answers(r->ctl->hosts) ? "hosts"
                           : NULL);
    struct json *json;

    if (missing) {
        return rest_reply_error(MHD_HTTP_SERVICE_UNAVAILABLE,
                                "/readyz: the %s database is disconnected, "
                                "\"active\" with both databases is ready",
                                missing);
    } else if (!intent_db_is_active(r->ctl->intent)) {
        return rest_reply_error(MHD_HTTP_SERVICE_UNAVAILABLE,
                                "/readyz: the controller is \"%s\", "
                                "\"active\" with both databases is ready",
                                intent_db_state(r->ctl->intent));
    }
    json = json_object_create();
    json_put_boolean(json, "ready", true);
    return rest_reply_json(json);
}

static struct rest_reply
get_metrics(struct rest_request *r)
{
    return rest_reply_text(METRICS_TYPE, metrics_to_string(r->ctl, r->counts));
}

static char *
job_name(const struct rest_request *r)
{
    return xasprintf("%s/%s", r->args[0], r->args[1]);
}

/* Returns the reply 'json' if 'error' is null, otherwise an error with
 * 'status'.  Frees 'error'. */
static struct rest_reply
reply_unless(char *error, unsigned int status, const char *place,
             struct json *json)
{
    struct rest_reply reply =
        (error ? rest_reply_error(status, "%s%s", place, error)
               : rest_reply_json(json));

    free(error);
    return reply;
}

static struct rest_reply
get_explain(struct rest_request *r)
{
    char *job = job_name(r);
    struct json *json = NULL;
    char *error = control_explain(r->ctl, job, &json);

    free(job);
    return reply_unless(error, MHD_HTTP_NOT_FOUND, "/v1/explain/", json);
}

static struct rest_reply
get_history(struct rest_request *r)
{
    const char *since = r->query(r->query_aux, "since");
    struct json *json = NULL;
    char *error = control_history(r->ctl, r->args[0], since ? since : "0",
                                  r->query(r->query_aux, "limit"), &json);

    return reply_unless(
        error, r->ctl->history ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_NOT_FOUND,
        "/v1/history: ", json);
}

static struct rest_reply
get_rollout(struct rest_request *r)
{
    return rest_reply_json(rollout_report(r->ctl));
}

/* Returns the reply 'json', or status 404 if it is null. */
static struct rest_reply
reply_or_404(const struct rest_request *r, struct json *json)
{
    return (json ? rest_reply_json(json)
                 : rest_reply_error(MHD_HTTP_NOT_FOUND,
                                    "%.*s: unknown; expected what has "
                                    "begun",
                                    REST_MAX_QUOTE, r->path));
}

static struct rest_reply
get_cojob(struct rest_request *r)
{
    return reply_or_404(r, cojobs_report_cojob(r->ctl->cluster, r->args[0]));
}

static struct rest_reply
get_job(struct rest_request *r)
{
    char *name = job_name(r);
    struct json *json = cojobs_report_job(r->ctl->cluster, name);

    free(name);
    return reply_or_404(r, json);
}

/* Reads the change of 'kind' from the path and body of 'r' into 'r->edit'. */
static struct rest_reply
prepare_change(struct rest_request *r, enum intent_kind kind,
               const char *outcome)
{
    unsigned int rung = 0, status = MHD_HTTP_BAD_REQUEST;
    char *error;

    if (kind >= INTENT_STAGE_BEGIN
        && (!str_to_uint(r->args[1], 10, &rung) || rung > REST_MAX_RUNG)) {
        return rest_reply_error(MHD_HTTP_BAD_REQUEST,
                                "/rung: \"%s\" is no "
                                "rung; expected 0 to %d",
                                r->args[1], REST_MAX_RUNG);
    }
    error = rest_body_edit(kind, r->body, r->body_size, &r->edit);
    if (!error) {
        r->edit.cojob = xstrdup(r->args[0]);
        r->edit.job = xstrdup(r->args[1]);
        if (!r->edit.owner) {
            r->edit.owner =
                xstrdup(r->peer->owner ? r->peer->owner : r->peer->actor);
        }
        r->edit.outcome = nullable_xstrdup(outcome);
        r->edit.rung = rung;
        error = intent_edit_check(&r->edit);
        if (!error) {
            error = peer_limit(r->peer, r->policy, &r->edit);
            status = MHD_HTTP_FORBIDDEN;
        }
        if (error) {
            intent_edit_uninit(&r->edit);
        }
    }
    if (error) {
        return rest_reply_message(status, error);
    }
    return (struct rest_reply){ .status = 0 };
}

static struct rest_reply
delete_job(struct rest_request *r)
{
    static const char *const outcomes[] = { "done", "stopped", "failed" };
    const char *outcome = r->query(r->query_aux, "outcome");
    struct rest_reply reply;
    char *quote;

    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++) {
        if (!outcome || !strcmp(outcome, outcomes[i])) {
            return prepare_change(r, INTENT_JOB_END, outcomes[i]);
        }
    }
    quote = rest_path_quote(outcome);
    reply = rest_reply_error(MHD_HTTP_BAD_REQUEST,
                             "/outcome: \"%s\" is "
                             "none; expected done, stopped or failed",
                             quote);
    free(quote);
    return reply;
}

/* Progress is not stored in a database, so its reply is sent at once. */
static struct rest_reply
post_progress(struct rest_request *r)
{
    struct progress p;
    bool admitted = true;
    struct json *json;
    struct job *job;
    char *name, *error;

    error = rest_body_progress(r->body, r->body_size, &p);
    if (error) {
        return rest_reply_message(MHD_HTTP_BAD_REQUEST, error);
    }
    name = job_name(r);
    job = shash_find_data(&r->ctl->cluster->jobs, name);
    free(name);
    if (job && !peer_may_change(r->peer, job->cojob->owner, job->cojob->uid)) {
        return rest_reply_error(MHD_HTTP_FORBIDDEN,
                                "%s: the job is not of %s; expected its "
                                "owner or an operator",
                                r->path, r->peer->actor);
    }
    if (job) {
        admitted = demand_progress(
            r->ctl->cluster, job, &job->rest, p.iteration,
            p.has_value && *p.metric ? p.metric : NULL, p.value, time_msec());
        r->counts->incomplete += p.left_out;
    }
    if (!admitted) {
        return rest_reply_error(MHD_HTTP_BAD_REQUEST,
                                "/iteration: "
                                "%" PRId64 " is more than the job can have "
                                "done, it was at %" PRId64,
                                p.iteration, job->iteration);
    }
    json = job ? json_object_create() : NULL;
    if (json) {
        json_object_put_string(json, "job", job->full_name);
        json_put_integer(json, "iteration", job->iteration);
    }
    return reply_or_404(r, json);
}

static struct rest_reply get_index(struct rest_request *);

static const struct rest_route routes[] = {
    { "GET", "/v1", PEER_READ, { NULL }, get_index },
    { "GET", COJOB, PEER_READ, { NULL }, get_cojob },
    { "PUT", COJOB, PEER_USER, { NULL }, NULL, INTENT_COJOB_BEGIN },
    { "DELETE", COJOB, PEER_USER, { NULL }, NULL, INTENT_COJOB_END },
    { "GET", JOB, PEER_READ, { NULL }, get_job },
    { "PUT", JOB, PEER_USER, { NULL }, NULL, INTENT_JOB_BEGIN },
    { "DELETE", JOB, PEER_USER, { "outcome" }, delete_job },
    { "POST", JOB "/progress", PEER_USER, { NULL }, post_progress },
    { "PUT", STAGE, PEER_USER, { NULL }, NULL, INTENT_STAGE_BEGIN },
    { "DELETE", STAGE, PEER_USER, { NULL }, NULL, INTENT_STAGE_END },
    { "GET", "/v1/explain/{cojob}/{job}", PEER_READ, { NULL }, get_explain },
    { "GET",
      "/v1/history/{kind}",
      PEER_READ,
      { "since", "limit" },
      get_history },
    { "GET", "/v1/rollout", PEER_READ, { NULL }, get_rollout },
    { "GET", "/metrics", PEER_READ, { NULL }, get_metrics },
    { "GET", "/healthz", PEER_READ, { NULL }, get_healthz },
    { "GET", "/readyz", PEER_READ, { NULL }, get_readyz },
};

/* The route of each of the control views. */
static const struct rest_route view_route = { "GET", "/v1/VIEW", PEER_READ };

static const struct control_view *
find_view(const char *path)
{
    return (strncmp(path, "/v1/", 4) || strchr(path + 4, '/') ? NULL
            : control_find_view(path + 4));
}

static bool
is_method(const struct rest_route *route, const char *method)
{
    return (!strcmp(route->method, method)
            || (!strcmp(route->method, "GET") && !strcmp(method, "HEAD")));
}

static struct rest_reply
reply_not_found(const char *path)
{
    struct ds message = DS_EMPTY_INITIALIZER;
    struct sset seen = SSET_INITIALIZER(&seen);
    char *quote = rest_path_quote(path);

    ds_put_format(&message, "%s: not found; expected one of", quote);
    for (size_t i = 0; i < n_control_views; i++) {
        ds_put_format(&message, " /v1/%s,", control_views[i].name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        if (sset_add(&seen, routes[i].path)) {
            ds_put_format(&message, " %s%s", routes[i].path,
                          i + 1 < ARRAY_SIZE(routes) ? "," : "");
        }
    }
    sset_destroy(&seen);
    free(quote);
    return rest_reply_message(MHD_HTTP_NOT_FOUND, ds_steal_cstr(&message));
}

/* 'methods' is the set of methods of the path: 1 (GET), 2 (PUT and DELETE), 4
 * (POST). */
static struct rest_reply
reply_not_allowed(const struct rest_request *r, unsigned int methods)
{
    static const char *const sets[] = {
        [1] = "GET, HEAD", [2] = "PUT, DELETE",
        [1 | 2] = "GET, HEAD, PUT, DELETE", [4] = "POST",
    };
    struct rest_reply reply;

    reply = rest_reply_error(MHD_HTTP_METHOD_NOT_ALLOWED,
                             "%s: %.16s is not for this; expected %s", r->path,
                             r->method, sets[methods]);
    reply.allow = sets[methods];
    return reply;
}

/* Returns the route of 'r' and fills in 'r->args', or returns NULL and stores
 * an error in '*reply'. */
static const struct rest_route *
find_route(struct rest_request *r, struct rest_reply *reply)
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
    *reply =
        (methods ? reply_not_allowed(r, methods) : reply_not_found(r->path));
    return NULL;
}

/* Returns true if 'path' is printable ASCII, as all names are. */
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

/* Returns status 0 if 'route' allows all parameters of the query of 'r',
 * otherwise an error. */
static struct rest_reply
check_query(const struct rest_request *r, const struct rest_route *route)
{
    const char *first = route->query[0];
    const char *second = first ? route->query[1] : NULL;
    size_t n = 0;

    for (size_t i = 0; route->query[i]; i++) {
        n += r->query(r->query_aux, route->query[i]) != NULL;
    }
    if (n == r->n_query) {
        return (struct rest_reply){ .status = 0 };
    }
    return rest_reply_error(MHD_HTTP_BAD_REQUEST,
                            "%s: the request has a query; expected %s%s%s",
                            r->path, first ? first : "none",
                            second ? " or " : "", second ? second : "");
}

static struct rest_reply
route(struct rest_request *r)
{
    struct rest_reply reply;
    const struct rest_route *route;

    if (!is_plain(r->path)) {
        return reply_not_found(r->path);
    }
    route = find_route(r, &reply);
    if (!route) {
        return reply;
    } else if (r->peer->role < route->role) {
        return rest_reply_error(MHD_HTTP_FORBIDDEN,
                                "%s: %s by a client of role %s; expected "
                                "role %s",
                                r->path, r->method,
                                peer_role_names[r->peer->role],
                                peer_role_names[route->role]);
    } else if (r->body_size && *route->method != 'P') {
        return rest_reply_error(MHD_HTTP_CONTENT_TOO_LARGE,
                                "%s: the request has a body; expected none",
                                r->path);
    }
    reply = check_query(r, route);
    return (reply.status           ? reply
            : route->handle        ? route->handle(r)
            : route == &view_route ? rest_reply_json(
                  control_build_view(find_view(r->path), r->ctl))
                                   : prepare_change(r, route->kind, NULL));
}

struct rest_reply
rest_route(struct rest_request *r)
{
    struct rest_reply reply = route(r);

    if (reply.status == MHD_HTTP_FORBIDDEN) {
        owners_refuse(&r->ctl->cluster->owners, r->peer->actor, r->peer->uid,
                      json_string(json_get(reply.json, "error", JSON_STRING)));
    }
    return reply;
}

static void
add_route(struct json *array, const char *method, const char *path)
{
    struct json *json = json_object_create();

    json_object_put_string(json, "method", method);
    json_object_put_string(json, "path", path);
    json_array_add(array, json);
}

/* Lists all routes, for clients and for the test of docs/openapi.json. */
static struct rest_reply
get_index(struct rest_request *r OVS_UNUSED)
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
    return rest_reply_json(json);
}

struct rest_reply
rest_authorize(const struct rest_head *head)
{
    if (head->has_null) {
        return rest_reply_error(MHD_HTTP_BAD_REQUEST,
                                "/: a null character (%%00) in the path or "
                                "the query; expected text");
    } else if (head->is_ambiguous) {
        return rest_reply_error(MHD_HTTP_BAD_REQUEST,
                                "/: the end of the body can be read in two "
                                "ways; expected one Content-Length, or "
                                "\"Transfer-Encoding: chunked\"");
    } else if (head->peer->role == PEER_NONE && !head->has_token) {
        return rest_reply_error(
            MHD_HTTP_FORBIDDEN,
            "/: the client has no role; expected a "
            "certificate of \"stagecoach pki issue client NAME --role read\"");
    } else if (head->host
               && !rest_listen_has_name(head->host, head->certificate)) {
        char *quote = rest_path_quote(head->host);
        struct rest_reply reply = rest_reply_error(
            MHD_HTTP_FORBIDDEN,
            "/: the Host \"%s\" is no name of this "
            "server; expected \"localhost\", an address, or a name in its "
            "certificate",
            quote);

        free(quote);
        return reply;
    } else if (head->site && !strcmp(head->site, "cross-site")
               && (!head->dest || strcmp(head->dest, "document"))) {
        return rest_reply_error(
            MHD_HTTP_FORBIDDEN,
            "/: a request of another site's page; expected a "
            "page of this server, or a link to it");
    } else if (head->origin && !rest_is_read(head->method)) {
        return rest_reply_error(MHD_HTTP_FORBIDDEN,
                                "/: the request has an Origin; expected none"
                                " in a change");
    } else if (head->content_length > REST_MAX_BODY) {
        return rest_reply_error(MHD_HTTP_CONTENT_TOO_LARGE,
                                "/: the request's body is too large; expected "
                                "%d bytes",
                                REST_MAX_BODY);
    }
    return (struct rest_reply){ .status = 0 };
}
