/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json-check.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/memory.h"
#include "base/name.h"
#include "base/similar.h"
#include "base/text-file.h"

#define MAX_ERRORS 20           /* Messages that are kept of one text. */
#define MAX_EXACT 9007199254740992.0    /* 2^53: integers are exact so far. */
#define MAX_FILE (64u << 20)            /* Bytes. */
#define MAX_FOUND 40 /* Characters of a wrong value in messages. */

/* An item of the text. */
struct json_at {
    struct json_check *jc;
    const struct json_at *parent;       /* NULL for the top. */
    const cJSON *item;
    size_t index;                       /* Among the children of 'parent'. */
    bool read;                          /* A member that a reader requested. */
    char *meant;                        /* Similar name that a reader
                                         * requested and that is missing. */
    struct json_at *children;           /* [n]: elements, or members. */
    size_t n;
};

struct json_check {
    char *name;
    cJSON *root;                /* NULL if the text is not JSON. */
    size_t n_errors;            /* Number of 'errors'; further ones are
                                 * dropped. */
    char *errors[MAX_ERRORS];
    struct json_at top;         /* Of 'root'. */
};

/* Adds what is below 'at'. */
static void
add_children(struct json_at *at)
{
    const cJSON *item;
    size_t i = 0;

    at->n = cJSON_GetArraySize(at->item);
    at->children = at->n ? allocate(at->n, sizeof *at->children) : NULL;
    cJSON_ArrayForEach (item, at->item) {
        at->children[i] = (struct json_at) {
            .jc = at->jc, .parent = at, .item = item, .index = i,
        };
        add_children(&at->children[i++]);
    }
}

static void
free_children(struct json_at *at)
{
    for (size_t i = 0; i < at->n; i++) {
        free_children(&at->children[i]);
        free(at->children[i].meant);
    }
    free(at->children);
    at->children = NULL;
    at->n = 0;
}

static void
print_escaped(const char *s, size_t n, FILE *stream)
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
            print_escaped(s, 1, stream);
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

void
json_fail(const struct json_at *at, const char *member,
          const char *format, ...)
{
    struct json_check *jc = at ? at->jc : NULL;
    va_list args;
    FILE *stream;
    size_t size;
    char *text;

    if (!jc || jc->n_errors == MAX_ERRORS) {
        return;
    }
    va_start(args, format);
    text = message_args(format, args);
    va_end(args);
    stream = must(open_memstream(&jc->errors[jc->n_errors++], &size));
    fprintf(stream, "%s: ", jc->name);
    print_pointer(at, stream);
    if (member) {
        print_step(member, stream);
    } else if (!at->parent) {
        fputc('/', stream);
    }
    fputs(": ", stream);
    print_escaped(text, strlen(text), stream);       /* May quote. */
    fclose(stream);
    free(text);
}

/* Reports that the value of 'at' is not what 'format' allows. */
static void __attribute__((__format__(__printf__, 2, 3)))
refuse_value(const struct json_at *at, const char *format, ...)
{
    char *found = cJSON_IsNumber(at->item) && !isfinite(at->item->valuedouble)
        ? strdup("a number beyond all bounds")
        : cJSON_PrintUnformatted(at->item);
    char *allowed;
    va_list args;

    va_start(args, format);
    allowed = message_args(format, args);
    va_end(args);
    if (found && strlen(found) > MAX_FOUND) {
        strcpy(found + MAX_FOUND - 3, "...");
    }
    json_fail(at, NULL, "%s is not %s", found ? found : "this", allowed);
    cJSON_free(found);
    free(allowed);
}

char *
json_at_string(const struct json_at *at)
{
    if (at && !cJSON_IsString(at->item)) {
        refuse_value(at, "a string");
        at = NULL;
    }
    return duplicate(at ? at->item->valuestring : "");
}

char *
json_at_name(const struct json_at *at)
{
    char *s = json_at_string(at);

    if (at && cJSON_IsString(at->item) && !name_is_valid(s)) {
        refuse_value(at, NAME_RULE);
    }
    return s;
}

double
json_at_number(const struct json_at *at, double min, double max)
{
    if (!at) {
        return min;
    }
    if (!cJSON_IsNumber(at->item) || !(at->item->valuedouble >= min)
        || !(at->item->valuedouble <= max)) {
        refuse_value(at, "a number from %g to %g", min, max);
        return min;
    }
    return at->item->valuedouble;
}

