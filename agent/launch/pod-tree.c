/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-tree.h"

#include <errno.h>
#include <fts.h>
#include <string.h>

#define MAX_DEPTH 8

int
pod_tree_scan(const char *root, pod_tree_func *see, void *aux)
{
    char *const roots[] = { (char *) root, NULL };
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    int error = 0;
    FTSENT *entry;

    if (!fts) {
        return errno;
    }
    while ((entry = fts_read(fts)) != NULL) {
        struct pod_path pod;

        if (entry->fts_info == FTS_D) {
            /* The path of the root itself may look like that of a pod. */
            if (pod_path_parse(entry->fts_path + strlen(root), &pod)) {
                see(entry->fts_path, &pod, aux);
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
