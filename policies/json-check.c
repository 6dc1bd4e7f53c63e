/* SPDX-License-Identifier: Apache-2.0 */

#include "policies/json-check.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#define MAX_FILE (16u << 20)    /* Bytes. */
#define MAX_NAME 31             /* Characters of a cojob's, job's or host's. */
#define MAX_FOUND 40            /* Characters of a wrong value, in messages. */
#define MAX_EXACT 9007199254740992.0    /* 2^53: integers are exact so far. */

/* A place: an item of the text, and how one gets there.  All places of a text
 * hang on its json_check, one for each item that was looked at. */
struct json_at {
    struct json_check *jc;
    const struct json_at *parent;       /* NULL for the top. */
    struct json_at *next;               /* In json_check's 'places'. */
    const cJSON *item;
    size_t index;                       /* Of an element of an array. */
    size_t n_asked, allocated_asked;
    const cJSON **asked;                /* Members that the reader wanted. */
};

struct json_check {
    char *name;
    cJSON *root;                /* NULL if the text is not JSON. */
    char *error;                /* The first one, or NULL. */
    struct json_at *places;     /* Newest first. */
};

static void *
must(void *p)
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

    return vasprintf(&s, format, args) < 0 ? must(NULL) : s;
}

static char *JSON_PRINTF(1, 2)
message(const char *format, ...)
{
    va_list args;
    char *s;

    va_start(args, format);
    s = format_message(format, args);
    va_end(args);
    return s;
}

/* Places. */

static const struct json_at *
place_create(struct json_check *jc, const struct json_at *parent,
             const cJSON *item, size_t index)
{
    struct json_at *at;

    for (at = jc->places; at; at = at->next) {
        if (at->item == item) {
            return at;
        }
    }
    at = must(calloc(1, sizeof *at));
    at->jc = jc;
    at->parent = parent;
    at->next = jc->places;
    at->item = item;
    at->index = index;
    jc->places = at;
    return at;
}

/* Appends 's', which may be anybody's, so that it stays on one line. */
static void
print_plain(const char *s, size_t n, FILE *stream)
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
            print_plain(s, 1, stream);
        }
    }
}

