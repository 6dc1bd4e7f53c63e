/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identify/process.h"
#include "base/name.h"
#include "openvswitch/util.h"
#include "util.h"
#include "wire/cgroup-path.h"

/* Limits above what any job needs, so that a job cannot keep the agent busy by
 * a deep or large tree; each cojob has its own, because its directory may
 * belong to a user. */
#define MAX_DEPTH 16
#define MAX_DIRS 8192
#define MAX_JOBS 1024

static DIR *
open_dir_at(int dirfd, const char *name)
{
    int fd = openat(dirfd, name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir) {
        close(fd);
    }
    return dir;
}

static bool
is_dir(const struct dirent *entry)
{
    return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

/* Calls 'see' for each job in the directory of 'cojob'. */
static void
scan_cojob(int root, const char *cojob, cgroup_see_func *see, void *aux)
{
    DIR *dir = open_dir_at(root, cojob);
    const struct dirent *entry;
    int left = MAX_JOBS;

    while (dir && left > 0 && (entry = readdir(dir))) {
        struct stat s;

        if (is_dir(entry) && name_is_valid(entry->d_name)
            && !fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW)) {
            char *job = xasprintf("%s/%s", cojob, entry->d_name);

            see(job, s.st_ino, s.st_uid, aux);
            free(job);
            left--;
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Calls 'see' with 'aux' for each job below 'root'.  Returns 0, also if there
 * is no such tree yet, otherwise a positive errno value. */
int
cgroup_scan(const char *root, cgroup_see_func *see, void *aux)
{
    DIR *dir = open_dir_at(AT_FDCWD, root);
    const struct dirent *entry;
    int left = MAX_DIRS;

    if (!dir) {
        return errno == ENOENT ? 0 : errno;
    }
    while (left > 0 && (entry = readdir(dir))) {
        if (is_dir(entry) && name_is_valid(entry->d_name)) {
            scan_cojob(dirfd(dir), entry->d_name, see, aux);
            left--;
        }
    }
    closedir(dir);
    return 0;
}

/* Calls 'see' with 'aux' for the job called 'job', a valid name, if it has a
 * cgroup. */
void
cgroup_see_job(const char *root, const char *job, cgroup_see_func *see,
               void *aux)
{
    char *path = xasprintf("%s/%s", root, job);
    struct stat s;

    if (!lstat(path, &s) && S_ISDIR(s.st_mode)) {
        see(job, s.st_ino, s.st_uid, aux);
    }
    free(path);
}

/* Returns true if 'job' has a process, in its cgroup or below, or if that is
 * unknown although the cgroup exists. */
bool
cgroup_is_populated(const char *root, const char *job)
{
    char *path = xasprintf("%s/%s/cgroup.events", root, job);
    char text[256];
    ssize_t n = small_file_read(path, text, sizeof text);

    free(path);
    return n < 0 ? n != -ENOENT && n != -ENODEV : !strstr(text, "populated 0");
}

static void
walk(const char *path, int depth, int *left, cgroup_path_func *see, void *aux)
{
    DIR *dir = open_dir_at(AT_FDCWD, path);
    const struct dirent *entry;

    while (dir && depth < MAX_DEPTH && 0 < *left && (entry = readdir(dir))) {
        if (is_dir(entry)) {
            char *below = xasprintf("%s/%s", path, entry->d_name);

            --*left;
            walk(below, depth + 1, left, see, aux);
            free(below);
        }
    }
    if (dir) {
        closedir(dir);
    }
    see(path, aux);
}

/* Calls 'see' with 'aux' for at most 'max' cgroups below 'path', each before
 * the one that it is in, and for 'path'. */
void
cgroup_walk(const char *path, int max, cgroup_path_func *see, void *aux)
{
    walk(path, 0, &max, see, aux);
}

static void
remove_one(const char *path, void *aux OVS_UNUSED)
{
    rmdir(path);
}

/* Removes the cgroups of 'job', and its cojob's if that has no other job.  The
 * kernel refuses to remove a cgroup with a process.  Returns 0, or EBUSY if
 * the job still exists. */
int
cgroup_remove(const char *root, const char *job)
{
    char *path = xasprintf("%s/%s", root, job);
    int error = 0;

    cgroup_walk(path, MAX_DIRS, remove_one, NULL);
    if (!access(path, F_OK)) {
        error = EBUSY;
    } else {
        *strrchr(path, '/') = '\0';
        ignore(rmdir(path));
    }
    free(path);
    return error;
}

/* Returns the name of the job whose cgroup, or one below it, is at 'path' in
 * the tree of jobs at 'root'.  The caller frees the name.  Returns NULL if it
 * belongs to no job. */
char *
cgroup_job_at(const char *root, const char *path)
{
    size_t n = strlen(root);
    char *job, *slash;

    if (strncmp(path, root, n) || path[n] != '/') {
        return NULL;
    }
    job = xstrdup(path + n + 1);
    slash = strchr(job, '/');
    if (slash) {
        slash[1 + strcspn(slash + 1, "/")] = '\0';
    }
    if (!cgroup_job_is_valid(job)) {
        free(job);
        job = NULL;
    }
    return job;
}
