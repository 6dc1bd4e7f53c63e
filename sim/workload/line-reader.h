/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINE_READER_H
#define LINE_READER_H 1

/* Reads lines of numbers and words, and says which one is wrong.
 *
 *
 * Usage
 * =====
 *
 * The first error sticks: what is read after it is a harmless default.
 *
 *    struct line_reader lr = { .name = "trace.txt" };
 *    while (line_reader_next(&lr, stream)) {
 *        x = line_reader_number(&lr, word, "size", 0, 10, false);
 *    }
 *    ...lr.error...
 *    line_reader_uninit(&lr);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Words point into the line and hold until the next one.  The error is the
 * caller's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct line_reader {
    const char *name;           /* What messages begin with. */
    int line;                   /* Number of the line, from 1. */
    char *text;                 /* Of the line. */
    size_t allocated;
    char *at;                   /* What comes next in it, NULL after the last
                                 * field. */
    char *error;                /* "NAME:LINE: what was found..." or NULL. */
};

/* Goes on to the next line; false if there is none. */
bool line_reader_next(struct line_reader *, FILE *);
void line_reader_uninit(struct line_reader *);

void line_reader_fail(struct line_reader *, const char *format, ...)
    __attribute__((__format__(printf, 2, 3)));

/* Makes 'word' fit for a message. */
const char *line_reader_shown(char *word);

/* The next word of the line, ended with a NUL, or NULL and an error that
 * 'what' is missing. */
char *line_reader_word(struct line_reader *, const char *what);

/* The next of the fields that 'separator' divides, maybe empty. */
char *line_reader_field(struct line_reader *, char separator,
                        const char *what);

/* 'word' as a number from 'min' to 'max', or an error about 'what' and 'min'.
 * 'word' may be null, which is 'min'. */
double line_reader_number(struct line_reader *, char *word, const char *what,
                          double min, double max, bool integer);

/* An error if anything stands after 'what', the last of the line. */
void line_reader_end(struct line_reader *, const char *what);

#endif /* sim/workload/line-reader.h */
