/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json-place.h"

#include <stdlib.h>
#include <string.h>

static size_t
line_of(const char *text, const char *end)
{
    size_t line = 1;

    for (; text < end && *text; text++) {
        line += *text == '\n';
    }
    return line;
}

/* Stops at the first member that stands twice in an object: cJSON would let
 * the first one win in silence. */
static void
refuse_twins(struct json_check *jc, const struct json_at *parent,
             const cJSON *item, size_t index)
{
    struct json_at *at = json_place(jc, parent, item, index);
    const cJSON *child;
    size_t i = 0;

    cJSON_ArrayForEach (child, item) {
        if (cJSON_IsObject(item)) {
            for (const cJSON *c = item->child; c != child; c = c->next) {
                if (!strcmp(c->string, child->string)) {
                    json_fail(at, child->string, "stands here twice");
                    json_place_ask(at, child);  /* One error is enough. */
                    return;
                }
            }
        }
        if (child->child) {
            refuse_twins(jc, at, child, i);
        }
        i++;
    }
}

struct json_check *
json_check_open(const char *name, const char *text)
{
    struct json_check *jc = json_must(calloc(1, sizeof *jc));
    const char *end = text;

    jc->name = json_must(strdup(name));
    jc->root = cJSON_ParseWithOpts(text, &end, true);
    if (!jc->root) {
        size_t n = strcspn(end, "\n");
        size_t size;
        FILE *stream = json_must(open_memstream(&jc->errors[0], &size));

        jc->n_errors = 1;
        fprintf(stream, "%s:%zu: not valid JSON near ", name,
                line_of(text, end));
        fputs(n ? "\"" : "the end of the line", stream);
        json_place_print(end, n < JSON_MAX_FOUND ? n : JSON_MAX_FOUND, stream);
        fputs(n ? "\"" : "", stream);
        fclose(stream);
    } else {
        refuse_twins(jc, NULL, jc->root, 0);
        if (!cJSON_IsObject(jc->root)) {
            json_place_refuse(json_check_top(jc), "an object");
        }
    }
    return jc;
}

const struct json_at *
json_check_top(struct json_check *jc)
{
    return jc->root ? json_place(jc, NULL, jc->root, 0) : NULL;
}

bool
json_ok(const struct json_check *jc)
{
    return !jc->n_errors;
}

size_t
json_n_errors(const struct json_check *jc)
{
    return jc->n_errors;
}

/* Reports the members that nobody asked for, in the order of the text. */
static void
refuse_unknown(struct json_check *jc, const cJSON *item)
{
    const struct json_at *at = json_place_find(jc, item);
    const cJSON *child;

    cJSON_ArrayForEach (child, item) {
        if (cJSON_IsObject(item)
            && (!at || !json_place_was_asked(at, child))) {
            json_fail(at, child->string, "unknown member");
        } else {
            refuse_unknown(jc, child);
        }
    }
}

/* Returns the first 'n' errors, one a line, or NULL. */
static char *
join_errors(const struct json_check *jc, size_t n)
{
    char *text = NULL;
    size_t size;
    FILE *stream;

    if (!jc->n_errors) {
        return NULL;
    }
    stream = json_must(open_memstream(&text, &size));
    for (size_t i = 0; i < jc->n_errors && i < n; i++) {
        fprintf(stream, "%s%s", i ? "\n" : "", jc->errors[i]);
    }
    fclose(stream);
    return text;
}

static void
json_check_destroy(struct json_check *jc)
{
    struct json_at *at, *next;

    for (at = jc->places; at; at = next) {
        next = at->next;
        free(at->asked);
        free(at);
    }
    for (size_t i = 0; i < jc->n_errors; i++) {
        free(jc->errors[i]);
    }
    cJSON_Delete(jc->root);
    free(jc->name);
    free(jc);
}

/* Frees 'jc' and returns the first error of the text, which the caller frees,
 * or NULL.  What nobody asked for is an error only if there is no other, since
 * a reader may stop early. */
char *
json_check_close(struct json_check *jc)
{
    char *error;

    if (!jc->n_errors) {
        refuse_unknown(jc, jc->root);
    }
    error = join_errors(jc, 1);
    json_check_destroy(jc);
    return error;
}

/* As json_check_close(), but returns all errors, one a line.  For a reader
 * that asks for everything whatever it finds. */
char *
json_check_close_all(struct json_check *jc)
{
    char *errors;

    if (jc->root) {
        refuse_unknown(jc, jc->root);
    }
    errors = join_errors(jc, JSON_MAX_ERRORS);
    json_check_destroy(jc);
    return errors;
}
