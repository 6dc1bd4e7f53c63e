/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/tail/log-decoder.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"
#include "wire/log-expression.h"

static void
forget(struct log_decoder *d)
{
    d->last = (struct progress) { .iteration = -1, .stage = -1 };
    if (d->spec->keys[LOG_NAME]) {
        ovs_strlcpy(d->last.metric, d->spec->keys[LOG_NAME],
                    sizeof d->last.metric);
    }
    d->told = d->exhausted = false;
}

void
log_decoder_destroy(struct log_decoder *d)
{
    if (d) {
        if (d->class->uninit) {
            d->class->uninit(d);
        }
        ds_destroy(&d->data);
        free(d);
    }
}

bool
log_decoder_take(struct log_decoder *d, struct progress *progress)
{
    if (!d->told) {
        return false;
    }
    *progress = d->last;
    d->told = false;
    return true;
}

/* Results of the formats. */

bool
log_number(const char *text, double *valuep)
{
    char *end;
    double value;

    while (*text == ' ' || *text == '\t' || *text == '"') {
        text++;
    }
    /* "nan", "inf" and hexadecimal numbers are not accepted. */
    if (!isdigit((unsigned char) text[strspn(text, "+-.")])
        || text[strspn(text, "+-0")] == 'x') {
        return false;
    }
    value = strtod(text, &end);
    if (end == text || (*end && !strchr(" \t\r\",", *end))
        || !isfinite(value)) {
        return false;
    }
    *valuep = value;
    return true;
}

bool
log_report(struct log_decoder *d, enum log_key key, double value)
{
    if (!isfinite(value)
        || (key != LOG_METRIC
            && (value < 0 || value > PROGRESS_MAX_INTEGER
                || value != floor(value)))) {
        return false;
    }
    if (key == LOG_METRIC) {
        d->last.value = value;
        d->last.has_value = true;
    } else if (key == LOG_STAGE) {
        d->last.stage = value;
    } else {
        d->last.iteration = value;
    }
    d->told = d->last.iteration >= 0;
    return true;
}

/* Lines. */

static void
take_line(struct log_decoder *d, char *line, size_t n)
{
    n -= n && line[n - 1] == '\r';
    line[n] = '\0';
    if (n) {
        d->records++;
        d->malformed += memchr(line, '\0', n) || !d->class->line(d, line);
    }
    d->first = false;
}

/* Adds to the incomplete line unless it would be too long. */
static void
keep(struct log_decoder *d, const char *data, size_t size)
{
    if (d->skipping) {
        return;
    }
    if (d->data.length + size > LOG_MAX_LINE) {
        d->skipping = true;
        d->records++;
        d->malformed++;
        d->first = false;
        ds_clear(&d->data);
        return;
    }
    ds_put_buffer(&d->data, data, size);
}

static void
feed_lines(struct log_decoder *d, const char *data, size_t size)
{
    const char *newline;

    while ((newline = size ? memchr(data, '\n', size) : NULL)) {
        keep(d, data, newline - data);
        if (!d->skipping) {
            take_line(d, ds_cstr(&d->data), d->data.length);
        }
        d->skipping = false;
        ds_clear(&d->data);
        size -= newline + 1 - data;
        data = newline + 1;
    }
    keep(d, data, size);
}

void
log_decoder_restart(struct log_decoder *d, const char *head, size_t n_head,
                    bool middle)
{
    const char *newline = n_head ? memchr(head, '\n', n_head) : NULL;

    forget(d);
    ds_clear(&d->data);
    d->skipping = false;
    d->first = true;
    if (d->class->restart) {
        d->class->restart(d, middle);
    } else if (middle) {
        if (d->spec->format == LOG_CSV && newline) {
            feed_lines(d, head, newline + 1 - head);
        }
        d->first = false;
        d->skipping = true;
    }
}

bool
log_decoder_feed(struct log_decoder *d, const char *data, size_t size)
{
    if (d->class->feed) {
        return d->class->feed(d, data, size);
    }
    feed_lines(d, data, size);
    return true;
}

