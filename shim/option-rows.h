/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_OPTION_ROWS_H
#define SHIM_OPTION_ROWS_H 1

/* Each option of stagecoach-shim: its name, its values, its help.
 *
 *
 * Motivation
 * ==========
 *
 * What there is to know of one option is a row of a table, and whoever adds
 * one adds a row: the parser, the check for options that must be there and the
 * usage come from it.  options.c has these, and whether options that are good
 * alone go together.
 *
 *
 * Usage
 * =====
 *
 *    for (row = option_rows; row->name; row++) {
 *        ...
 *    }
 *    error = row->parse(row, text, options);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Constant data. */

#include <stddef.h>

struct options;

#define OPTION_MAX_ROWS 64

enum option_need {
    OPTION_MAY,
    OPTION_MUST,                /* Except in a replay. */
    OPTION_REPLAY_MAY,          /* Only in a replay... */
    OPTION_REPLAY_MUST,         /* ...which must have it. */
};

struct option_row {
    const char *name;
    const char *argument;       /* NULL if it has none. */
    enum option_need need;

    /* Stores the value 'text', NULL without argument.  Returns NULL or a
     * malloc()'d message. */
    char *(*parse)(const struct option_row *, const char *text,
                   struct options *);
    size_t offset;              /* In struct options, where 'parse' is the
                                 * same for several options. */
    long min, max;              /* Of an integer. */
    const char *help;
};

/* Ends with a row without a name. */
extern const struct option_row option_rows[];

/* Returns a message about an option, which the caller must free. */
char *option_message(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif /* shim/option-rows.h */
