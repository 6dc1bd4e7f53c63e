/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H 1

/* What a format of logs is made of; for log-decoder.c and the formats alone.
 *
 * A format of lines has 'line', and 'head' if it must see the file's first
 * line; another has 'feed' and 'restart'.  What they find they say by the
 * functions below. */

#include <stdbool.h>
#include <stddef.h>

#include "agent/progress/log-decoder.h"
#include "wire/log-spec.h"

struct log_decoder {
    const struct log_format_class *class;
    const struct log_spec *spec;
    struct progress last;       /* 'iteration' is -1 before the first. */
    bool told;                  /* 'last' is newer than the last take. */
    struct log_counts counts;

    /* Of a line that is not complete. */
    char *line;
    size_t n, allocated;
    bool skipping;              /* The rest of the line is not wanted. */
    bool first;                 /* The next line is the file's first. */
};

struct log_format_class {
    struct log_decoder *(*create)(const struct log_spec *);
    void (*destroy)(struct log_decoder *);

    /* 'line' has no newline, no null byte inside, and one behind it.  Returns
     * false if it cannot be read. */
    bool (*line)(struct log_decoder *, char *line);

    /* The same of the file's first line, NULL if that is like others. */
    bool (*head)(struct log_decoder *, char *line);

    void (*restart)(struct log_decoder *, bool middle);
    bool (*feed)(struct log_decoder *, const char *data, size_t size);
};

extern const struct log_format_class log_json_lines;
extern const struct log_format_class log_csv;
extern const struct log_format_class log_regex;
extern const struct log_format_class log_tfevents;
extern const struct log_format_class log_mlflow;

/* Reads a number that ends where 'text' or what it is part of ends: before
 * white space, a comma or a quotation mark. */
bool log_number(const char *text, double *valuep);

/* What was found.  Each ignores what cannot be one, and returns false then. */
bool log_tell_iteration(struct log_decoder *, double);
bool log_tell_stage(struct log_decoder *, double);
bool log_tell_value(struct log_decoder *, double);

#endif /* agent/progress/log-format.h */
