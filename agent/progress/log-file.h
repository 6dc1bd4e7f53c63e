/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_FILE_H
#define LOG_FILE_H 1

/* A growing file, and the position up to which it has been read.
 *
 *    f = log_file_create(fd, &stat, spec);
 *    more = log_file_read(f);
 *    if (log_file_take(f, &progress)) {
 *        ...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Owns 'fd'.  The specification must outlive it.  Not thread-safe. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "agent/progress/log-decoder.h"

#define LOG_TAIL (256 * 1024)   /* Reading begins so many bytes before the
                                 * end. */

/* Read-only outside this module. */
struct log_file {
    int fd;
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
    uint64_t at;                /* Position: bytes before it were read or
                                 * skipped. */
    uint64_t skipped;           /* Skipped bytes. */
    bool bad;                   /* The file has another format or cannot be
                                 * read. */
    bool begun;                 /* The decoder has been started. */
    struct log_decoder *decoder;
};

struct log_file *log_file_create(int fd, const struct stat *,
                                 const struct log_spec *);
void log_file_destroy(struct log_file *);

/* Reads a bounded number of bytes.  Returns true if there are more. */
bool log_file_read(struct log_file *);

bool log_file_take(struct log_file *, struct progress *);

#endif /* agent/progress/log-file.h */
