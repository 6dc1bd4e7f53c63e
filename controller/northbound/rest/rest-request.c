/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-request.h"

#include <string.h>

#include "util.h"

/* True if 'path' is one of 'pattern', in which a segment "{...}" stands for
 * any that is not empty and has less than REST_MAX_ARG bytes; these go to
 * 'args' in turn.  'args' is undefined if it is not. */
bool
rest_path_match(const char *pattern, const char *path,
                char args[REST_MAX_ARGS][REST_MAX_ARG])
{
    size_t n = 0;

    for (;;) {
        if (*pattern == '{') {
            size_t size = strcspn(path, "/");

            if (!size || size >= REST_MAX_ARG) {
                return false;
            }
            ovs_assert(n < REST_MAX_ARGS);
            memcpy(args[n], path, size);
            args[n++][size] = '\0';
            path += size;
            pattern += strcspn(pattern, "/");
        } else if (*pattern != *path) {
            return false;
        } else if (!*path) {
            return true;
        } else {
            pattern++;
            path++;
        }
    }
}

/* Returns 'path' as it may be shown: short, and nothing but ASCII.  The caller
 * frees. */
char *
rest_path_quote(const char *path)
{
    char *quote = xmemdup0(path, strnlen(path, REST_MAX_QUOTE));

    for (char *p = quote; *p; p++) {
        if (*p <= ' ' || *p > '~') {
            *p = '?';
        }
    }
    return quote;
}
