/* SPDX-License-Identifier: Apache-2.0 */

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *
must(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

char *
message_args(const char *format, va_list args)
{
    char *text;

    return must(vasprintf(&text, format, args) < 0 ? NULL : text);
}

char *
message(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = message_args(format, args);
    va_end(args);
    return text;
}

void *
allocate(size_t n, size_t size)
{
    return must(calloc(n ? n : 1, size ? size : 1));
}

void *
allocate_lines(size_t size)
{
    return must(aligned_alloc(64, (size + 63) / 64 * 64));
}

void *
reallocate(void *p, size_t n, size_t size)
{
    return must(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *
duplicate(const char *s)
{
    return s ? must(strdup(s)) : NULL;
}

void
free_strings(char **strings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(strings[i]);
    }
    free(strings);
}
