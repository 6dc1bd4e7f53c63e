/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-environ.h"

#include <stdlib.h>
#include <string.h>

#include "agent/identify/process.h"
#include "util.h"

#define MAX_LOOKS 16            /* Processes of a job that are read. */

char *
log_environ_get(const char *block, size_t size, const char *name)
{
    size_t n_name = strlen(name);

    while (size) {
        size_t n = strnlen(block, size);

        if (n == size) {
            break;              /* The environment was truncated. */
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

/* The owner of the directory in /proc is not used: it is root if the program
 * has a set-user-ID bit. */
char *
log_environ_find(const char *dir, uid_t *uidp)
{
    char *value = NULL;
    pid_t *pids;
    size_t n = processes_of_cgroup(dir, &pids);

    for (size_t i = 0; !value && i < MIN(n, MAX_LOOKS); i++) {
        size_t size;
        char *block = process_environ(pids[i], &size);

        /* The last byte is not part of the environment. */
        value = block ? log_environ_get(block, size - 1, LOG_ENVIRON) : NULL;
        free(block);
        if (value && !process_user(pids[i], uidp)) {
            free(value);
            value = NULL;
        }
    }
    free(pids);
    return value;
}
