/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/cgroup-path.h"

#include <mntent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9');
}

bool
cgroup_name_is_valid(const char *name)
{
    size_t n = 0;

    while (is_alnum(name[n]) || (n && name[n] && strchr("._-", name[n]))) {
        n++;
    }
    return n >= 1 && n <= 31 && !name[n];
}

bool
cgroup_job_is_valid(const char *job)
{
    const char *slash = strchr(job, '/');
    char cojob[32] = "";

    if (slash && slash - job < (ptrdiff_t) sizeof cojob) {
        memcpy(cojob, job, slash - job);
    }
    return cgroup_name_is_valid(cojob) && cgroup_name_is_valid(slash + 1);
}

void
cgroup_name_fit(const char *text, char name[32])
{
    uint32_t hash = 2166136261u;        /* FNV-1a. */
    size_t n = 0;

    for (const char *p = text; *p; p++) {
        hash = (hash ^ (unsigned char) *p) * 16777619u;
        if (n < 31) {
            name[n++] = is_alnum(*p) || strchr("._-", *p) ? *p : '-';
        }
    }
    name[n] = '\0';
    if (n && !is_alnum(name[0])) {
        name[0] = 'x';
    }
    if (strlen(text) > 31) {
        snprintf(name + 22, 10, "-%08x", hash);
    }
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
