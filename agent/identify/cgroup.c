/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "openvswitch/util.h"
#include "util.h"
#include "wire/cgroup-path.h"

/* From the kernel's include/linux/exportfs.h. */
#define FILEID_KERNFS 0xfe

/* Limits of a scan, above what any job needs, so that a job cannot keep the
 * agent busy by a deep or large tree. */
#define MAX_DEPTH 16
#define MAX_DIRS 8192

struct scan {
    cgroup_see_func *see;
    void *aux;
    char job[64];               /* "COJOB/JOB". */
    size_t cojob_len;           /* Length of the cojob's name in 'job', if
                                 * 'depth' is at least 1. */
    int budget;                 /* Directories that may still be read. */
    bool removing;              /* Remove the cgroups below the job. */
};

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
is_dir(DIR *dir, const struct dirent *entry)
{
    struct stat s;

    if (entry->d_name[0] == '.') {
        return false;
    }
    if (entry->d_type != DT_UNKNOWN) {
        return entry->d_type == DT_DIR;
    }
    return !fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW)
           && S_ISDIR(s.st_mode);
}

static bool
enter(struct scan *scan, const char *name, int depth)
{
    if (depth > 1) {
        return true;
    }
    if (!cgroup_name_is_valid(name)) {
        return false;
    }
    if (depth == 0) {
        scan->cojob_len = strlen(name);
        ovs_strlcpy(scan->job, name, sizeof scan->job);
    } else {
        scan->job[scan->cojob_len] = '/';
        ovs_strlcpy(scan->job + scan->cojob_len + 1, name,
                    sizeof scan->job - scan->cojob_len - 1);
    }
    return true;
}

/* Scans the directories in 'dir', which is at 'depth': 0 is the root with the
 * cojobs, 1 a cojob with its jobs. */
static void
scan_dir(struct scan *scan, DIR *dir, int depth)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)) && scan->budget > 0) {
        struct stat s;
        DIR *sub;

        if (!is_dir(dir, entry) || !enter(scan, entry->d_name, depth)) {
            continue;
        }
        scan->budget--;
        sub = open_dir_at(dirfd(dir), entry->d_name);
        if (!sub) {
            continue;
        }
        if (depth > 0 && scan->see && !fstat(dirfd(sub), &s)) {
            scan->see(scan->job, s.st_ino, depth > 1, s.st_uid, scan->aux);
        }
        if (depth < MAX_DEPTH) {
            scan_dir(scan, sub, depth + 1);
        }
        closedir(sub);
        if (scan->removing) {
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
    }
}

static int
scan_at(struct scan *scan, const char *path, int depth)
{
    DIR *dir = open_dir_at(AT_FDCWD, path);

    if (!dir) {
        return errno;
    }
    scan_dir(scan, dir, depth);
    closedir(dir);
    return 0;
}

/* Calls 'see' with 'aux' for each job below 'root' and for each cgroup below a
 * job, the job first.  Returns 0, also if there is no such tree yet, otherwise
 * a positive errno value. */
int
cgroup_scan(const char *root, cgroup_see_func *see, void *aux)
{
    struct scan scan = { .see = see, .aux = aux, .budget = MAX_DIRS };
    int error = scan_at(&scan, root, 0);

    return error == ENOENT ? 0 : error;
}

/* Calls 'see' with 'aux' for the job called 'job', a valid name, and for each
 * cgroup below it.  Returns 0, or ENOENT or another positive errno value. */
int
cgroup_see_job(const char *root, const char *job, cgroup_see_func *see,
               void *aux)
{
    struct scan scan = { .see = see, .aux = aux, .budget = MAX_DIRS };
    char *path = xasprintf("%s/%s", root, job);
    DIR *dir = open_dir_at(AT_FDCWD, path);
    int error = dir ? 0 : errno;
    struct stat s;

    free(path);
    if (!dir) {
        return error;
    }
    if (!fstat(dirfd(dir), &s)) {
        ovs_strlcpy(scan.job, job, sizeof scan.job);
        see(job, s.st_ino, false, s.st_uid, aux);
        scan_dir(&scan, dir, 2);
    }
    closedir(dir);
    return 0;
}

/* Calls 'see' with 'aux' and an empty name for each cgroup below 'path',
 * anywhere in the file system.  Returns 0 or a positive errno value. */
int
cgroup_scan_below(const char *path, cgroup_see_func *see, void *aux)
{
    struct scan scan = { .see = see, .aux = aux, .budget = MAX_DIRS };

    return scan_at(&scan, path, 2);
}

/* Returns true if 'job' has a process, in its cgroup or below, or if that is
 * unknown although the cgroup exists. */
bool
cgroup_is_populated(const char *root, const char *job)
{
    char *path = xasprintf("%s/%s/cgroup.events", root, job);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[256];
    ssize_t n;

    free(path);
    if (fd < 0) {
        return errno != ENOENT;
    }
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n < 0) {
        return errno != ENODEV;
    }
    text[n] = '\0';
    return !strstr(text, "populated 0");
}

/* Removes the cgroups of 'job', and its cojob's if that has no other job.  The
 * kernel refuses to remove a cgroup with a process.  Returns 0, or EBUSY if
 * the job still exists. */
int
cgroup_remove(const char *root, const char *job)
{
    struct scan scan = { .budget = MAX_DIRS, .removing = true };
    char *path = xasprintf("%s/%s", root, job);
    int error = 0;

    scan_at(&scan, path, 2);
    if (rmdir(path) && errno != ENOENT) {
        error = EBUSY;
    } else {
        *strrchr(path, '/') = '\0';
        ignore(rmdir(path));
    }
    free(path);
    return error;
}

/* Stores the path of the cgroup 'id' in '*pathp', which the caller must free.
 * Returns 0, ESTALE or ENOENT if there is no such cgroup (any more), or
 * another positive errno value, in which case '*pathp' is null. */
int
cgroup_path_of_id(int mount_fd, uint64_t id, char **pathp)
{
    char buffer[sizeof(struct file_handle) + sizeof id];
    struct file_handle *handle = (struct file_handle *) buffer;
    char link[64], path[PATH_MAX];
    ssize_t n;
    int fd;

    *pathp = NULL;
    if (mount_fd < 0) {
        return ENOENT;
    }
    handle->handle_bytes = sizeof id;
    handle->handle_type = FILEID_KERNFS;
    memcpy(handle->f_handle, &id, sizeof id);
    fd = open_by_handle_at(mount_fd, handle, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    close(fd);
    if (n < 0) {
        return errno;
    }
    path[n] = '\0';
    *pathp = xstrdup(path);
    return 0;
}

/* Returns the name of the job whose cgroup is at 'path' in the tree of jobs at
 * 'root', and stores in '*belowp' whether it is a cgroup below the job's own.
 * The caller frees the name.  Returns NULL if it belongs to no job. */
char *
cgroup_job_at(const char *root, const char *path, bool *belowp)
{
    size_t n = strlen(root);
    char *name, *job, *rest;

    if (strncmp(path, root, n) || path[n] != '/') {
        return NULL;
    }
    name = xstrdup(path + n + 1);
    job = strchr(name, '/');
    if (job) {
        rest = strchr(job + 1, '/');
        *belowp = rest != NULL;
        if (rest) {
            *rest = '\0';
        }
        *job = '\0';
        if (cgroup_name_is_valid(name) && cgroup_name_is_valid(job + 1)) {
            *job = '/';
            return name;
        }
    }
    free(name);
    return NULL;
}
