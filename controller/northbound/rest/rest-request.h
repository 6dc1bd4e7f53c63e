/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_REQUEST_H
#define REST_REQUEST_H 1

/* What was asked for: method, path, body, and who asks.
 *
 *
 * Motivation
 * ==========
 *
 * A path is one of a table (rest-routes.h) in which "{name}" stands for any
 * segment, so that a handler gets its names already taken apart.  The HTTP
 * library's part of a request ends here: handlers, and the fuzz target, know
 * nothing of connections.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The strings belong to the caller.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>

#include "controller/northbound/rest/rest-body.h"

#define REST_MAX_ARGS 3         /* "{name}"s of a path. */
#define REST_MAX_ARG 64         /* Bytes of one, with its null byte. */
#define REST_MAX_BODY (64 * 1024)
#define REST_MAX_QUOTE 64       /* Characters of a path that errors show. */

struct controller;
struct rest_counts;

/* What is to be done of a request that has no answer yet. */
enum rest_next {
    REST_CHANGE,                /* Make 'change', then answer. */
    REST_STREAM,                /* Stream events. */
};

struct rest_request {
    struct controller *ctl;
    const struct rest_counts *counts;
    const char *method, *path;
    const char *actor;          /* Who asks: a user, or a certificate's CN. */
    const char *body;           /* Null-terminated, "" if there is none. */
    size_t body_size;           /* Larger than its string has if there are
                                 * null bytes in it. */

    /* The value of member 'name' of the query, or NULL. */
    const char *(*query)(const void *aux, const char *name);
    const void *query_aux;
    size_t n_query;             /* Members of the query. */

    char args[REST_MAX_ARGS][REST_MAX_ARG];     /* By rest_path_match(). */

    /* By a handler that does not answer. */
    enum rest_next next;
    struct rest_change change;  /* Of REST_CHANGE; points into 'args'. */
};

bool rest_path_match(const char *pattern, const char *path,
                     char args[REST_MAX_ARGS][REST_MAX_ARG]);
char *rest_path_quote(const char *path);

#endif /* controller/northbound/rest/rest-request.h */
