/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/pod-path.h"

#include <errno.h>
#include <fts.h>
#include <stddef.h>
#include <string.h>

#define MAX_DEPTH 8             /* Levels of directories that a scan reads. */
#define UID_HEX "0123456789abcdef"

/* A component of a path, or part of one. */
struct span {
    const char *s;
    size_t n;
};

/* Parses a UID of 8-4-4-4-12 digits, or of 32. */
static bool
parse_uid(struct span span, char uid[37])
{
    if (span.n != 36 && span.n != 32) {
        return false;
    }
    for (size_t i = 0; i < span.n; i++) {
        bool dash = span.n == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
        char c = span.s[i];

        if (dash ? c != '-' && c != '_' : !c || !strchr(UID_HEX, c)) {
            return false;
        }
        uid[i] = dash ? '-' : c;
    }
    uid[span.n] = '\0';
    return true;
}

/* Parses "podUID" or "...-podUID.slice". */
static bool
parse_pod(struct span span, char uid[37])
{
    static const char suffix[] = ".slice";
    static const size_t lengths[] = { 36, 32 };
    size_t n_suffix = strlen(suffix);

    if (span.n > n_suffix
        && !memcmp(span.s + span.n - n_suffix, suffix, n_suffix)) {
        span.n -= n_suffix;
    }
    for (size_t i = 0; i < 2; i++) {
        size_t n = lengths[i];
        const char *pod = span.s + span.n - n - 3;

        if (span.n >= n + 3 && !memcmp(pod, "pod", 3)
            && (span.n == n + 3 || pod[-1] == '-')
            && parse_uid((struct span) { pod + 3, n }, uid)) {
            return true;
        }
    }
    return false;
}

/* Returns the component at '*pathp' and moves '*pathp' behind it. */
static struct span
next_component(const char **pathp)
{
    struct span span = { *pathp + strspn(*pathp, "/"), 0 };

    span.n = strcspn(span.s, "/\n");
    *pathp = span.s + span.n;
    return span;
}

bool
pod_path_parse(const char *path, char uid[37])
{
    bool in_kubepods = false;
    struct span span;
    char found[37];

    while ((span = next_component(&path)).n) {
        const char *colon = memchr(span.s, ':', span.n);
        struct span first = { span.s, colon ? colon - span.s : span.n };

        in_kubepods |= memmem(first.s, first.n, "kubepods", 8) != NULL;
        if (in_kubepods && parse_pod(first, found)) {
            strcpy(uid, found);
            return true;
        }
    }
    return false;
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
