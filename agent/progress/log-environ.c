/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-environ.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define MAX_PROCESSES 16
#define MAX_ENVIRON (128 * 1024)

/* Reads at most 'size' bytes of 'file' into 'data'.  Returns how many. */
static size_t
read_some(const char *file, char *data, size_t size)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got;

    if (fd < 0) {
        return 0;
    }
    while (n < size && (got = read(fd, data + n, size - n)) > 0) {
        n += got;
    }
    close(fd);
    return n;
}

char *
log_environ_get(const char *block, size_t size, const char *name)
{
    size_t n_name = strlen(name);

    while (size) {
        size_t n = strnlen(block, size);

        if (n == size) {
            break;              /* Cut off. */
        }
        if (n > n_name && block[n_name] == '='
            && !memcmp(block, name, n_name)) {
            return xstrdup(block + n_name + 1);
        }
        block += n + 1;
        size -= n + 1;
    }
    return NULL;
}

/* Finds who started process 'pid'.  Not the owner of its directory, which is
 * root if the process runs a program with a set-user-ID bit. */
static bool
get_user(int pid, uid_t *uidp)
{
    char file[64], text[4096];
    const char *line;
    unsigned int uid;
    size_t n;

    snprintf(file, sizeof file, "/proc/%d/status", pid);
    n = read_some(file, text, sizeof text - 1);
    text[n] = '\0';
    line = strstr(text, "\nUid:");
    if (!line || sscanf(line, "\nUid: %u", &uid) != 1) {
        return false;
    }
    *uidp = uid;
    return true;
}

char *
log_environ_find(const char *dir, uid_t *uidp)
{
    char *file = xasprintf("%s/cgroup.procs", dir);
    FILE *procs = fopen(file, "re");
    char *block = xmalloc(MAX_ENVIRON);
    char *value = NULL;
    int pid;

    for (int i = 0; procs && !value && i < MAX_PROCESSES
                    && fscanf(procs, "%d", &pid) == 1; i++) {
        char path[64];

        snprintf(path, sizeof path, "/proc/%d/environ", pid);
        value = log_environ_get(block,
                                read_some(path, block, MAX_ENVIRON),
                                LOG_ENVIRON);
        if (value && !get_user(pid, uidp)) {
            free(value);
            value = NULL;
        }
    }
    if (procs) {
        fclose(procs);
    }
    free(block);
    free(file);
    return value;
}
