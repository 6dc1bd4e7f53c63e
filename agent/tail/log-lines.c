/* SPDX-License-Identifier: Apache-2.0 */

/* Formats of lines: JSON, CSV, regular expressions, MLflow's file store. */

#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agent/tail/log-decoder.h"
#include "util.h"
#include "wire/log-expression.h"
#include "wire/progress-json.h"

/* Longer lines are not matched with regular expressions: the time may grow
 * with a power of the length. */
#define MAX_MATCH 4096

/* JSON. */

/* Returns member 'key' of 'top', or NULL; "a/b" may be member "b" of member
 * "a". */
static const cJSON *
find_member(const cJSON *top, const char *key)
{
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(top, key);
    const char *slash = strchr(key, '/');

    if (!at && slash) {
        char *first = xmemdup0(key, slash - key);

        at = cJSON_GetObjectItemCaseSensitive(top, first);
        at = at ? find_member(at, slash + 1) : NULL;
        free(first);
    }
    return at;
}

/* Reads member 'key' of 'top', a number or a text with one; NAN for another
 * value.  Returns false without one. */
static bool
get_number(const cJSON *top, const char *key, double *valuep)
{
    const cJSON *at = key ? find_member(top, key) : NULL;

    *valuep = cJSON_IsNumber(at) ? at->valuedouble : NAN;
    if (cJSON_IsString(at)) {
        log_number(at->valuestring, valuep);
    }
    return at;
}

/* Objects without these keys are ignored: other loggers may write to the same
 * file. */
static bool
json_line(struct log_decoder *d, char *line)
{
    cJSON *top = progress_json_parse(line, strlen(line));
    bool good = cJSON_IsObject(top);
    double value;

    for (enum log_key key = 0; good && key < LOG_N_NUMBERS; key++) {
        if (get_number(top, d->spec->keys[key], &value)) {
            good = log_report(d, key, value) || key != LOG_ITERATION;
        }
    }
    cJSON_Delete(top);
    return good;
}

const struct log_format_class log_json_lines = {
    .size = sizeof(struct log_decoder), .line = json_line
};

/* CSV. */

struct csv {
    struct log_decoder up;
    int columns[LOG_N_NUMBERS]; /* Of the keys, -1 if missing. */
};

static struct csv *
csv_cast(struct log_decoder *d)
{
    return CONTAINER_OF(d, struct csv, up);
}

static void
csv_init(struct log_decoder *d)
{
    struct csv *csv = csv_cast(d);

    memset(csv->columns, -1, sizeof csv->columns);
}

/* Terminates the field at '*linep', without its quotation marks, and moves
 * '*linep' behind it, or sets it to NULL after the last field. */
static char *
csv_field(char **linep)
{
    char *field = *linep;
    char *to = field;
    char *p = field;
    bool quoted = *p == '"';

    for (p += quoted; *p && (quoted || *p != ','); p++) {
        if (quoted && *p == '"') {
            if (p[1] != '"') {
                quoted = false;
                continue;
            }
            p++;
        }
        *to++ = *p;
    }
    *linep = *p ? p + 1 : NULL;
    *to = '\0';
    return field;
}

/* Removes blanks around 'field'. */
static char *
trim(char *field)
{
    size_t n;

    field += strspn(field, " \t");
    for (n = strlen(field); n && strchr(" \t", field[n - 1]); n--) {
        field[n - 1] = '\0';
    }
    return field;
}