/* Formats of lines: JSON, CSV, regular expressions, MLflow's file store. */

/* Longer lines are not matched with regular expressions: the time may grow
 * with a power of the length. */
#define MAX_MATCH 4096

/* JSON. */

/* Reads member 'key' of 'top', a number or a string with one. */
static bool
get_number(const cJSON *top, const char *key, double *valuep)
{
    const cJSON *at = key ? cJSON_GetObjectItemCaseSensitive(top, key) : NULL;

    if (cJSON_IsString(at)) {
        return log_number(at->valuestring, valuep);
    }
    *valuep = cJSON_IsNumber(at) ? at->valuedouble : NAN;
    return isfinite(*valuep);
}

/* Objects without these keys are ignored: other loggers may write to the same
 * file. */
static bool
json_line(struct log_decoder *d, char *line)
{
    cJSON *top = cJSON_Parse(line);
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

static const struct log_format_class log_json_lines = {
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

static bool
csv_head(struct log_decoder *d, char *line)
{
    struct csv *csv = csv_cast(d);

    csv_init(d);
    for (int i = 0; line; i++) {
        const char *field = csv_field(&line);

        for (enum log_key key = 0; key < LOG_N_NUMBERS; key++) {
            if (nullable_string_is_equal(d->spec->keys[key], field)) {
                csv->columns[key] = i;
            }
        }
    }
    return csv->columns[LOG_ITERATION] >= 0;
}

/* Loggers leave fields empty that have no value in a line. */
static bool
csv_line(struct log_decoder *d, char *line)
{
    struct csv *csv = csv_cast(d);
    double numbers[LOG_N_NUMBERS] = { NAN, NAN, NAN };

    if (d->first) {
        return csv_head(d, line);
    }
    for (int i = 0; line; i++) {
        const char *field = csv_field(&line);

        for (enum log_key key = 0; key < LOG_N_NUMBERS; key++) {
            if (i == csv->columns[key]) {
                log_number(field, &numbers[key]);
            }
        }
    }
    if (!log_report(d, LOG_ITERATION, numbers[LOG_ITERATION])) {
        return false;
    }
    log_report(d, LOG_STAGE, numbers[LOG_STAGE]);
    log_report(d, LOG_METRIC, numbers[LOG_METRIC]);
    return true;
}

static const struct log_format_class log_csv = { .size = sizeof(struct csv),
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
    bool found;
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
    found = log_number(&line[begin], valuep);
    line[end] = c;
    return found;
}

static bool
regex_line(struct log_decoder *d, char *line)
{
    struct regex *r = regex_cast(d);
    double value;

    if (d->exhausted || strlen(line) > MAX_MATCH) {
        return false;
    }
    for (enum log_key key = 0; key < LOG_N_NUMBERS; key++) {
        if (find_number(d, r->keys[key], line, &value)) {
            log_report(d, key, value);
        }
    }
    return true;
}

static const struct log_format_class log_regex = { .size =
                                                       sizeof(struct regex),
                                                   .init = regex_init,
                                                   .uninit = regex_uninit,
                                                   .line = regex_line };

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
    if (log_number(value_text, &value)) {
        log_report(d, LOG_METRIC, value);
    }
    return true;
}

static const struct log_format_class log_mlflow = {
    .size = sizeof(struct log_decoder), .line = mlflow_line
};

static const struct log_format_class *const classes[] = {
    [LOG_JSON_LINES] = &log_json_lines, [LOG_CSV] = &log_csv,
    [LOG_REGEX] = &log_regex,           [LOG_TFEVENTS] = &log_tfevents,
    [LOG_MLFLOW] = &log_mlflow,
};

struct log_decoder *
log_decoder_create(const struct log_spec *spec)
{
    const struct log_format_class *class = classes[spec->format];
    struct log_decoder *d = xzalloc(class->size);

    d->class = class;
    d->spec = spec;
    d->first = true;
    forget(d);
    if (class->init) {
        class->init(d);
    }
    return d;
}
