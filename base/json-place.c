/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json-place.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void *
json_must(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

static char *
format_message(const char *format, va_list args)
{
    char *s;

    return vasprintf(&s, format, args) < 0 ? json_must(NULL) : s;
}

char *
json_message(const char *format, ...)
{
    va_list args;
    char *s;

    va_start(args, format);
    s = format_message(format, args);
    va_end(args);
    return s;
}

/* The first 12 bits of a product that spreads addresses. */
static size_t
bucket(const cJSON *item)
{
    return ((uintptr_t) item / sizeof *item * 0x9e3779b97f4a7c15) >> 52;
}

struct json_at *
json_place_find(const struct json_check *jc, const cJSON *item)
{
    for (struct json_at *at = jc->buckets[bucket(item)]; at;
         at = at->next_in_bucket) {
        if (at->item == item) {
            return at;
        }
    }
    return NULL;
}

struct json_at *
json_place(struct json_check *jc, const struct json_at *parent,
           const cJSON *item, size_t index)
{
    struct json_at *at = json_place_find(jc, item);

    if (at) {
        return at;
    }
    at = json_must(calloc(1, sizeof *at));
    at->jc = jc;
    at->parent = parent;
    at->next = jc->places;
    at->item = item;
    at->index = index;
    jc->places = at;
    at->next_in_bucket = jc->buckets[bucket(item)];
    jc->buckets[bucket(item)] = at;
    return at;
}

bool
json_place_was_asked(const struct json_at *at, const cJSON *member)
{
    for (size_t i = 0; i < at->n_asked; i++) {
        if (at->asked[i] == member) {
            return true;
        }
    }
    return false;
}

void
json_place_ask(struct json_at *at, const cJSON *member)
{
    if (json_place_was_asked(at, member)) {
        return;
    }
    if (at->n_asked == at->allocated_asked) {
        at->allocated_asked = 2 * at->allocated_asked + 8;
        at->asked = json_must(reallocarray(at->asked, at->allocated_asked,
                                           sizeof *at->asked));
    }
    at->asked[at->n_asked++] = member;
}

void
json_place_print(const char *s, size_t n, FILE *stream)
{
    for (size_t i = 0; i < n && s[i]; i++) {
        if (iscntrl((unsigned char) s[i])) {
            fprintf(stream, "\\u%04x", (unsigned char) s[i]);
        } else {
            fputc(s[i], stream);
        }
    }
}

/* Appends one step of a JSON pointer (RFC 6901). */
static void
print_step(const char *member, FILE *stream)
{
    fputc('/', stream);
    for (const char *s = member; *s; s++) {
        if (*s == '~' || *s == '/') {
            fputs(*s == '~' ? "~0" : "~1", stream);
        } else {
            json_place_print(s, 1, stream);
        }
    }
}

/* Appends the JSON pointer of 'at' to 'stream'. */
static void
print_pointer(const struct json_at *at, FILE *stream)
{
    if (!at->parent) {
        return;
    }
    print_pointer(at->parent, stream);
    if (cJSON_IsArray(at->parent->item)) {
        fprintf(stream, "/%zu", at->index);
    } else {
        print_step(at->item->string, stream);
    }
}

static void
fail_args(const struct json_at *at, const char *member, const char *format,
          va_list args)
{
    struct json_check *jc = at->jc;
    size_t size;
    char *text;
    FILE *stream;

    if (jc->n_errors == JSON_MAX_ERRORS) {
        return;
    }
    text = format_message(format, args);
    stream = json_must(open_memstream(&jc->errors[jc->n_errors++], &size));
    fprintf(stream, "%s: ", jc->name);
    print_pointer(at, stream);
    if (member) {
        print_step(member, stream);
    } else if (!at->parent) {
        fputc('/', stream);
    }
    fputs(": ", stream);
    json_place_print(text, strlen(text), stream);       /* May quote. */
    fclose(stream);
    free(text);
}

void
json_fail(const struct json_at *at, const char *member,
          const char *format, ...)
{
    if (at) {
        va_list args;

        va_start(args, format);
        fail_args(at, member, format, args);
        va_end(args);
    }
}

void
json_fail_at(const struct json_at *at, const char *format, ...)
{
    if (at) {
        va_list args;

        va_start(args, format);
        fail_args(at, NULL, format, args);
        va_end(args);
    }
}

void
json_place_refuse(const struct json_at *at, const char *allowed)
{
    char *found = cJSON_IsNumber(at->item) && !isfinite(at->item->valuedouble)
        ? strdup("a number beyond all bounds")
        : cJSON_PrintUnformatted(at->item);

    if (found && strlen(found) > JSON_MAX_FOUND) {
        strcpy(found + JSON_MAX_FOUND - 3, "...");
    }
    json_fail_at(at, "%s is not %s", found ? found : "this", allowed);
    cJSON_free(found);
}
