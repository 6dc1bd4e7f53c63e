/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/launch/pod-path.h"
#include "base/name.h"

#define TRIES 5                 /* The agent may remove an empty cgroup
                                 * between its creation and the first
                                 * process. */

/* Creates the missing directories of 'path', which is absolute. */
static int
make_dirs(char *path)
{
    bool failed = false;

    for (char *p = path; p && !failed;) {
        p = strchr(p + 1, '/');
        if (p) {
            *p = '\0';
        }
        failed = mkdir(path, 0755) && errno != EEXIST;
        if (p) {
            *p = '/';
        }
    }
    return failed ? errno : 0;
}

static int
write_pid(const char *dir, pid_t pid)
{
    char *path;
    int error = 0;
    int fd;

    if (asprintf(&path, "%s/cgroup.procs", dir) < 0) {
        return ENOMEM;
    }
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || dprintf(fd, "%ld", (long) pid) < 0) {
        error = errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return error;
}

int
job_cgroup_enter(char *dir, pid_t pid)
{
    int error = 0;

    for (int i = 0; i < TRIES; i++) {
        error = make_dirs(dir);
        if (!error) {
            error = write_pid(dir, pid);
        }
        if (error != ENOENT && error != ENODEV) {
            break;
        }
    }
    return error;
}

char *
job_cgroup_path(pid_t pid)
{
    char file[64], line[4096];
    char *path = NULL;
    FILE *stream;

    snprintf(file, sizeof file, "/proc/%ld/cgroup", (long) pid);
    stream = fopen(file, "re");
    while (stream && !path && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = '\0';
        path = strncmp(line, "0::/", 4) ? NULL : strdup(line + 3);
    }
    if (stream) {
        fclose(stream);
    }
    return path;
}

/* Returns true if the 'n' characters at 'part' begin and end with these. */
static bool
part_is(const char *part, size_t n, const char *begin, const char *end)
{
    size_t n_begin = strlen(begin), n_end = strlen(end);

    return n >= n_begin + n_end && !memcmp(part, begin, n_begin)
           && !memcmp(part + n - n_end, end, n_end);
}

char *
job_cgroup_of_scheduler(const char *path)
{
    static const char slurm[] = "slurmstepd.scope/";
    const char *job = strstr(path, slurm);
    char uid[37];
    size_t n = pod_path_search(path, uid);

    if (job && job[strlen(slurm)]) {
        size_t end = job + strlen(slurm) - path;

        end += strcspn(path + end, "/");
        n = n && n < end ? n : end;
    }
    return n ? strndup(path, n) : NULL;
}

bool
job_cgroup_may_leave(const char *path)
{
    bool leave = !strcmp(path, "/");

    for (const char *part = path; *part;) {
        size_t n = strcspn(++part, "/");

        leave = leave || part_is(part, n, "session-", ".scope")
                || part_is(part, n, "user@", ".service")
                || (!part[n]
                    && (part_is(part, n, "", "slurmd.service")
                        || part_is(part, n, "ssh", ".service")));
        part += n;
    }
    return leave;
}

char *
stage_name_parse(const char *place, const char *text, char separator,
                 struct stage_name *stage)
{
    const char *end = strchr(text, separator);
    size_t n = end ? end - text : strlen(text);
    struct stage_name parsed = { .rung = -1 };
    size_t digits = end ? strspn(end + 1, "0123456789") : 0;
    char *error;

    if (n < sizeof parsed.cojob) {
        memcpy(parsed.cojob, text, n);
    }
    if (digits > 0 && digits <= 4 && !end[1 + digits]) {
        parsed.rung = atoi(end + 1);
    }
    if (name_is_valid(parsed.cojob)
        && (!end
            || (parsed.rung >= 0 && parsed.rung <= STAGE_NAME_MAX_RUNG))) {
        *stage = parsed;
        return NULL;
    }
    if (asprintf(&error,
                 "%s: \"%.60s\" is not a stage; expected COJOB or COJOB%cRUNG"
                 ": " NAME_RULE ", and a number from "
                 "0 to %d",
                 place, text, separator, STAGE_NAME_MAX_RUNG)
        < 0) {
        abort();
    }
    return error;
}
