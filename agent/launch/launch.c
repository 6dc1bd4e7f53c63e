/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* "podUID", or "kubepods-burstable-podUID.slice". */
static bool
is_pod(const char *part, size_t n)
{
    for (size_t i = 0; i + 11 <= n; i++) {
        if (!memcmp(part + i, "pod", 3)
            && strspn(part + i + 3, "0123456789abcdef") >= 8) {
            return true;
        }
    }
    return false;
}

char *
job_cgroup_of_scheduler(const char *path)
{
    bool slurm = false, kubelet = false;

    for (const char *part = path; *part;) {
        size_t n = strcspn(++part, "/");

        if (n && (slurm || (kubelet && is_pod(part, n)))) {
            return strndup(path, part + n - path);
        }
        slurm = part_is(part, n, "", "slurmstepd.scope");
        kubelet = kubelet || memmem(part, n, "kubepods", 8);
        part += n;
    }
    return NULL;
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
                 "%s: \"%.60s\" is not a stage, COJOB or COJOB%cRUNG "
                 "is allowed: " NAME_RULE ", and a number from "
                 "0 to %d",
                 place, text, separator, STAGE_NAME_MAX_RUNG)
        < 0) {
        abort();
    }
    return error;
}

/* Pods. */

#define MAX_DEPTH 8 /* Levels of directories that a scan reads. */

/* The cgroup of a pod below its kubelet's, or that of a container whose
 * runtime has systemd's names but not its driver. */
static const char pod_name[] =
    "^/(([a-z0-9_]+-)*kubepods(\\.slice)?/"
    "(([a-z0-9_-]*kubepods-)?(burstable|besteffort)(\\.slice)?/)?"
    "([a-z0-9_-]*-)?"
    "|([a-z0-9_]+-)*kubepods-((burstable|besteffort)-)?)pod("
    "[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}"
    "|[0-9a-f]{32})(\\.slice)?(/|:|$)";
#define UID_GROUP 12

size_t
pod_path_parse(const char *path, char uid[37])
{
    static regex_t expression;
    static bool compiled;
    regmatch_t match[UID_GROUP + 1];
    size_t n;

    if (!compiled) {
        compiled = true;
        regcomp(&expression, pod_name, REG_EXTENDED);
    }
    if (regexec(&expression, path, UID_GROUP + 1, match, 0)) {
        return 0;
    }
    snprintf(uid, 37, "%s", path + match[UID_GROUP].rm_so);
    uid[match[UID_GROUP].rm_eo - match[UID_GROUP].rm_so] = '\0';
    for (char *p = uid; (p = strchr(p, '_'));) {
        *p = '-';
    }
    n = match[UID_GROUP].rm_eo;
    return n + strcspn(path + n, "/");
}

/* Returns true if the cgroup at the first 'n' bytes of 'path', and all that it
 * is in, belong to root. */
static bool
is_of_root(const char *mount, const char *path, size_t n)
{
    char dir[PATH_MAX];
    struct stat s;

    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/') {
            continue;
        }
        if (snprintf(dir, sizeof dir, "%s%.*s", mount, (int) i, path)
                >= (int) sizeof dir
            || stat(dir, &s) || s.st_uid) {
            return false;
        }
    }
    return true;
}

bool
pod_path_find(const char *mount, const char *path, char uid[37])
{
    const char *at = strstr(path, "kubepods") ? path : "";

    for (; (at = strchr(at, '/')) != NULL; at++) {
        size_t n = pod_path_parse(at, uid);

        if (n) {
            return is_of_root(mount, path, at - path + n);
        }
    }
    return false;
}

int
pod_path_scan(const char *root, pod_path_func *see, void *aux)
{
    char *const roots[] = { (char *) root, NULL };
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    uid_t owner = 0;
    int error = 0;
    FTSENT *entry;

    if (!fts) {
        return errno;
    }
    while ((entry = fts_read(fts)) != NULL) {
        char uid[37];

        if (entry->fts_info == FTS_D) {
            owner = entry->fts_level ? owner : entry->fts_statp->st_uid;
            /* Only what may be the cgroup of a pod, or have some below it. */
            if (entry->fts_statp->st_uid != owner
                || entry->fts_level >= MAX_DEPTH
                || (entry->fts_level == 1
                    && !strstr(entry->fts_name, "kubepods"))) {
                fts_set(fts, entry, FTS_SKIP);
            } else if (pod_path_parse(entry->fts_path + strlen(root), uid)) {
                see(entry->fts_path, uid, aux);
                fts_set(fts, entry, FTS_SKIP);
            }
        } else if (entry->fts_level == 0
                   && (entry->fts_info == FTS_NS
                       || entry->fts_info == FTS_DNR)) {
            error = entry->fts_errno;
        }
    }
    fts_close(fts);
    return error;
}
