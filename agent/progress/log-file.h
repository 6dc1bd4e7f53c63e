/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_FILE_H
#define LOG_FILE_H 1

/* One file that grows, and how far it was read.
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

#define LOG_TAIL (256 * 1024)   /* Bytes before the end, where one begins. */

/* Read-only outside this module. */
struct log_file {
    int fd;
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
    uint64_t at;                /* Bytes before here were read, or skipped. */
    uint64_t skipped;           /* Bytes that were not read. */
    bool bad;                   /* Is not what it should be, or cannot be
                                 * read. */
    bool begun;                 /* The decoder knows where it begins. */
    struct log_decoder *decoder;
};

struct log_file *log_file_create(int fd, const struct stat *,
                                 const struct log_spec *);
void log_file_destroy(struct log_file *);

/* Reads a bounded number of bytes.  Returns true if there are more. */
bool log_file_read(struct log_file *);

bool log_file_take(struct log_file *, struct progress *);

#endif /* agent/progress/log-file.h */
