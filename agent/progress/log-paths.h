/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_PATHS_H
#define LOG_PATHS_H 1

/* Files that a path with wildcards names.
 *
 *
 * Motivation
 * ==========
 *
 * The agent reads files of others with root's rights, in directories that
 * others own.  The fixed part of a path, up to the first wildcard or name of a
 * job, belongs to the operator and may contain symbolic links; links behind it
 * are not followed, and only regular files are opened.  A walk reads a bounded
 * number of directory entries.
 *
 * The walk also reports the directories in which a matching file or directory
 * could appear, so that they can be watched.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include <stddef.h>
#include <sys/stat.h>

struct log_paths_class {
    /* Called with each directory to watch.  The walk closes 'fd'. */
    void (*dir)(int fd, void *aux);

    /* Called with each regular file, open for reading.  The callee closes
     * 'fd'. */
    void (*file)(int fd, const struct stat *, void *aux);
};

/* Walks the absolute 'path', of which the first 'n_fixed' bytes are the fixed
 * part. */
void log_paths_walk(const char *path, size_t n_fixed,
                    const struct log_paths_class *, void *aux);

#endif /* agent/progress/log-paths.h */
