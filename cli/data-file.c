/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/data-file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *
join(const char *a, const char *b, const char *c, const char *d)
{
    char *path;

    if (asprintf(&path, "%s/%s/%s/%s", a, b, c, d) < 0) {
        abort();
    }
    if (access(path, R_OK)) {
        free(path);
        path = NULL;
    }
    return path;
}

char *
data_file_find(const char *dir, const char *name)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *path = NULL;

    if (n > 0) {
        exe[n] = '\0';
        *strrchr(exe, '/') = '\0';
        path = join(exe, "../share/stagecoach", dir, name);
    }
    return path ? path : join(STAGECOACH_SOURCE, ".", dir, name);
}
