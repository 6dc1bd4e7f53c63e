/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JSON_PLACE_H
#define JSON_PLACE_H 1

/* Where in a text a reader is, for the files of json-check.h only.
 *
 *
 * Motivation
 * ==========
 *
 * A message names the member at fault by its JSON pointer, and a member that
 * nobody asked for is an error.  So each item that a reader looks at gets a
 * place, which knows the way to it and which of its members were asked for.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * All places of a text hang on its json_check, one for each item that was
 * looked at, and end with it. */

#include "base/json-check.h"

#include <stdarg.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#define JSON_MAX_FOUND 40       /* Characters of a wrong value in messages. */
#define JSON_BUCKETS 4096       /* 2^12; a recording has 100,000 places. */
#define JSON_MAX_ERRORS 20      /* Messages that are kept of one text. */

struct json_at {
    struct json_check *jc;
    const struct json_at *parent;       /* NULL for the top. */
    struct json_at *next;               /* In json_check's 'places'. */
    struct json_at *next_in_bucket;
    const cJSON *item;
    size_t index;                       /* Of an element of an array. */
    size_t n_asked, allocated_asked;
    const cJSON **asked;                /* Members that the reader wanted. */
};

struct json_check {
    char *name;
    cJSON *root;                /* NULL if the text is not JSON. */
    size_t n_errors;            /* More than there is room for are not */
    char *errors[JSON_MAX_ERRORS];      /* kept. */
    struct json_at *places;     /* Newest first. */
    struct json_at *buckets[JSON_BUCKETS];      /* The same by 'item'. */
};

/* The place of 'item', an old or a new one; NULL from json_place_find() if it
 * has none yet. */
struct json_at *json_place(struct json_check *, const struct json_at *parent,
                           const cJSON *item, size_t index);
struct json_at *json_place_find(const struct json_check *, const cJSON *item);

/* Which members of a place somebody asked for. */
void json_place_ask(struct json_at *, const cJSON *member);
bool json_place_was_asked(const struct json_at *, const cJSON *member);

/* Reports that the value at the place is not 'allowed'. */
void json_place_refuse(const struct json_at *, const char *allowed);

/* Whether 's' is a name of a cojob, a job or a host. */
#define JSON_NAME "a name of 1 to 31 letters, digits, '.', '_' and '-' that " \
                  "begins with a letter or digit"
bool json_is_name(const char *s);

/* Prints at most 'n' characters of what may be anybody's on one line. */
void json_place_print(const char *s, size_t n, FILE *);

/* Memory and text, which nobody can do without. */
void *json_must(void *);
char *json_message(const char *format, ...) JSON_PRINTF(1, 2);

#endif /* base/json-place.h */