/* Loggers leave fields empty that have no value in a line. */
static bool
csv_line(struct log_decoder *d, char *line)
{
    struct csv *csv = csv_cast(d);
    double numbers[LOG_N_NUMBERS] = { NAN, NAN, NAN };
    int columns[LOG_N_NUMBERS] = { -1, -1, -1 };
    bool empty[LOG_N_NUMBERS] = { true, true, true };

    for (int i = 0; line; i++) {
        const char *field = trim(csv_field(&line));

        for (enum log_key key = 0; key < LOG_N_NUMBERS; key++) {
            if (nullable_string_is_equal(d->spec->keys[key], field)) {
                columns[key] = i;
            }
            if (i == csv->columns[key]) {
                log_number(field, &numbers[key]);
                empty[key] = !*field;
            }
        }
    }
    if (d->first
        || (columns[LOG_ITERATION] >= 0
            && (columns[LOG_METRIC] >= 0 || !d->spec->keys[LOG_METRIC]))) {
        memcpy(csv->columns, columns, sizeof columns);
        return columns[LOG_ITERATION] >= 0;
    }
    if (!log_report(d, LOG_ITERATION, numbers[LOG_ITERATION])) {
        return false;
    }
    log_report(d, LOG_STAGE, numbers[LOG_STAGE]);
    if (!empty[LOG_METRIC]) {
        log_report(d, LOG_METRIC, numbers[LOG_METRIC]);
    }
    return true;
}

const struct log_format_class log_csv = { .size = sizeof(struct csv),
                                          .init = csv_init,
                                          .line = csv_line };

/* Regular expressions. */

struct regex {
    struct log_decoder up;

    struct log_expression *keys[LOG_N_NUMBERS]; /* NULL if the specification
                                                 * does not have it. */
};

static struct regex *
regex_cast(struct log_decoder *d)
{
    return CONTAINER_OF(d, struct regex, up);
}

/* Expressions are valid: they were compiled when the specification was
 * read. */
static void
regex_init(struct log_decoder *d)
{
    struct regex *r = regex_cast(d);

    for (enum log_key key = 0; key < LOG_N_NUMBERS; key++) {
        const char *text = d->spec->keys[key];

        ovs_assert(!text || !log_expression_compile(text, &r->keys[key]));
    }
}

static void
regex_uninit(struct log_decoder *d)
{
    for (enum log_key key = 0; key < LOG_N_NUMBERS; key++) {
        log_expression_destroy(regex_cast(d)->keys[key]);
    }
}

static bool
find_number(struct log_decoder *d, const struct log_expression *e, char *line,
            double *valuep)
{
    size_t begin, end;
    char c;

    if (!e || d->exhausted) {
        return false;
    }
    switch (log_expression_find(e, line, strlen(line), &begin, &end)) {
    case LOG_NOT_FOUND:
        return false;
    case LOG_EXHAUSTED:
        d->exhausted = true;
        return false;
    case LOG_FOUND:
        break;
    }
    /* A digit may follow the group. */
    c = line[end];
    line[end] = '\0';
    *valuep = NAN;
    log_number(&line[begin], valuep);
    line[end] = c;
    return true;
}

static bool
regex_line(struct log_decoder *d, char *line)
{
    struct regex *r = regex_cast(d);
    bool counts = false; /* The line has an iteration. */
    double value;

    if (d->exhausted || strlen(line) > MAX_MATCH) {
        return false;
    }
    for (enum log_key key = 0; key < LOG_N_NUMBERS; key++) {
        if (find_number(d, r->keys[key], line, &value)
            && (counts || !isnan(value))) {
            counts |= log_report(d, key, value);
        }
    }
    return true;
}

const struct log_format_class log_regex = {
    .size = sizeof(struct regex), .init = regex_init, .uninit = regex_uninit,
    .line = regex_line
};

/* MLflow's file store: "TIMESTAMP VALUE STEP". */

static bool
mlflow_line(struct log_decoder *d, char *line)
{
    char *save = NULL;
    const char *time = strtok_r(line, " ", &save);
    const char *value_text = strtok_r(NULL, " ", &save);
    const char *step_text = strtok_r(NULL, " ", &save);
    double value, step;

    if (!time || !step_text || !log_number(step_text, &step)
        || !log_report(d, LOG_ITERATION, step)) {
        return false;
    }
    value = NAN;
    log_number(value_text, &value);
    log_report(d, LOG_METRIC, value);
    return true;
}

const struct log_format_class log_mlflow = {
    .size = sizeof(struct log_decoder), .line = mlflow_line
};
