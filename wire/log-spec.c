/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/log-spec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "base/name.h"
#include "wire/log-expression.h"

#define MAX_RULES 256
#define MAX_PATH 1024
#define MAX_KEY LOG_EXPRESSION_SIZE

const char *const log_format_names[] = { "json-lines", "csv", "regex",
                                         "mlflow", NULL };

/* Members of a specification that are keys. */
static const struct {
    const char *name;
    unsigned int idle;          /* Bits of the formats that do not have it. */
} keys[LOG_N_KEYS] = {
    [LOG_ITERATION] = { "iteration", 1u << LOG_MLFLOW },
    [LOG_METRIC] = { "metric", 1u << LOG_MLFLOW },
    [LOG_STAGE] = { "stage", 1u << LOG_MLFLOW },
    [LOG_NAME] = { "name", 0 },
};

void
log_spec_uninit(struct log_spec *s)
{
    free(s->path);
    for (size_t i = 0; i < LOG_N_KEYS; i++) {
        free(s->keys[i]);
    }
}

void
log_rules_destroy(struct log_rules *r)
{
    if (r) {
        for (size_t i = 0; i < r->n; i++) {
            free(r->rules[i].cojob);
            free(r->rules[i].job);
            log_spec_uninit(&r->rules[i].spec);
        }
        free(r->rules);
        free(r);
    }
}

/* Returns the end of the element at 'text': the comma before the next "KEY=",
 * or the end of the text. */
static const char *
find_end(const char *text)
{
    for (const char *p = text; (p = strchr(p, ',')); p++) {
        for (size_t i = 0; i < LOG_N_KEYS; i++) {
            size_t n = strlen(keys[i].name);

            if (!strncmp(p + 1, keys[i].name, n) && p[n + 1] == '=') {
                return p;
            }
        }
    }
    return strchr(text, '\0');
}

/* Checks.  Each returns NULL, or what is wrong with the value of a member,
 * without its location. */

/* A value must be one element of the format of the command line, which is also
 * the format of log_spec_to_text(). */
static char *
check_element(const char *text)
{
    const char *end = find_end(text);

    return !*end ? NULL
           : message("\"%.20s\" in a value, \",\" and the name of a member "
                     "with \"=\" are not allowed", end);
}

static char *
check_path(const char *path)
{
    if (path[0] != '/' || strlen(path) > MAX_PATH || strchr(path, '\n')) {
        return message("\"%.40s\" is not an absolute path of at most %d "
                       "bytes", path, MAX_PATH);
    }
    for (const char *p = path; (p = strchr(p, '%')); p += 2) {
        if (!p[1] || !strchr("cj%", p[1])) {
            return message("\"%.2s\" in a path; expected %%c, %%j or %%%%", p);
        }
    }
    return check_element(path);
}

static char *
check_key(const char *key)
{
    if (!key[0] || strlen(key) > MAX_KEY || strchr(key, '\n')) {
        return message(
            "\"%.40s\" is not a key; expected one line of 1 to %d bytes", key,
            MAX_KEY);
    }
    return check_element(key);
}

static char *
check_regex(const char *text)
{
    char *error = check_key(text);
    struct log_expression *e;

    error = error ? error : log_expression_compile(text, &e);
    if (!error) {
        log_expression_destroy(e);
    }
    return error;
}

static char *
check_name(const char *name)
{
    return name_is_valid_metric(name)
               ? NULL
               : message("\"%.40s\" is not " METRIC_RULE, name);
}

/* Returns the first word of the expression 'text'. */
static char *
first_word(const char *text)
{
    size_t n = 0;

    while (*text && !isalnum((unsigned char) *text)) {
        text++;
    }
    while (isalnum((unsigned char) text[n])
           || (text[n] && strchr("._-/", text[n]))) {
        n++;
    }
    return message("%.*s", (int) n, text);
}

/* Sets defaults. */
static void
complete(struct log_spec *s)
{
    char **iteration = &s->keys[LOG_ITERATION], **name = &s->keys[LOG_NAME];
    const char *metric = s->keys[LOG_METRIC], *folder = "/metrics/";

    if (!*iteration && (s->format == LOG_JSON_LINES || s->format == LOG_CSV)) {
        *iteration = duplicate("iteration");
    }
    if (!*name && metric) {
        *name =
            s->format == LOG_REGEX ? first_word(metric) : duplicate(metric);
    } else if (!*name && s->format == LOG_MLFLOW) {
        const char *at = strstr(s->path, folder);
        const char *slash = strrchr(s->path, '/');

        *name = duplicate(at ? at + strlen(folder) : slash ? slash + 1 : "");
    }
    if (*name && !name_is_valid_metric(*name)) {
        free(*name);
        *name = duplicate("metric");
    }
}

/* Checks member 'i'.  Returns NULL or what is wrong with it. */
static char *
check_member(const struct log_spec *s, enum log_key i)
{
    const char *value = s->keys[i];

    if (!value) {
        return s->format == LOG_REGEX && i == LOG_ITERATION
                   ? message("missing, format \"regex\" needs it")
                   : NULL;
    }
    if (keys[i].idle & 1u << s->format) {
        return message("not allowed with format \"%s\"",
                       log_format_names[s->format]);
    }
    return i == LOG_NAME            ? check_name(value)
           : s->format == LOG_REGEX ? check_regex(value)
                                    : check_key(value);
}

/* Format of the command line. */

