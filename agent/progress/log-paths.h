/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_PATHS_H
#define LOG_PATHS_H 1

/* The files that a path with wildcards names.
 *
 *
 * Motivation
 * ==========
 *
 * The agent reads with root's rights what others write, in directories that
 * are theirs.  So the fixed part of a path, up to the first wildcard or name
 * of a job, is the operator's and may have links; behind it none is followed,
 * and nothing is opened but regular files.  A walk looks at a bounded number
 * of directory entries.
 *
 * The directories where another file or directory might appear, that would
 * make a difference, are told, so that they can be watched.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include <stddef.h>
#include <sys/stat.h>

struct log_paths_class {
    /* 'fd' is an open directory, which the walk closes. */
    void (*dir)(int fd, void *aux);

    /* 'fd' is a regular file, open to be read; the callee's to close. */
    void (*file)(int fd, const struct stat *, void *aux);
};

/* Walks over absolute 'path', the first 'n_fixed' bytes of which are fixed. */
void log_paths_walk(const char *path, size_t n_fixed,
                    const struct log_paths_class *, void *aux);

#endif /* agent/progress/log-paths.h */
