/* SPDX-License-Identifier: Apache-2.0 */

#include "base/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
