/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_PATHS_H
#define LOG_PATHS_H 1

/* Files that a path with wildcards names.
 *
 * The process has the rights of the job, so the kernel decides what it may
 * read, also behind symbolic links.  Only regular files are opened: opening a
 * pipe or a device can wait or change something.  The last part of a path is
 * not followed if it is a link: its target is in a directory that is not
 * watched.  A walk reads a bounded number of directory entries.
 *
 * The walk also reports the directories in which a matching file or directory
 * could appear, so that they can be watched.
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <sys/stat.h>

struct log_paths_class {
    /* Called with each directory to watch, which has the files themselves if
     * 'leaf'.  The walk closes 'fd', which is for the path only (O_PATH). */
    void (*dir)(int fd, bool leaf, void *aux);

    /* Called with each regular file, open for reading.  The callee closes
     * 'fd'. */
    void (*file)(int fd, const struct stat *, void *aux);

    /* Called for each regular file and each directory for which this process
     * has no permission. */
    void (*refused)(void *aux);
};

/* Walks the absolute 'path'. */
void log_paths_walk(const char *path, const struct log_paths_class *,
                    void *aux);

#endif /* agent/tail/log-paths.h */
