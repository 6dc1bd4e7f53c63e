/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_ROUTES_H
#define REST_ROUTES_H 1

/* Computes the replies to HTTP requests.
 *
 * One table has all paths with their methods and roles.  Errors, the list in
 * the reply of "GET /v1" and the test of docs/openapi.json all use it, so they
 * cannot differ from the implementation.  In addition, each control view
 * (control.h) is a path.
 *
 * Handlers do not block.  A handler that must wait prepares a change in the
 * request, which the caller executes.
 *
 *    reply = rest_authorize(&head);
 *    if (!reply.status) {
 *        reply = rest_route(&request);
 *    }
 *    if (!reply.status) {
 *        ...write 'request.edit'...
 *    }
 *
 * rest.c fills in a request from libmicrohttpd and sends the reply, so that
 * unit tests and the fuzz target need no connections.  In the pattern of a
 * path "{name}" stands for any segment.  An error has a status of 4xx or 5xx
 * and the JSON object {"error": "PLACE: WHAT, what is allowed"}.
 *
 * The strings of a request belong to the caller, the members of a reply to
 * the reply.  Main thread only. */

#include <microhttpd.h>
#include <stdbool.h>
#include <string.h>

#include "compiler.h"
#include "controller/northbound/rest/rest-body.h"

struct controller;
struct json;
struct peer;
struct policy;
struct rest_counts;

#define REST_MAX_ARGS 3         /* "{name}"s of a pattern. */
#define REST_MAX_ARG 256        /* Bytes of a segment, with its null byte. */
#define REST_MAX_BODY (64 * 1024)       /* Bytes. */
#define REST_MAX_QUOTE 64       /* Characters of a path that errors show. */

struct rest_request {
    struct controller *ctl;
    struct rest_counts *counts;  /* Counters of the server. */
    const struct peer *peer;     /* Client. */
    const struct policy *policy; /* In force, for limits of users. */
    const char *method, *path;
    const char *body;           /* Null-terminated, "" without a body. */
    size_t body_size;           /* Bytes, including null bytes in the body. */

    /* Returns the value of parameter 'name' of the query, or NULL. */
    const char *(*query)(const void *aux, const char *name);
    const void *query_aux;
    size_t n_query;             /* Parameters in the query. */

    char args[REST_MAX_ARGS][REST_MAX_ARG];     /* By rest_path_match(). */

    /* Set by a handler that returns no reply: what is to be written to the
     * intent database before that.  Owns its strings. */
    struct intent_edit edit;
};

bool rest_path_match(const char *pattern, const char *path,
                     char args[REST_MAX_ARGS][REST_MAX_ARG]);
char *rest_path_quote(const char *path);

struct rest_reply {
    unsigned int status;        /* HTTP status, 0: no reply yet. */
    struct json *json;          /* Body, or NULL. */
    char *text;                 /* Body if 'json' is null, or NULL. */
    const char *type;           /* MIME type of 'text'. */
    const char *allow;          /* Allowed methods, for status 405. */
};

struct rest_reply rest_reply_json(struct json *);
struct rest_reply rest_reply_text(const char *type, char *text);
struct rest_reply rest_reply_error(unsigned int status, const char *format,
                                   ...) OVS_PRINTF_FORMAT(2, 3);
struct rest_reply rest_reply_message(unsigned int status, char *message);

enum MHD_Result rest_reply_send(struct MHD_Connection *, struct rest_reply *);
void rest_reply_uninit(struct rest_reply *);

static inline bool
rest_is_read(const char *method)
{
    return (!strcmp(method, MHD_HTTP_METHOD_GET)
            || !strcmp(method, MHD_HTTP_METHOD_HEAD));
}

/* Head of a request.  Headers are null if they are missing. */
struct rest_head {
    const struct peer *peer;
    bool has_token; /* The peer is known after its review. */
    const char *method;
    bool has_null;           /* A null character in the path or the query. */
    bool is_ambiguous;       /* Its length can be read in two ways: by two
                              * Content-Lengths that differ, by one beside
                              * Transfer-Encoding, or by a coding that is not
                              * "chunked".  A proxy may see another request
                              * in it. */
    const char *host;        /* Host. */
    const char *certificate; /* Of this server, in PEM, or null. */
    const char *site, *dest; /* Sec-Fetch-Site and -Dest: browsers describe the
                              * page that sends the request, and a user that
                              * follows a link ("document"). */
    const char *origin;      /* Origin: browsers send it with the changes of
                              * a web page.  No page of ours makes changes,
                              * so the page belongs to another site. */
    unsigned long long content_length; /* Of the body, 0 if unknown. */
};

/* Returns status 0 if the request is allowed so far, otherwise an error. */
struct rest_reply rest_authorize(const struct rest_head *);

/* Returns the reply to a request, or status 0 if 'edit' of the request must
 * be written first. */
struct rest_reply rest_route(struct rest_request *);

#endif /* controller/northbound/rest/rest-routes.h */
