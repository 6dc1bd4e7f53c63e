/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/tail/log-paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define MAX_ENTRIES 4096        /* Directory entries per walk. */

struct walk {
    const struct log_paths_class *class;
    void *aux;
    int budget;                 /* Directory entries that may still be
                                 * read. */
};

static void walk(struct walk *, int dirfd, const char *rest);

static void
count_refusal(struct walk *w)
{
    if (errno == EACCES || errno == EPERM) {
        w->class->refused(w->aux);
    }
}

static void
take_file(struct walk *w, int dirfd, const char *name)
{
    struct stat s;
    int fd;

    /* Devices must not even be opened. */
    if (fstatat(dirfd, name, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode)) {
        return;
    }
    fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
                             | O_CLOEXEC);
    if (fd < 0) {
        count_refusal(w);
    } else if (!fstat(fd, &s) && S_ISREG(s.st_mode)) {
        w->class->file(fd, &s, w->aux);
    } else {
        close(fd);
    }
}

/* Opens 'name' in 'dirfd', before the remaining path 'rest'.  Returns false if
 * that fails. */
static bool
enter(struct walk *w, int dirfd, const char *name, const char *rest)
{
    /* Passing through a directory needs no right to read it. */
    int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        count_refusal(w);
        return false;
    }
    walk(w, fd, rest);
    close(fd);
    return true;
}

static void
match(struct walk *w, int dirfd, const char *pattern, const char *rest)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        if (fd >= 0) {
            close(fd);
        } else {
            count_refusal(w);
        }
        return;
    }
    while (w->budget > 0 && (entry = readdir(dir))) {
        const char *name = entry->d_name;

        w->budget--;
        if (!strcmp(name, ".") || !strcmp(name, "..")
            || fnmatch(pattern, name, FNM_PERIOD)) {
            continue;
        }
        if (rest) {
            enter(w, dirfd, name, rest);
        } else {
            take_file(w, dirfd, name);
        }
    }
    closedir(dir);
}

/* Walks the directory 'dirfd'; 'rest' is the part of the path below it. */
static void
walk(struct walk *w, int dirfd, const char *rest)
{
    char name[NAME_MAX + 1];
    size_t n;

    rest += strspn(rest, "/");
    n = strcspn(rest, "/");
    if (!n || n > NAME_MAX) {
        return;
    }
    memcpy(name, rest, n);
    name[n] = '\0';
    rest = rest[n] ? rest + n + 1 : NULL;
    if (strpbrk(name, "*?[")) {
        w->class->dir(dirfd, !rest, w->aux);
        match(w, dirfd, name, rest);
    } else if (!rest) {
        w->class->dir(dirfd, true, w->aux);
        take_file(w, dirfd, name);
    } else if (!enter(w, dirfd, name, rest)) {
        w->class->dir(dirfd, false, w->aux);
    }
}

void
log_paths_walk(const char *path, const struct log_paths_class *class,
               void *aux)
{
    struct walk w = { .class = class, .aux = aux, .budget = MAX_ENTRIES };
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        walk(&w, fd, path);
        close(fd);
    }
}
