/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/sender.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identify/registry.h"
#include "util.h"

bool
sender_cgroup_path(const char *text, char *path, size_t size)
{
    while (text) {
        if (!strncmp(text, "0::/", 4)) {
            size_t n = strcspn(text + 3, "\n");

            if (n >= size) {
                return false;
            }
            memcpy(path, text + 3, n);
            path[n] = '\0';
            return true;
        }
        text = strchr(text, '\n');
        text += text != NULL;
    }
    return false;
}

static bool
read_cgroup(pid_t pid, char *path, size_t size)
{
    char file[64], text[8192];
    ssize_t n;
    int fd;

    snprintf(file, sizeof file, "/proc/%d/cgroup", (int) pid);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[MAX(n, 0)] = '\0';
    return sender_cgroup_path(text, path, size);
}

struct job *
sender_job(const struct registry *r, const char *mount, pid_t pid)
{
    char path[4096];
    struct job *job = NULL;

    if (pid <= 0 || !mount || !read_cgroup(pid, path, sizeof path)) {
        return NULL;
    }
    /* A cgroup below the job's may be newer than the last look at the tree. */
    while (!job && strlen(path) > 1) {
        char *dir = xasprintf("%s%s", mount, path);
        struct stat s;

        if (!stat(dir, &s)) {
            job = registry_job_of_cgroup(r, s.st_ino);
        }
        free(dir);
        *strrchr(path, '/') = '\0';
    }
    return job;
}

bool
sender_may_tell(const struct registry *r, const char *mount,
                const struct ucred *sender, const struct job *job)
{
    return sender->uid == 0 || sender_job(r, mount, sender->pid) == job;
}
