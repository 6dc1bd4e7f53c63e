/* SPDX-License-Identifier: Apache-2.0 */

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
or_abort(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

char *
message(const char *format, ...)
{
    va_list args;
    char *text;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    return or_abort(length < 0 ? NULL : text);
}

void *
allocate(size_t n, size_t size)
{
    return or_abort(calloc(n ? n : 1, size ? size : 1));
}

void *
allocate_lines(size_t size)
{
    return or_abort(aligned_alloc(64, (size + 63) / 64 * 64));
}

void *
reallocate(void *p, size_t n, size_t size)
{
    return or_abort(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *
duplicate(const char *s)
{
    return s ? or_abort(strdup(s)) : NULL;
}
