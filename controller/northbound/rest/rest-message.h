/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_MESSAGE_H
#define REST_MESSAGE_H 1

/* HTTP requests and answers, without connections.
 *
 * rest.c fills in a request from libmicrohttpd and sends the answer, which
 * rest-routes.h computes.  Unit tests and the fuzz target need no connections.
 *
 * A path is matched with a pattern in which "{name}" stands for any segment.
 * An error has a status of 4xx or 5xx and the JSON object {"error": "PLACE:
 * WHAT, what is allowed"}.
 *
 * The strings of a request belong to the caller, the members of an answer to
 * the answer.  Main thread only. */

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "compiler.h"
#include "controller/northbound/rest/rest-body.h"

struct controller;
struct json;
struct rest_counts;

#define REST_MAX_ARGS 3         /* "{name}"s of a pattern. */
#define REST_MAX_ARG 64         /* Bytes of a segment, with its null byte. */
#define REST_MAX_BODY (64 * 1024)       /* Bytes. */
#define REST_MAX_QUOTE 64       /* Characters of a path that errors show. */

/* Action required before a request can be answered. */
enum rest_next {
    REST_CHANGE,                /* Write 'change' to the intent database. */
    REST_STREAM,                /* Stream events. */
};

struct rest_request {
    struct controller *ctl;
    const struct rest_counts *counts;   /* Counters of the server. */
    const char *method, *path;
    const char *actor;          /* Client: user name, or certificate's CN. */
    const char *body;           /* Null-terminated, "" without a body. */
    size_t body_size;           /* Bytes, including null bytes in the body. */

    /* Returns the value of parameter 'name' of the query, or NULL. */
    const char *(*query)(const void *aux, const char *name);
    const void *query_aux;
    size_t n_query;             /* Parameters in the query. */

    char args[REST_MAX_ARGS][REST_MAX_ARG];     /* By rest_path_match(). */

    /* Set by a handler that returns no answer. */
    enum rest_next next;
    struct rest_change change;  /* For REST_CHANGE; points into 'args'. */
};

bool rest_path_match(const char *pattern, const char *path,
                     char args[REST_MAX_ARGS][REST_MAX_ARG]);
char *rest_path_quote(const char *path);

struct rest_answer {
    unsigned int status;        /* HTTP status, 0: no answer yet. */
    struct json *json;          /* Body, or NULL. */
    char *text;                 /* Body if 'json' is null, or NULL. */
    const char *type;           /* MIME type of 'text'. */
    const char *allow;          /* Allowed methods, for status 405. */
};

struct rest_answer rest_answer_json(struct json *);
struct rest_answer rest_answer_text(const char *type, char *text);
struct rest_answer rest_answer_error(unsigned int status, const char *format,
                                     ...) OVS_PRINTF_FORMAT(2, 3);
struct rest_answer rest_answer_message(unsigned int status, char *message);

enum MHD_Result rest_answer_send(struct MHD_Connection *,
                                 struct rest_answer *);
void rest_answer_uninit(struct rest_answer *);

#endif /* controller/northbound/rest/rest-message.h */
