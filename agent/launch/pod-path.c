/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-path.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH 8 /* Levels of directories that a scan reads. */

/* The cgroup of a pod below its kubelet's, or the cgroup of a container if its
 * runtime uses systemd's names without its driver. */
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

size_t
pod_path_search(const char *path, char uid[37])
{
    const char *at = strstr(path, "kubepods") ? path : "";

    for (; (at = strchr(at, '/')) != NULL; at++) {
        size_t n = pod_path_parse(at, uid);

        if (n) {
            return at - path + n;
        }
    }
    return 0;
}

bool
pod_path_find(const char *mount, const char *path, char uid[37])
{
    size_t n = pod_path_search(path, uid);

    return n && is_of_root(mount, path, n);
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
