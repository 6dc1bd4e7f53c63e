/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_DECODER_H
#define LOG_DECODER_H 1

/* The bytes of a log, in pieces as they come, become progress.
 *
 *
 * Motivation
 * ==========
 *
 * Five formats have one outcome, what a datagram would have said, and one
 * interface, so that whoever reads files knows nothing of formats, and each
 * format can be tested and fuzzed without files.
 *
 * A file may be anything: its lines may have no end, its numbers may be none.
 * A decoder keeps at most LOG_MAX_LINE or LOG_MAX_EVENT bytes.  Lines that do
 * not say what was asked for are passed over, and what is no number, is not
 * finite, or no count, is not taken.  Only an event file has check sums: one
 * that is wrong means that nothing after it can be believed.
 *
 * Only the last value counts, so the values of one turn replace each other.
 * An iteration without a value keeps the value before it.
 *
 *
 * Usage
 * =====
 *
 *    d = log_decoder_create(spec);
 *    log_decoder_restart(d, head, n_head, middle);
 *    good = log_decoder_feed(d, data, size);
 *    if (log_decoder_take(d, &progress)) {
 *        ...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The specification must outlive the decoder.  Not thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/progress-datagram.h"

struct log_decoder;
struct log_spec;

#define LOG_MAX_LINE 65536      /* Longer lines are passed over. */
#define LOG_MAX_EVENT (1 << 20) /* So are longer records. */

struct log_counts {
    uint64_t records;           /* Lines or records that were complete. */
    uint64_t malformed;         /* Of them, what could not be read. */
};

struct log_decoder *log_decoder_create(const struct log_spec *);
void log_decoder_destroy(struct log_decoder *);

/* What comes next is the beginning of a file or, if 'middle', begins somewhere
 * inside of it.  'head' is the file's beginning in either case, as much as is
 * at hand. */
void log_decoder_restart(struct log_decoder *, const char *head, size_t n_head,
                         bool middle);

/* Returns false if the file is not what it should be, for good. */
bool log_decoder_feed(struct log_decoder *, const char *data, size_t size);

/* Returns false if there is nothing new since the last call. */
bool log_decoder_take(struct log_decoder *, struct progress *);

const struct log_counts *log_decoder_counts(const struct log_decoder *);

#endif /* agent/progress/log-decoder.h */
