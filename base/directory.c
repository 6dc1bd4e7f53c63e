/* SPDX-License-Identifier: Apache-2.0 */

#include "base/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

char *
directory_create(const char *path_)
{
    char *path = duplicate(path_);
    char *error = NULL;
    char *end = path;

    while (!error && *end) {
        char c;

        end += 1 + strcspn(end + 1, "/");
        c = *end;
        *end = '\0';
        if (mkdir(path, 0755) && errno != EEXIST) {
            error = message("%s: cannot be created (%s)", path,
                            strerror(errno));
        }
        *end = c;
    }
    free(path);
    return error;
}

char *
directory_find(const char *const folders[], const char *name, int mode)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    const char *own;

    exe[n > 0 ? n : 0] = '\0';
    own = dirname(exe);
    for (size_t i = 0; folders[i]; i++) {
        bool absolute = folders[i][0] == '/';
        char *path = message("%s%s%s/%s", absolute ? "" : own,
                             absolute ? "" : "/", folders[i], name);

        if (!access(path, mode)) {
            return path;
        }
        free(path);
    }
    return NULL;
}

char *
output_file_check(const char *path)
{
    bool there = path && !access(path, F_OK);
    bool bad = there && access(path, W_OK);

    if (path && !there) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

        bad = fd < 0;
        if (!bad) {
            close(fd);
            unlink(path);
        }
    }
    return bad ? message("%s: %s", path, strerror(errno)) : NULL;
}