int64_t
json_at_integer(const struct json_at *at, int64_t min, int64_t max)
{
    double x;

    if (!at) {
        return min;
    }
    x = cJSON_IsNumber(at->item) ? at->item->valuedouble : NAN;
    if (!(x >= min && x <= max && fabs(x) <= MAX_EXACT) || x != floor(x)) {
        refuse_value(at, "an integer from %"PRId64" to %"PRId64, min, max);
        return min;
    }
    return x;
}

/* Notes 'member', which 'at' lacks, at members of a similar name, for the
 * message if nothing reads them. */
static void
note_missing(const struct json_at *at, const char *member)
{
    for (size_t i = 0; i < at->n; i++) {
        struct json_at *child = &at->children[i];
        const char *name = child->item->string;

        if (!child->read && similar_is(name, member)
            && (!child->meant
                || similar_distance(name, member)
                       < similar_distance(name, child->meant))) {
            free(child->meant);
            child->meant = duplicate(member);
        }
    }
}

/* Returns the first 'member' of 'at', or NULL. */
static struct json_at *
find_member(const struct json_at *at, const char *member)
{
    if (!at || !cJSON_IsObject(at->item)) {
        return NULL;
    }
    for (size_t i = 0; i < at->n; i++) {
        if (!strcmp(at->children[i].item->string, member)) {
            return &at->children[i];
        }
    }
    note_missing(at, member);
    return NULL;
}

/* Returns 'member' of 'at' and notes that it was read.  Returns NULL if it
 * is missing, which is an error if 'required'. */
static const struct json_at *
get_member(const struct json_at *at, const char *member, bool required)
{
    struct json_at *value = find_member(at, member);

    if (value) {
        value->read = true;
    } else if (required && at && cJSON_IsObject(at->item)) {
        json_fail(at, member, "required member is missing");
    }
    return value;
}

bool
json_has(const struct json_at *at, const char *member)
{
    return find_member(at, member);
}

/* Return true if 'member' is an object or an array, for members that may have
 * other types as well. */
bool
json_has_object(const struct json_at *at, const char *member)
{
    const struct json_at *value = find_member(at, member);

    return value && cJSON_IsObject(value->item);
}

bool
json_has_array(const struct json_at *at, const char *member)
{
    const struct json_at *value = find_member(at, member);

    return value && cJSON_IsArray(value->item);
}

void
json_ignore(const struct json_at *at, const char *member)
{
    struct json_at *value = find_member(at, member);

    if (value) {
        value->read = true;
        free_children(value);
    }
}

char *
json_string(const struct json_at *at, const char *member)
{
    return json_at_string(get_member(at, member, true));
}

char *
json_string_or(const struct json_at *at, const char *member, const char *deflt)
{
    const struct json_at *value = get_member(at, member, false);

    return value ? json_at_string(value) : duplicate(deflt);
}

double
json_number(const struct json_at *at, const char *member,
            double min, double max)
{
    return json_at_number(get_member(at, member, true), min, max);
}

double
json_number_or(const struct json_at *at, const char *member,
               double min, double max, double deflt)
{
    const struct json_at *value = get_member(at, member, false);

    return value ? json_at_number(value, min, max) : deflt;
}

int64_t
json_integer(const struct json_at *at, const char *member,
             int64_t min, int64_t max)
{
    return json_at_integer(get_member(at, member, true), min, max);
}

int64_t
json_integer_or(const struct json_at *at, const char *member,
                int64_t min, int64_t max, int64_t deflt)
{
    const struct json_at *value = get_member(at, member, false);

    return value ? json_at_integer(value, min, max) : deflt;
}

bool
json_bool_or(const struct json_at *at, const char *member, bool deflt)
{
    const struct json_at *value = get_member(at, member, false);

    if (value && !cJSON_IsBool(value->item)) {
        refuse_value(value, "true or false");
        return deflt;
    }
    return value ? cJSON_IsTrue(value->item) : deflt;
}

static int
enum_value(const struct json_at *value, const char *const names[], int deflt)
{
    size_t size;
    char *allowed;
    FILE *stream;

    if (!value) {
        return deflt;
    }
    for (int i = 0; cJSON_IsString(value->item) && names[i]; i++) {
        if (!strcmp(names[i], value->item->valuestring)) {
            return i;
        }
    }
    stream = must(open_memstream(&allowed, &size));
    fputs("one of", stream);
    for (int i = 0; names[i]; i++) {
        fprintf(stream, "%s \"%s\"", i ? "," : "", names[i]);
    }
    fclose(stream);
    refuse_value(value, "%s", allowed);
    free(allowed);
    return deflt;
}

