/* SPDX-License-Identifier: Apache-2.0 */

#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
allocate_pages(size_t size)
{
    void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return must(p == MAP_FAILED ? NULL : p);
}

void
free_pages(void *p, size_t size)
{
    if (p) {
        munmap(p, size ? size : 1);
    }
}

void
release_pages(void *p, size_t size)
{
    uintptr_t page = sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t) p + page - 1) / page * page;
    uintptr_t end = ((uintptr_t) p + size) / page * page;

    if (first < end) {
        madvise((void *) first, end - first, MADV_DONTNEED);
    }
}

void *
reallocate(void *p, size_t n, size_t size)
{
    return must(reallocarray(p, n ? n : 1, size ? size : 1));
}

void *
grow(void *array, size_t n, size_t *allocated, size_t size)
{
    if (n >= *allocated) {
        *allocated = *allocated ? *allocated * 2 : 8;
        array = reallocate(array, *allocated, size);
    }
    return array;
}

char *
duplicate(const char *s)
{
    return s ? must(strdup(s)) : NULL;
}

char *
make_printable(char *text)
{
    for (char *p = text; p && *p; p++) {
        *p = *p >= ' ' && *p <= '~' ? *p : '?';
    }
    return text;
}

void
free_strings(char **strings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(strings[i]);
    }
    free(strings);
}
