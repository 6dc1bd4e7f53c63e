/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINE_READER_H
#define LINE_READER_H 1

/* Reads lines of numbers and words, with precise errors.
 *
 * Blank lines count in messages, and are skipped, as is a byte order mark
 * before the first one.  Numbers are decimal, maybe with an exponent.
 *
 * After the first error every function returns a valid default.
 *
 *    struct line_reader lr = { .name = "trace.txt" };
 *    while (line_reader_next(&lr, stream)) {
 *        x = line_reader_number(&lr, word, "size", 0, 10, false);
 *    }
 *    ...lr.error...
 *    line_reader_uninit(&lr);
 *
 * Words point into the line and are valid until the next one.  The error
 * belongs to the caller. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct line_reader {
    const char *name; /* Prefix of messages. */
    int line;         /* Number of the line, from 1. */
    char *text;       /* The line. */
    size_t allocated;
    char *at;    /* Next field, NULL after the last one. */
    char *error; /* "NAME:LINE: what was found..." or NULL. */
};

/* Characters of numbers. */
#define LINE_READER_DECIMAL "0123456789.eE+-"

/* Reads the next line that is not blank.  Returns false at the end, which may
 * be an error. */
bool line_reader_next(struct line_reader *, FILE *);
void line_reader_uninit(struct line_reader *);

void line_reader_fail(struct line_reader *, const char *format, ...)
    __attribute__((__format__(printf, 2, 3)));

/* Makes 'word' fit for a message. */
const char *line_reader_shown(char *word);

/* The next word of the line, ended with a NUL, or NULL and an error that
 * 'what' is missing. */
char *line_reader_word(struct line_reader *, const char *what);

/* The next of the fields that 'separator' divides, maybe empty, without blanks
 * around it and, between commas, without quotes. */
char *line_reader_field(struct line_reader *, char separator,
                        const char *what);

/* 'word' as a number from 'min' to 'max', or an error about 'what' and 'min'.
 * 'word' may be null, which is 'min'. */
double line_reader_number(struct line_reader *, char *word, const char *what,
                          double min, double max, bool integer);

/* An error if anything stands after 'what', the last of the line. */
void line_reader_end(struct line_reader *, const char *what);

#endif /* sim/fabric/line-reader.h */