int
json_enum(const struct json_at *at, const char *member,
          const char *const names[])
{
    return enum_value(get_member(at, member, true), names, 0);
}

int
json_enum_or(const struct json_at *at, const char *member,
             const char *const names[], int deflt)
{
    return enum_value(get_member(at, member, false), names, deflt);
}

int
json_at_enum(const struct json_at *at, const char *const names[])
{
    return enum_value(at, names, 0);
}

int64_t
json_rate_parse(const char *text)
{
    static const struct {
        const char *unit;
        double bps;
    } units[] = {
        { "kbit", 1e3 }, { "Mbit", 1e6 }, { "Gbit", 1e9 },
    };
    char *end;
    double x;

    if (!isdigit((unsigned char) *text)) {
        return 0;
    }
    x = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double bps = x * units[i].bps;

        if (!strcmp(end, units[i].unit) && bps >= 1e3 && bps <= 1e13) {
            return bps;
        }
    }
    return 0;
}

int64_t
json_rate(const struct json_at *at, const char *member)
{
    const struct json_at *value = get_member(at, member, true);
    int64_t rate;

    if (!value) {
        return 0;
    }
    rate = cJSON_IsString(value->item)
           ? json_rate_parse(value->item->valuestring) : 0;
    if (!rate) {
        refuse_value(value, JSON_RATE_RULE);
    }
    return rate;
}

char *
json_name(const struct json_at *at, const char *member)
{
    return json_at_name(get_member(at, member, true));
}

static const struct json_at *
object_value(const struct json_at *value)
{
    if (value && !cJSON_IsObject(value->item)) {
        refuse_value(value, "an object");
        return NULL;
    }
    return value;
}

const struct json_at *
json_object(const struct json_at *at, const char *member)
{
    return object_value(get_member(at, member, true));
}

const struct json_at *
json_object_or_null(const struct json_at *at, const char *member)
{
    return object_value(get_member(at, member, false));
}

static const struct json_at *
array_value(const struct json_at *value, size_t min_n, size_t max_n)
{
    size_t n;

    if (!value) {
        return NULL;
    }
    if (!cJSON_IsArray(value->item)) {
        refuse_value(value, "an array");
        return NULL;
    }
    n = json_n(value);
    if (n < min_n || n > max_n) {
        json_fail(value, NULL, "%zu elements; expected %zu to %zu", n, min_n,
                  max_n);
        return NULL;
    }
    return value;
}

const struct json_at *
json_array(const struct json_at *at, const char *member,
           size_t min_n, size_t max_n)
{
    return array_value(get_member(at, member, true), min_n, max_n);
}

const struct json_at *
json_array_or_null(const struct json_at *at, const char *member,
                   size_t min_n, size_t max_n)
{
    return array_value(get_member(at, member, false), min_n, max_n);
}

size_t
json_n(const struct json_at *at)
{
    return at ? at->n : 0;
}

const struct json_at *
json_element(const struct json_at *at, size_t index)
{
    return at && index < at->n ? &at->children[index] : NULL;
}

const struct json_at *
json_element_object(const struct json_at *at, size_t index)
{
    return object_value(json_element(at, index));
}

const struct json_at *
json_member(const struct json_at *at, size_t index, const char **namep)
{
    struct json_at *value;

    if (!at || !cJSON_IsObject(at->item) || index >= at->n) {
        return NULL;
    }
    value = &at->children[index];
    value->read = true;
    if (!name_is_valid(value->item->string)) {
        json_fail(value, NULL, "its name is not " NAME_RULE);
    }
    *namep = value->item->string;
    return value;
}

static size_t
line_of(const char *text, const char *end)
{
    size_t line = 1;

    for (; text < end && *text; text++) {
        line += *text == '\n';
    }
    return line;
}

/* Reports the first duplicate member of an object: cJSON would silently use
 * its first value. */
static void
refuse_duplicates(struct json_at *at)
{
    for (size_t i = 0; i < at->n; i++) {
        struct json_at *child = &at->children[i];
        const char *name = child->item->string;

        if (cJSON_IsObject(at->item) && find_member(at, name) != child) {
            json_fail(at, name, "stands here twice");
            child->read = true;         /* One error is enough. */
            free_children(child);
            return;
        }
        refuse_duplicates(child);
    }
}

