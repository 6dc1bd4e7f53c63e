/* SPDX-License-Identifier: Apache-2.0 */

#include "base/similar.h"

#include <stdint.h>
#include <string.h>

#define MAX_LETTERS 63

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t
similar_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t rows[3][MAX_LETTERS + 1]; /* By i modulo 3: distances of the
                                      * first i letters of 'a' from the
                                      * first j of 'b'. */

    if (n > MAX_LETTERS || m > MAX_LETTERS) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];

        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                row[j] = i + j;
                continue;
            }
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]),
                           least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2]
                && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], second[j - 2] + 1);
            }
        }
    }
    return rows[n % 3][m];
}

bool
similar_is(const char *text, const char *name)
{
    size_t distance = similar_distance(text, name);

    return distance != SIZE_MAX && 3 * distance <= strlen(name);
}

const char *
similar_name(const char *text, const char *const names[])
{
    const char *best = NULL;

    for (; *names; names++) {
        if (similar_is(text, *names)
            && (!best
                || similar_distance(text, *names)
                       < similar_distance(text, best))) {
            best = *names;
        }
    }
    return best;
}
