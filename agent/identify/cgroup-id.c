/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/cgroup-id.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/cgroup-path.h"
#include "util.h"

/* From the kernel's include/linux/exportfs.h. */
#define FILEID_KERNFS 0xfe

struct cgroup_ids {
    int fd;                     /* File descriptor of the mount; -1 if there
                                 * is none. */
};

/* Prepares lookups in the file system mounted at 'mount', which may be
 * NULL. */
struct cgroup_ids *
cgroup_ids_open(const char *mount)
{
    struct cgroup_ids *ids = xmalloc(sizeof *ids);

    ids->fd = mount ? open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return ids;
}

void
cgroup_ids_close(struct cgroup_ids *ids)
{
    if (ids) {
        if (ids->fd >= 0) {
            close(ids->fd);
        }
        free(ids);
    }
}

/* Stores the path of the cgroup 'id' in '*pathp', which the caller must free.
 * Returns 0, ESTALE or ENOENT if there is no such cgroup (any more), or
 * another positive errno value, in which case '*pathp' is null. */
int
cgroup_ids_path(const struct cgroup_ids *ids, uint64_t id, char **pathp)
{
    char buffer[sizeof(struct file_handle) + sizeof id];
    struct file_handle *handle = (struct file_handle *) buffer;
    char link[64], path[PATH_MAX];
    ssize_t n;
    int fd;

    *pathp = NULL;
    if (ids->fd < 0) {
        return ENOENT;
    }
    handle->handle_bytes = sizeof id;
    handle->handle_type = FILEID_KERNFS;
    memcpy(handle->f_handle, &id, sizeof id);
    fd = open_by_handle_at(ids->fd, handle, O_PATH | O_CLOEXEC);
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
