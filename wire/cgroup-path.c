/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/cgroup-path.h"

#include <mntent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"

bool
cgroup_job_is_valid(const char *job)
{
    const char *slash = strchr(job, '/');
    char cojob[NAME_SIZE] = "";

    if (slash && slash - job < (ptrdiff_t) sizeof cojob) {
        memcpy(cojob, job, slash - job);
    }
    return name_is_valid(cojob) && name_is_valid(slash + 1);
}

bool
cgroup_root_is_valid(const char *root)
{
    if (!root[0] || root[0] == '/' || strlen(root) > 1024) {
        return false;
    }
    for (const char *p = root; *p; ) {
        size_t n = strcspn(p, "/");

        if (n == 0 || (n == 1 && p[0] == '.')
            || (n == 2 && p[0] == '.' && p[1] == '.')) {
            return false;
        }
        p += n;
        if (*p == '/' && !*++p) {
            return false;
        }
    }
    return true;
}

char *
cgroup_mount_from(const char *mounts)
{
    FILE *stream = setmntent(mounts, "re");
    struct mntent entry;
    char buffer[4096];
    char *dir = NULL;

    if (!stream) {
        return NULL;
    }
    while (!dir && getmntent_r(stream, &entry, buffer, sizeof buffer)) {
        if (!strcmp(entry.mnt_type, "cgroup2")) {
            dir = strdup(entry.mnt_dir);
        }
    }
    endmntent(stream);
    return dir;
}