/* Appends the JSON pointer of 'at' to 'stream'. */
static void
place_print(const struct json_at *at, FILE *stream)
{
    if (!at->parent) {
        return;
    }
    place_print(at->parent, stream);
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

    if (jc->error) {
        return;
    }
    text = format_message(format, args);
    stream = must(open_memstream(&jc->error, &size));
    fprintf(stream, "%s: ", jc->name);
    place_print(at, stream);
    if (member) {
        print_step(member, stream);
    } else if (!at->parent) {
        fputc('/', stream);
    }
    fprintf(stream, ": %s", text);
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

/* Reports that the value at 'at' is not 'allowed'. */
static void
fail_value(const struct json_at *at, const char *allowed)
{
    char *found = cJSON_IsNumber(at->item) && !isfinite(at->item->valuedouble)
        ? strdup("a number beyond all bounds")
        : cJSON_PrintUnformatted(at->item);

    if (found && strlen(found) > MAX_FOUND) {
        strcpy(found + MAX_FOUND - 3, "...");
    }
    json_fail_at(at, "%s is not %s", found ? found : "this", allowed);
    cJSON_free(found);
}

/* Opening and closing. */

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
    const struct json_at *at = place_create(jc, parent, item, index);
    const cJSON *child;
    size_t i = 0;

    cJSON_ArrayForEach (child, item) {
        if (cJSON_IsObject(item)) {
            for (const cJSON *c = item->child; c != child; c = c->next) {
                if (!strcmp(c->string, child->string)) {
                    json_fail(at, child->string, "stands here twice");
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
    struct json_check *jc = must(calloc(1, sizeof *jc));
    const char *end = text;

    jc->name = must(strdup(name));
    jc->root = cJSON_ParseWithOpts(text, &end, true);
    if (!jc->root) {
        size_t n = strcspn(end, "\n");
        size_t size;
        FILE *stream = must(open_memstream(&jc->error, &size));

        fprintf(stream, "%s:%zu: not valid JSON near ", name,
                line_of(text, end));
        fputs(n ? "\"" : "the end of the line", stream);
        print_plain(end, n < MAX_FOUND ? n : MAX_FOUND, stream);
        fputs(n ? "\"" : "", stream);
        fclose(stream);
    } else {
        refuse_twins(jc, NULL, jc->root, 0);
        if (!cJSON_IsObject(jc->root)) {
            fail_value(json_check_top(jc), "an object");
        }
    }
    return jc;
}

const struct json_at *
json_check_top(struct json_check *jc)
{
    return jc->root ? place_create(jc, NULL, jc->root, 0) : NULL;
}

bool
json_ok(const struct json_check *jc)
{
    return !jc->error;
}

static bool
was_asked(const struct json_at *at, const cJSON *child)
{
    for (size_t i = 0; i < at->n_asked; i++) {
        if (at->asked[i] == child) {
            return true;
        }
    }
    return false;
}

static const struct json_at *
find_place(const struct json_check *jc, const cJSON *item)
{
    for (const struct json_at *at = jc->places; at; at = at->next) {
        if (at->item == item) {
            return at;
        }
    }
    return NULL;
}

/* Reports the first member in the order of the text that nobody asked for. */
static void
refuse_unknown(struct json_check *jc, const cJSON *item)
{
    const struct json_at *at = find_place(jc, item);
    const cJSON *child;

    cJSON_ArrayForEach (child, item) {
        if (jc->error) {
            return;
        }
        if (cJSON_IsObject(item) && (!at || !was_asked(at, child))) {
            json_fail(at, child->string, "unknown member");
        } else {
            refuse_unknown(jc, child);
        }
    }
}

/* Frees 'jc' and returns the first error of the text, which the caller frees,
 * or NULL. */
char *
json_check_close(struct json_check *jc)
{
    struct json_at *at, *next;
    char *error;

    if (!jc->error) {
        refuse_unknown(jc, jc->root);
    }
    error = jc->error;
    for (at = jc->places; at; at = next) {
        next = at->next;
        free(at->asked);
        free(at);
    }
    cJSON_Delete(jc->root);
    free(jc->name);
    free(jc);
    return error;
}

char *
json_read_file(const char *file, char **textp)
{
    FILE *stream = fopen(file, "r");
    size_t n, allocated = 4096;
    char *text;

    *textp = NULL;
    if (!stream) {
        return message("%s: %s", file, strerror(errno));
    }
    text = must(malloc(allocated));
    n = 0;
    while (n < MAX_FILE) {
        size_t got = fread(text + n, 1, allocated - n - 1, stream);

        if (!got) {
            break;
        }
        n += got;
        if (n + 1 == allocated) {
            allocated *= 2;
            text = must(realloc(text, allocated));
        }
    }
    if (ferror(stream) || n >= MAX_FILE) {
        char *error = ferror(stream)
            ? message("%s: %s", file, strerror(errno))
            : message("%s: longer than %u MiB", file, MAX_FILE >> 20);

        fclose(stream);
        free(text);
        return error;
    }
    fclose(stream);
    text[n] = '\0';
    if (strlen(text) != n) {
        char *error = message("%s: byte %zu is 0, only text is allowed",
                              file, strlen(text));

        free(text);
        return error;
    }
    *textp = text;
    return NULL;
}

/* Members. */

/* Returns member 'member' of 'at' and notes that it was asked for; NULL if
 * there is none, which is an error if 'required'. */
static const struct json_at *
get(const struct json_at *at_, const char *member, bool required)
{
    struct json_at *at = (struct json_at *) at_;
    const cJSON *item;

    if (!at || !cJSON_IsObject(at->item)) {
        return NULL;
    }
    item = cJSON_GetObjectItemCaseSensitive(at->item, member);
    if (!item) {
        if (required) {
            json_fail(at, member, "required member is missing");
        }
        return NULL;
    }
    if (!was_asked(at, item)) {
        if (at->n_asked == at->allocated_asked) {
            at->allocated_asked = 2 * at->allocated_asked + 8;
            at->asked = must(realloc(at->asked, at->allocated_asked
                                     * sizeof *at->asked));
        }
        at->asked[at->n_asked++] = item;
    }
    return place_create(at->jc, at, item, 0);
}

bool
json_has(const struct json_at *at, const char *member)
{
    return at && cJSON_IsObject(at->item)
        && cJSON_GetObjectItemCaseSensitive(at->item, member);
}

/* Returns true if 'member' is an object, for those that may be something else
 * as well. */
bool
json_has_object(const struct json_at *at, const char *member)
{
    return at && cJSON_IsObject(at->item)
        && cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(at->item, member));
}

void
json_ignore(const struct json_at *at, const char *member)
{
    get(at, member, false);
}

char *
json_string(const struct json_at *at, const char *member)
{
    return json_at_string(get(at, member, true));
}

char *
json_string_or(const struct json_at *at, const char *member,
               const char *deflt)
{
    const struct json_at *value = get(at, member, false);

    return value ? json_at_string(value) : deflt ? must(strdup(deflt)) : NULL;
}

double
json_number(const struct json_at *at, const char *member,
            double min, double max)
{
    return json_at_number(get(at, member, true), min, max);
}

double
json_number_or(const struct json_at *at, const char *member,
               double min, double max, double deflt)
{
    const struct json_at *value = get(at, member, false);

    return value ? json_at_number(value, min, max) : deflt;
}

int64_t
json_integer(const struct json_at *at, const char *member,
             int64_t min, int64_t max)
{
    return json_at_integer(get(at, member, true), min, max);
}

int64_t
json_integer_or(const struct json_at *at, const char *member,
                int64_t min, int64_t max, int64_t deflt)
{
    const struct json_at *value = get(at, member, false);

    return value ? json_at_integer(value, min, max) : deflt;
}

bool
json_bool_or(const struct json_at *at, const char *member, bool deflt)
{
    const struct json_at *value = get(at, member, false);

    if (value && !cJSON_IsBool(value->item)) {
        fail_value(value, "true or false");
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
    fail_value(value, allowed);
    free(allowed);
    return deflt;
}

int
json_enum(const struct json_at *at, const char *member,
          const char *const names[])
{
    return enum_value(get(at, member, true), names, 0);
}

int
json_enum_or(const struct json_at *at, const char *member,
             const char *const names[], int deflt)
{
    return enum_value(get(at, member, false), names, deflt);
}

int64_t
json_rate(const struct json_at *at, const char *member)
{
    static const struct {
        const char *unit;
        double bps;
    } units[] = {
        { "kbit", 1e3 }, { "Mbit", 1e6 }, { "Gbit", 1e9 },
    };
    const struct json_at *value = get(at, member, true);
    char *end;

    if (!value) {
        return 0;
    }
    if (cJSON_IsString(value->item)
        && isdigit((unsigned char) value->item->valuestring[0])) {
        double x = strtod(value->item->valuestring, &end);

        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            double bps = x * units[i].bps;

            if (!strcmp(end, units[i].unit) && bps >= 1e3 && bps <= 1e13) {
                return bps;
            }
        }
    }
    fail_value(value, "a rate from \"1kbit\" to \"10000Gbit\", "
               "such as \"50Mbit\"");
    return 0;
}

char *
json_name(const struct json_at *at, const char *member)
{
    return json_at_name(get(at, member, true));
}

/* Places inside. */

static const struct json_at *
object_value(const struct json_at *value)
{
    if (value && !cJSON_IsObject(value->item)) {
        fail_value(value, "an object");
        return NULL;
    }
    return value;
}

const struct json_at *
json_object(const struct json_at *at, const char *member)
{
    return object_value(get(at, member, true));
}

const struct json_at *
json_object_or_null(const struct json_at *at, const char *member)
{
    return object_value(get(at, member, false));
}

static const struct json_at *
array_value(const struct json_at *value, size_t min_n, size_t max_n)
{
    size_t n;

    if (!value) {
        return NULL;
    }
    if (!cJSON_IsArray(value->item)) {
        fail_value(value, "an array");
        return NULL;
    }
    n = json_n(value);
    if (n < min_n || n > max_n) {
        json_fail_at(value, "%zu elements, %zu to %zu are allowed",
                     n, min_n, max_n);
        return NULL;
    }
    return value;
}

const struct json_at *
json_array(const struct json_at *at, const char *member,
           size_t min_n, size_t max_n)
{
    return array_value(get(at, member, true), min_n, max_n);
}

const struct json_at *
json_array_or_null(const struct json_at *at, const char *member,
                   size_t min_n, size_t max_n)
{
    return array_value(get(at, member, false), min_n, max_n);
}

size_t
json_n(const struct json_at *at)
{
    return at ? cJSON_GetArraySize(at->item) : 0;
}

const struct json_at *
json_element(const struct json_at *at, size_t index)
{
    const cJSON *item = at ? cJSON_GetArrayItem(at->item, index) : NULL;

    return item ? place_create(at->jc, at, item, index) : NULL;
}

const struct json_at *
json_element_object(const struct json_at *at, size_t index)
{
    return object_value(json_element(at, index));
}

/* Values. */

bool
json_at_is_string(const struct json_at *at)
{
    return at && cJSON_IsString(at->item);
}

bool
json_at_is_number(const struct json_at *at)
{
    return at && cJSON_IsNumber(at->item);
}

bool
json_at_is_object(const struct json_at *at)
{
    return at && cJSON_IsObject(at->item);
}

char *
json_at_string(const struct json_at *at)
{
    if (at && !cJSON_IsString(at->item)) {
        fail_value(at, "a string");
        at = NULL;
    }
    return must(strdup(at ? at->item->valuestring : ""));
}

char *
json_at_name(const struct json_at *at)
{
    char *s = json_at_string(at);

    if (at && cJSON_IsString(at->item)) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

        if (!isalnum((unsigned char) s[0]) || s[n] || n > MAX_NAME) {
            fail_value(at, "a name of 1 to 31 letters, digits, '.', '_' and "
                       "'-' that begins with a letter or digit");
        }
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
        char *allowed = message("a number from %g to %g", min, max);

        fail_value(at, allowed);
        free(allowed);
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
        char *allowed = message("an integer from %"PRId64" to %"PRId64,
                                min, max);

        fail_value(at, allowed);
        free(allowed);
        return min;
    }
    return x;
}
