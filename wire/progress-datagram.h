/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATAGRAM_H
#define DATAGRAM_H 1

/* What a job says about its progress.
 *
 *
 * Motivation
 * ==========
 *
 * Any process on the host may send anything to the progress socket, so the
 * reading of a datagram is apart from the socket and can be tested, and later
 * fuzzed, without one.
 *
 *
 * Usage
 * =====
 *
 *    char *error = progress_parse(data, size, name, &progress);
 *
 * Members are those of docs/interfaces.md.  Others are passed over, because an
 * older agent must not refuse what a newer job says.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_MAX_BYTES 4096
#define PROGRESS_NAME_SIZE 64   /* "COJOB/JOB" and a null byte. */

struct progress {
    int64_t iteration;          /* Completed, from the beginning of the job. */
    int64_t stage;              /* Rung, -1 if it was not told. */
    int64_t time;               /* ms since the epoch by the job's clock, 0 if
                                 * it was not told. */
    char metric[32];            /* What 'value' is, empty if not told. */
    double value;               /* Finite. */
    bool has_value;
};

char *progress_parse(const char *data, size_t size,
                     char name[PROGRESS_NAME_SIZE], struct progress *);

#endif /* wire/progress-datagram.h */
