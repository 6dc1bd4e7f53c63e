/* SPDX-License-Identifier: Apache-2.0 */

#include "base/run-directory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

char *
run_directory_of_controller(const char *rundir)
{
    return strcmp(rundir, RUN_DIRECTORY) ? duplicate(rundir)
           : duplicate(RUN_DIRECTORY"/controller");
}

/* Checks 'path', or a directory 'above' it. */
static char *
check(const char *path, bool above)
{
    struct stat s;

    if (stat(path, &s)) {
        return message("%s: %s", path, strerror(errno));
    }
    if (!S_ISDIR(s.st_mode)) {
        return message("%s: no directory", path);
    }
    if (s.st_uid && s.st_uid != geteuid()) {
        return message(
            "%s: belongs to user %u; expected a directory of root or of "
            "user %u",
            path, (unsigned int) s.st_uid, (unsigned int) geteuid());
    }
    if (s.st_mode & (S_IWGRP | S_IWOTH) && !(above && s.st_mode & S_ISVTX)) {
        return message(
            "%s: mode %04o; expected a directory that only its owner can "
            "write",
            path, (unsigned int) s.st_mode & 07777);
    }
    return NULL;
}

char *
run_directory_check(const char *path)
{
    /* Follows no links, which could lead to a directory of another user. */
    char *real = realpath(path, NULL);
    char *error, *slash;

    if (!real) {
        return message("%s: %s", path, strerror(errno));
    }
    error = check(real, false);
    while (!error && (slash = strrchr(real, '/')) && slash[1]) {
        slash[slash == real] = '\0';
        error = check(real, true);
    }
    free(real);
    return error;
}
