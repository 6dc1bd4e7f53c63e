/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_DECODER_H
#define LOG_DECODER_H 1

/* Decodes the bytes of a log into progress.
 *
 * Five formats have one result, the content of a progress datagram, and one
 * interface, so that reading files is independent of formats and each format
 * can be tested and fuzzed without files.
 *
 * A file may contain anything: endless lines, invalid numbers.  A decoder
 * stores at most LOG_MAX_LINE or LOG_MAX_EVENT bytes.  It ignores lines
 * without the requested values, and numbers that are not finite or no counts.
 * Only event files have checksums: after a wrong one, the rest of the file is
 * ignored.
 *
 * An expression that reaches a limit on one line could do so on each further
 * one.  Nothing is decoded after it, and the owner ends the reader.
 *
 * Only the last value counts: a new one replaces one that has not been read.
 * An iteration without a value keeps the previous value.
 *
 *    d = log_decoder_create(spec);
 *    log_decoder_restart(d, head, n_head, middle);
 *    good = log_decoder_feed(d, data, size);
 *    if (log_decoder_take(d, &progress)) {
 *        ...
 *    }
 *
 * The content of a log is not trusted.  Decoders see bytes and no files (see
 * log-job.c for these), and all sizes are bounded.
 *
 * The specification must outlive the decoder.  Not thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/progress-datagram.h"

struct log_decoder;
struct log_spec;

#define LOG_MAX_LINE 65536      /* Longer lines are ignored. */
#define LOG_MAX_EVENT (1 << 20) /* Longer records are ignored. */

struct log_counts {
    uint64_t records;           /* Complete lines or records. */
    uint64_t malformed;         /* Lines or records that could not be
                                 * decoded. */
};

struct log_decoder *log_decoder_create(const struct log_spec *);
void log_decoder_destroy(struct log_decoder *);

/* The next data are from the beginning of a file or, if 'middle', from
 * somewhere inside.  'head' is the beginning of the file in either case, as
 * far as it has been read. */
void log_decoder_restart(struct log_decoder *, const char *head, size_t n_head,
                         bool middle);

/* Returns false if the file has another format; then it must not be read
 * further. */
bool log_decoder_feed(struct log_decoder *, const char *data, size_t size);

/* Returns false if there is no new progress since the last call. */
bool log_decoder_take(struct log_decoder *, struct progress *);

/* Returns true after an expression has reached a limit, until a restart. */
bool log_decoder_is_exhausted(const struct log_decoder *);

const struct log_counts *log_decoder_counts(const struct log_decoder *);

#endif /* agent/tail/log-decoder.h */
