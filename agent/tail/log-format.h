/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H 1

/* Interface between log-decoder.c and the formats of logs.
 *
 * A format of lines has 'line', and 'head' if it needs the first line of
 * the file; another format has 'feed' and 'restart'.  A format reports
 * values by the functions below. */

#include <stdbool.h>
#include <stddef.h>

#include "agent/tail/log-decoder.h"
#include "openvswitch/dynamic-string.h"
#include "wire/log-spec.h"

struct log_decoder {
    const struct log_format_class *class;
    const struct log_spec *spec;
    struct progress last;       /* 'iteration' is -1 before the first one. */
    bool told;                  /* 'last' has not been read by
                                 * log_decoder_take(). */
    struct log_counts counts;
    bool exhausted;             /* An expression has reached a limit; the
                                 * log is ignored until a restart. */

    struct ds data;             /* Incomplete line or record. */
    bool skipping;              /* Ignores the rest of the line. */
    bool first;                 /* The next line is the first one of the
                                 * file. */
};

struct log_format_class {
    size_t size;                /* Of the format's struct, which begins with
                                 * struct log_decoder. */
    void (*init)(struct log_decoder *);         /* May be NULL. */
    void (*uninit)(struct log_decoder *);       /* May be NULL. */

    /* Decodes a line, without its newline, terminated by a null byte.  Returns
     * false if it cannot be decoded. */
    bool (*line)(struct log_decoder *, char *line);

    /* Decodes the first line of the file.  NULL if that is like the others. */
    bool (*head)(struct log_decoder *, char *line);

    void (*restart)(struct log_decoder *, bool middle);
    bool (*feed)(struct log_decoder *, const char *data, size_t size);
};

extern const struct log_format_class log_json_lines;
extern const struct log_format_class log_csv;
extern const struct log_format_class log_regex;
extern const struct log_format_class log_tfevents;
extern const struct log_format_class log_mlflow;

/* Parses a number that is followed by the end, white space, a comma or a
 * quotation mark. */
bool log_number(const char *text, double *valuep);

/* Report a value.  Each function ignores an invalid value and returns
 * false. */
bool log_report_iteration(struct log_decoder *, double);
bool log_report_stage(struct log_decoder *, double);
bool log_report_value(struct log_decoder *, double);

#endif /* agent/tail/log-format.h */
