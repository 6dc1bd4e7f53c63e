/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-path.h"

#include <errno.h>
#include <fts.h>
#include <regex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MAX_DEPTH 8 /* Levels of directories that a scan reads. */

/* A component that names a pod, and in it the UID. */
static const char pod_name[] =
    "^(.*-)?pod("
    "[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}"
    "|[0-9a-f]{32})(\\.slice)?$";

static const regex_t *
pod_expression(void)
{
    static regex_t expression;
    static bool compiled;

    if (!compiled) {
        compiled = true;
        regcomp(&expression, pod_name, REG_EXTENDED);
    }
    return &expression;
}

bool
pod_path_parse(const char *path, char uid[37])
{
    bool in_kubepods = false, found = false;

    while (!found) {
        size_t n;
        char *name;
        regmatch_t match[3];

        path += strspn(path, "/");
        n = strcspn(path, "/\n");
        if (!n) {
            break;
        }
        name = must(strndup(path, n));
        name[strcspn(name, ":")] = '\0';
        in_kubepods |= strstr(name, "kubepods") != NULL;
        found = in_kubepods && !regexec(pod_expression(), name, 3, match, 0);
        if (found) {
            name[match[2].rm_eo] = '\0';
            strcpy(uid, name + match[2].rm_so);
            for (char *p = uid; (p = strchr(p, '_'));) {
                *p = '-';
            }
        }
        free(name);
        path += n;
    }
    return found;
}

int
pod_path_scan(const char *root, pod_path_func *see, void *aux)
{
    char *const roots[] = { (char *) root, NULL };
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    int error = 0;
    FTSENT *entry;

    if (!fts) {
        return errno;
    }
    while ((entry = fts_read(fts)) != NULL) {
        char uid[37];

        if (entry->fts_info == FTS_D) {
            /* The path of the root itself may look like that of a pod. */
            if (pod_path_parse(entry->fts_path + strlen(root), uid)) {
                see(entry->fts_path, uid, aux);
                fts_set(fts, entry, FTS_SKIP);
            } else if (entry->fts_level >= MAX_DEPTH) {
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
