/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_DECODER_H
#define LOG_DECODER_H 1

/* Decodes the bytes of a log into progress.
 *
 * Four formats have one result, as of a progress datagram, and one
 * interface, so that reading files is independent of formats and each format
 * can be tested and fuzzed without files.
 *
 * A file may contain anything: endless lines, invalid numbers.  A decoder
 * stores at most LOG_MAX_LINE bytes.  It ignores lines without the requested
 * values, and numbers that are not finite or no counts.  A line ends with a
 * line feed or, as progress bars do, with a carriage return; the colours of
 * terminals, a byte order mark, and blanks around names of columns do not
 * count.  A number may have commas between groups of three digits.  A line of
 * a CSV that has the names of the keys is a header, also in the middle, where
 * a restarted job begins to append.
 *
 * An expression that reaches a limit on one line could do so on each further
 * one.  Nothing is decoded after it, and the owner ends the reader.
 *
 * Only the last value counts: a new one replaces one that has not been read.
 * An iteration without a value keeps the previous value; with one that is no
 * finite number, as when a loss diverges, it has none.
 *
 *    d = log_decoder_create(spec);
 *    log_decoder_restart(d, head, n_head, middle);
 *    log_decoder_feed(d, data, size);
 *    if (log_decoder_take(d, &progress)) {
 *        ...
 *    }
 *
 * The specification must outlive the decoder.  Not thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openvswitch/dynamic-string.h"
#include "wire/log-spec.h"
#include "wire/progress-datagram.h"

struct log_format_class;

#define LOG_MAX_LINE 65536 /* Longer lines are ignored. */

/* Read-only outside the formats. */
struct log_decoder {
    const struct log_format_class *class;
    const struct log_spec *spec;
    struct progress last; /* 'iteration' is -1 before the first one. */
    bool unread;          /* 'last' has not been read by
                           * log_decoder_take(). */
    uint64_t records;     /* Complete lines. */
    uint64_t malformed;   /* Of these, what could not be decoded. */
    uint64_t no_value;    /* Of these, with a metric that is no number. */
    bool exhausted;       /* An expression has reached a limit; the
                           * log is ignored until a restart. */

    struct ds data; /* Incomplete line. */
    bool skipping;  /* Ignores the rest of the line. */
    bool first;     /* The next line is the first one of the
                     * file. */
};

struct log_decoder *log_decoder_create(const struct log_spec *);
void log_decoder_destroy(struct log_decoder *);

/* The next data are from the beginning of a file or, if 'middle', from
 * somewhere inside.  'head' is the beginning of the file in either case, as
 * far as it has been read. */
void log_decoder_restart(struct log_decoder *, const char *head, size_t n_head,
                         bool middle);

void log_decoder_feed(struct log_decoder *, const char *data, size_t size);

/* Returns false if there is no new progress since the last call. */
bool log_decoder_take(struct log_decoder *, struct progress *);

/* Formats.
 *
 * A format reports values by log_report(). */

struct log_format_class {
    size_t size; /* Of the format's struct, which begins with
                  * struct log_decoder. */
    void (*init)(struct log_decoder *);   /* May be NULL. */
    void (*uninit)(struct log_decoder *); /* May be NULL. */

    /* Decodes a line, without its newline, terminated by a null byte.  Returns
     * false if it cannot be decoded. */
    bool (*line)(struct log_decoder *, char *line);
};

extern const struct log_format_class log_json_lines;
extern const struct log_format_class log_csv;
extern const struct log_format_class log_regex;
extern const struct log_format_class log_mlflow;

/* Parses a number that is followed by the end, white space, a comma or a
 * quotation mark. */
bool log_number(const char *text, double *valuep);

/* Reports a number.  Ignores what is no count, and returns false. */
bool log_report(struct log_decoder *, enum log_key, double);

#endif /* agent/tail/log-decoder.h */
