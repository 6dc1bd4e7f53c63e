/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/cgroup-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/directory.h"
#include "util.h"
#include "wire/cgroup-path.h"

/* Time that killed processes may take to disappear. */
#define KILL_TIMEOUT_MS 10000

/* Returns "MOUNT/PATH", or NULL if no cgroup v2 hierarchy is mounted. */
static char *
full_path(const char *path)
{
    char *mount = cgroup_mount_from("/proc/mounts");
    char *full = mount ? xasprintf("%s/%s", mount, path) : NULL;

    free(mount);
    return full;
}

static int
write_file(const char *dir, const char *file, const char *text)
{
    char *path = xasprintf("%s/%s", dir, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int error = 0;

    free(path);
    if (fd < 0) {
        return errno;
    }
    if (write(fd, text, strlen(text)) < 0) {
        error = errno;
    }
    close(fd);
    return error;
}

/* Returns the number after 'key' in 'dir'/'file', 0 if it is missing. */
static uint64_t
read_key(const char *dir, const char *file, const char *key)
{
    char *path = xasprintf("%s/%s", dir, file);
    FILE *stream = fopen(path, "re");
    unsigned long long value = 0;
    char name[64];

    while (stream && fscanf(stream, "%63s %llu", name, &value) == 2) {
        if (!strcmp(name, key)) {
            break;
        }
        value = 0;
    }
    if (stream) {
        fclose(stream);
    }
    free(path);
    return value;
}

/* Creates the cgroup 'path' and its ancestors.  Returns NULL or a message. */
char *
cgroup_tree_create(const char *path)
{
    char *full = full_path(path);
    char *error = (full ? directory_create(full)
                   : xstrdup("/proc/mounts: no cgroup2 file system is "
                             "mounted"));

    free(full);
    return error;
}

/* Moves the calling process into 'path'. */
int
cgroup_tree_join(const char *path)
{
    char *full = full_path(path);
    int error = full ? write_file(full, "cgroup.procs", "0") : ENOENT;

    free(full);
    return error;
}

static int
remove_one(const char *path, const struct stat *st OVS_UNUSED, int type,
           struct FTW *ftw OVS_UNUSED)
{
    if (type == FTW_DP) {
        rmdir(path);
    }
    return 0;
}

/* Kills every process in the tree and removes the tree, and its parent if that
 * is empty then.  Returns NULL or a message.  A missing tree is no error. */
char *
cgroup_tree_destroy(const char *path)
{
    char *full = full_path(path);
    char *error = NULL;
    struct stat st;

    if (!full || stat(full, &st)) {
        free(full);
        return NULL;
    }
    for (int ms = 0; ; ms += 10) {
        write_file(full, "cgroup.kill", "1");
        if (!read_key(full, "cgroup.events", "populated")) {
            nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS);
            if (stat(full, &st)) {
                break;
            }
        }
        if (ms >= KILL_TIMEOUT_MS) {
            error = xasprintf("%s: processes in it do not end", full);
            break;
        }
        nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
    }
    if (!error) {
        *strrchr(full, '/') = '\0';
        rmdir(full);
    }
    free(full);
    return error;
}
