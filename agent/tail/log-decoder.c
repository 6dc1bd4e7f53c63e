/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/tail/log-decoder.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text-file.h"
#include "util.h"

#define DIGITS "0123456789"
#define MAX_NUMBER 64 /* Characters of a number with commas. */

static const struct log_format_class *const classes[] = {
    [LOG_JSON_LINES] = &log_json_lines,
    [LOG_CSV] = &log_csv,
    [LOG_REGEX] = &log_regex,
    [LOG_MLFLOW] = &log_mlflow,
};

static void
forget(struct log_decoder *d)
{
    d->last = (struct progress) { .iteration = -1, .stage = -1 };
    if (d->spec->keys[LOG_NAME]) {
        ovs_strlcpy(d->last.metric, d->spec->keys[LOG_NAME],
                    sizeof d->last.metric);
    }
    d->unread = d->exhausted = false;
}

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
    if (!d->unread) {
        return false;
    }
    *progress = d->last;
    d->unread = false;
    return true;
}

/* Results of the formats. */

/* Returns the length of the digits at 'text' if commas separate them in groups
 * of three, as in "1,234,567", otherwise 0. */
static size_t
grouped_length(const char *text)
{
    size_t n = strspn(text, DIGITS), groups = 0;

    if (n > 3) {
        return 0;
    }
    while (n && text[n] == ',' && strspn(text + n + 1, DIGITS) == 3) {
        n += 4;
        groups++;
    }
    return strspn(text + n + (text[n] == ','), DIGITS) || !groups ? 0 : n;
}

bool
log_number(const char *text, double *valuep)
{
    char plain[MAX_NUMBER], *end;
    size_t sign, n_grouped, n = 0;
    double value;

    while (*text == ' ' || *text == '\t' || *text == '"') {
        text++;
    }
    /* "nan", "inf" and hexadecimal numbers are not accepted. */
    if (!isdigit((unsigned char) text[strspn(text, "+-.")])
        || text[strspn(text, "+-0")] == 'x') {
        return false;
    }
    sign = strspn(text, "+-");
    n_grouped = grouped_length(text + sign);
    if (n_grouped) {
        for (size_t i = 0; text[i] && n < sizeof plain - 1; i++) {
            if (text[i] != ',' || i >= sign + n_grouped) {
                plain[n++] = text[i];
            }
        }
        plain[n] = '\0';
        text = plain;
    }
    value = strtod(text, &end);
    if (end == text || (*end && !strchr(" \t\r\",", *end))
        || !isfinite(value)) {
        return false;
    }
    *valuep = value;
    return true;
}

static bool
is_count(double value)
{
    return value >= 0 && value <= PROGRESS_MAX_INTEGER
           && value == floor(value);
}

bool
log_report(struct log_decoder *d, enum log_key key, double value)
{
    if (key != LOG_METRIC && !is_count(value)) {
        return false;
    }
    if (key == LOG_METRIC) {
        d->last.has_value = isfinite(value);
        d->last.value = d->last.has_value ? value : 0;
        d->no_value += !d->last.has_value;
    } else if (key == LOG_STAGE) {
        d->last.stage = value;
    } else {
        d->last.iteration = value;
    }
    d->unread = d->last.iteration >= 0;
    return true;
}

/* Lines. */

/* Removes what sets the colour and the place of text on terminals, escape
 * sequences such as "\033[1;31m", from 'line'.  Returns the new length. */
static size_t
remove_colours(char *line, size_t n)
{
    char *to = line, *end = line + n;

    for (char *p = line; p < end; p++) {
        if (*p == '\033' && p + 1 < end && p[1] == '[') {
            p += 2;
            while (p < end && *p >= ' ' && *p < '@') {
                p++;
            }
        } else {
            *to++ = *p;
        }
    }
    return to - line;
}

static void
take_line(struct log_decoder *d, char *line, size_t n)
{
    if (n && memchr(line, '\033', n)) {
        n = remove_colours(line, n);
    }
    line[n] = '\0';
    if (d->first && n > 2) {
        size_t mark = text_mark_size(line);

        line += mark;
        n -= mark;
    }
    if (n) {
        d->records++;
        d->malformed += memchr(line, '\0', n) || !d->class->line(d, line);
        d->first = false;
    }
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

/* Returns the first line feed or carriage return, or NULL. */
static const char *
find_end(const char *data, size_t size)
{
    for (const char *p = data; p < data + size; p++) {
        if (*p == '\n' || *p == '\r') {
            return p;
        }
    }
    return NULL;
}

void
log_decoder_feed(struct log_decoder *d, const char *data, size_t size)
{
    const char *end;

    while ((end = find_end(data, size))) {
        keep(d, data, end - data);
        if (!d->skipping) {
            take_line(d, ds_cstr(&d->data), d->data.length);
        }
        d->skipping = false;
        ds_clear(&d->data);
        size -= end + 1 - data;
        data = end + 1;
    }
    keep(d, data, size);
}

void
log_decoder_restart(struct log_decoder *d, const char *head, size_t n_head,
                    bool middle)
{
    const char *end = find_end(head, n_head);

    forget(d);
    ds_clear(&d->data);
    d->skipping = false;
    d->first = true;
    if (middle) {
        if (d->spec->format == LOG_CSV && end) {
            log_decoder_feed(d, head, end + 1 - head);
        }
        d->first = false;
        d->skipping = true;
    }
}