struct json_check *
json_check_open(const char *name, const char *text)
{
    struct json_check *jc = allocate(1, sizeof *jc);
    const char *end = text;

    jc->name = duplicate(name);
    jc->root = cJSON_ParseWithOpts(text, &end, true);
    if (!jc->root) {
        size_t n = strcspn(end, "\n");
        size_t size;
        FILE *stream = must(open_memstream(&jc->errors[0], &size));

        jc->n_errors = 1;
        fprintf(stream, "%s:%zu: not valid JSON near ", name,
                line_of(text, end));
        fputs(n ? "\"" : "the end of the line", stream);
        print_escaped(end, n < MAX_FOUND ? n : MAX_FOUND, stream);
        fputs(n ? "\"" : "", stream);
        fclose(stream);
    } else {
        jc->top = (struct json_at) { .jc = jc, .item = jc->root };
        add_children(&jc->top);
        refuse_duplicates(&jc->top);
        if (!cJSON_IsObject(jc->root)) {
            refuse_value(&jc->top, "an object");
        }
    }
    return jc;
}

const struct json_at *
json_check_top(struct json_check *jc)
{
    return jc->root ? &jc->top : NULL;
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

/* Reports the members that were not read, in the order of the text. */
static void
refuse_unknown(const struct json_at *at)
{
    for (size_t i = 0; i < at->n; i++) {
        const struct json_at *child = &at->children[i];

        if (cJSON_IsObject(at->item) && !child->read) {
            if (child->meant) {
                json_fail(at, child->item->string,
                          "unknown member, did you "
                          "mean \"%s\"",
                          child->meant);
            } else {
                json_fail(at, child->item->string, "unknown member");
            }
        } else {
            refuse_unknown(child);
        }
    }
}

/* Frees 'jc'.  Returns the first 'n' errors, one per line, or NULL. */
static char *
finish(struct json_check *jc, size_t n)
{
    char *text = NULL;
    size_t size;

    if (jc->n_errors) {
        FILE *stream = must(open_memstream(&text, &size));

        for (size_t i = 0; i < jc->n_errors && i < n; i++) {
            fprintf(stream, "%s%s", i ? "\n" : "", jc->errors[i]);
        }
        fclose(stream);
    }
    for (size_t i = 0; i < jc->n_errors; i++) {
        free(jc->errors[i]);
    }
    free_children(&jc->top);
    cJSON_Delete(jc->root);
    free(jc->name);
    free(jc);
    return text;
}

/* Frees 'jc' and returns the first error of the text, which the caller frees,
 * or NULL.  Unread members are an error only if there is no other, since a
 * reader may stop early. */
char *
json_check_close(struct json_check *jc)
{
    if (!jc->n_errors) {
        refuse_unknown(&jc->top);
    }
    return finish(jc, 1);
}

/* Like json_check_close(), but returns all errors, one per line.  For a reader
 * that reads all members in spite of errors. */
char *
json_check_close_all(struct json_check *jc)
{
    refuse_unknown(&jc->top);
    return finish(jc, MAX_ERRORS);
}

/* Returns what can be read from 'stream', at most MAX_FILE bytes and a '\0'.
 */
static char *
read_stream(FILE *stream, size_t *np)
{
    char *text = NULL;
    size_t n = 0, size = 8192;

    do {
        size *= 2;
        text = reallocate(text, size + 1, 1);
        n += fread(text + n, 1, size - n, stream);
    } while (n == size && size < MAX_FILE);
    text[n] = '\0';
    *np = n;
    return text;
}

char *
json_read_file(const char *file, char **textp)
{
    FILE *stream = text_file_open(file);
    size_t n = 0;
    char *text = stream ? read_stream(stream, &n) : NULL;
    char *error = NULL;

    if (!stream || ferror(stream)) {
        error = message("%s: %s", file, strerror(errno));
    } else if (n == MAX_FILE) {
        error = message("%s: longer than %u MiB", file, MAX_FILE >> 20);
    } else if (strlen(text) != n) {
        error = message("%s: byte %zu is 0; expected only text", file,
                        strlen(text));
    }
    if (stream) {
        fclose(stream);
    }
    if (error) {
        free(text);
        text = NULL;
    }
    *textp = text;
    return error;
}
