/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/sender.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/identify/claim.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "util.h"

#define MAX_PARENTS 16          /* Ancestors of a process that are checked. */
#define MAX_EVIDENCE 64

bool
sender_cgroup_path(const char *text, char *path, size_t size)
{
    for (const char *line = text; *line; ) {
        size_t n = strcspn(line, "\n");

        if (!strncmp(line, "0::/", 4)) {
            if (n - 3 >= size) {
                return false;
            }
            memcpy(path, line + 3, n - 3);
            path[n - 3] = '\0';
            return true;
        }
        line += n + (line[n] == '\n');
    }
    return false;
}

static bool
read_cgroup(pid_t pid, char *path, size_t size)
{
    char text[8192];

    return process_read_file(pid, "cgroup", text, sizeof text) > 0
           && sender_cgroup_path(text, path, size);
}

/* Adds 'id' to the things to look up claims for. */
static void
add(struct claim_what whats[], size_t *n, enum claim_kind kind, uint64_t id)
{
    if (*n < MAX_EVIDENCE && id) {
        whats[(*n)++] = (struct claim_what) { kind, id };
    }
}

/* Adds the cgroup at 'path' and those above it: a cgroup below a job's may be
 * newer than the last scan. */
static void
add_cgroups(struct claim_what whats[], size_t *n, const char *mount,
            char *path)
{
    while (strlen(path) > 1) {
        char *dir = xasprintf("%s%s", mount, path);
        struct stat s;

        if (!stat(dir, &s)) {
            add(whats, n, CLAIMS_CGROUP, s.st_ino);
        }
        free(dir);
        *strrchr(path, '/') = '\0';
    }
}

/* Returns the job of process 'pid' by its cgroup, or by a claim on it or on
 * one of its ancestors, or NULL. */
static struct job *
sender_job(const struct registry *r, const char *mount, pid_t pid)
{
    struct claim_what whats[MAX_EVIDENCE];
    struct process process;
    char path[4096];
    size_t n = 0;

    if (pid <= 0) {
        return NULL;
    }
    if (mount && read_cgroup(pid, path, sizeof path)) {
        add_cgroups(whats, &n, mount, path);
    }
    for (int i = 0; i < MAX_PARENTS && pid > 1
                    && process_read(pid, &process); i++) {
        add(whats, &n, CLAIMS_PROCESS, pid);
        pid = process.parent;
    }
    return registry_owner(r, whats, n, NULL);
}

/* Returns true if 'a' and 'b', "COJOB/JOB" both, are of one cojob. */
static bool
same_cojob(const char *a, const char *b)
{
    size_t n = strcspn(a, "/");

    return n == strcspn(b, "/") && !strncmp(a, b, n);
}

bool
sender_may_report(const struct registry *r, const char *mount,
                const struct ucred *sender, const struct job *job)
{
    const struct job *own;

    if (sender->uid == 0) {
        return true;
    }
    own = sender_job(r, mount, sender->pid);
    return own && same_cojob(own->name, job->name);
}