/* Returns the format at the beginning of 'text', or -1. */
static int
find_format(const char *text)
{
    for (int i = 0; log_format_names[i]; i++) {
        size_t n = strlen(log_format_names[i]);

        if (!strncmp(text, log_format_names[i], n) && text[n] == ':') {
            return i;
        }
    }
    return -1;
}

static void
split_keys(const char *text, struct log_spec *s)
{
    while (*text == ',') {
        const char *value = strchr(text, '=') + 1;
        const char *end = find_end(value);

        for (size_t i = 0; i < LOG_N_KEYS; i++) {
            if (!strncmp(text + 1, keys[i].name, value - text - 2)) {
                free(s->keys[i]);
                s->keys[i] = must(strndup(value, end - value));
            }
        }
        text = end;
    }
}

char *
log_spec_parse(const char *name, const char *text, struct log_spec *ret)
{
    int format = find_format(text);
    struct log_spec s = { .path = NULL };
    const char *end, *member;
    char *error;

    if (format < 0) {
        return message(
            "%s: \"%.40s\" begins with no format; expected json-lines:PATH, "
            "csv:PATH, regex:PATH or mlflow:PATH",
            name, text);
    }
    s.format = format;
    text += strlen(log_format_names[format]) + 1;
    end = find_end(text);
    s.path = must(strndup(text, end - text));
    split_keys(end, &s);
    member = "path";
    error = check_path(s.path);
    for (size_t i = 0; i < LOG_N_KEYS && !error; i++) {
        member = keys[i].name;
        error = check_member(&s, i);
    }
    if (error) {
        char *placed = message("%s: %s: %s", name, member, error);

        free(error);
        log_spec_uninit(&s);
        return placed;
    }
    complete(&s);
    *ret = s;
    return NULL;
}

/* Format of the file of rules. */

static void
fail(const struct json_at *at, const char *member, char *error)
{
    if (error) {
        json_fail(at, member, "%s", error);
        free(error);
    }
}

static char *
read_glob(const struct json_at *match, const char *member)
{
    char *glob = match ? json_string_or(match, member, NULL) : NULL;

    if (glob && (!glob[0] || strlen(glob) > MAX_KEY)) {
        json_fail(match, member,
                  "\"%.40s\" is not a pattern; expected 1 to %d bytes", glob,
                  MAX_KEY);
    }
    return glob ? glob : duplicate("*");
}

static void
read_rule(const struct json_check *jc, const struct json_at *at,
          struct log_rule *rule)
{
    size_t n_errors = json_n_errors(jc);
    const struct json_at *match = json_object_or_null(at, "match");
    struct log_spec *s = &rule->spec;

    free(json_string_or(at, "description", NULL));
    rule->cojob = read_glob(match, "cojob");
    rule->job = read_glob(match, "job");
    s->format = json_enum(at, "format", log_format_names);
    s->path = json_string(at, "path");
    for (size_t i = 0; i < LOG_N_KEYS; i++) {
        s->keys[i] = json_string_or(at, keys[i].name, NULL);
    }
    if (json_n_errors(jc) > n_errors) {
        return;
    }
    fail(at, "path", check_path(s->path));
    for (size_t i = 0; i < LOG_N_KEYS; i++) {
        fail(at, keys[i].name, check_member(s, i));
    }
    complete(s);
}

char *
log_rules_parse(const char *name, const char *text, struct log_rules **rulesp)
{
    struct json_check *jc = json_check_open(name, text);
    const struct json_at *top = json_check_top(jc);
    const struct json_at *array;
    struct log_rules *r = allocate(1, sizeof *r);
    char *error;

    *rulesp = NULL;
    json_ignore(top, "$schema");
    free(json_string_or(top, "description", NULL));
    array = json_array(top, "readers", 0, MAX_RULES);
    r->n = json_ok(jc) ? json_n(array) : 0;
    r->rules = allocate(r->n, sizeof *r->rules);
    for (size_t i = 0; i < r->n; i++) {
        read_rule(jc, json_element_object(array, i), &r->rules[i]);
    }
    error = json_check_close_all(jc);
    if (error) {
        log_rules_destroy(r);
    } else {
        *rulesp = r;
    }
    return error;
}

char *
log_spec_path(const struct log_spec *s, const char *job)
{
    int n_cojob = strcspn(job, "/");
    char *path = NULL;
    size_t size;
    FILE *stream = must(open_memstream(&path, &size));

    for (const char *p = s->path; *p; p++) {
        if (*p != '%') {
            putc(*p, stream);
        } else if (*++p == '%') {
            putc('%', stream);
        } else if (*p == 'c') {
            fprintf(stream, "%.*s", n_cojob, job);
        } else {
            fputs(job + n_cojob + 1, stream);
        }
    }
    if (fclose(stream)) {
        abort();
    }
    return path;
}

char *
log_spec_to_text(const struct log_spec *s)
{
    char *text = NULL;
    size_t size;
    FILE *stream = must(open_memstream(&text, &size));

    fprintf(stream, "%s:%s", log_format_names[s->format], s->path);
    for (size_t i = 0; i < LOG_N_KEYS; i++) {
        const char *value = s->keys[i];

        if (value) {
            fprintf(stream, ",%s=%s", keys[i].name, value);
        }
    }
    if (fclose(stream)) {
        abort();
    }
    return text;
}

size_t
log_spec_path_length(const char *text)
{
    return find_end(text) - text;
}
