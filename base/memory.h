/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H 1

/* Messages and memory for code that is built without libopenvswitch.
 *
 * A function that can fail for a reason that a person must read returns NULL
 * or a message() that the caller frees.  If there is no memory left, all
 * functions print "out of memory" and abort. */

#include <stdarg.h>
#include <stddef.h>

char *message(const char *format, ...)
    __attribute__((__format__(__printf__, 1, 2)));
char *message_args(const char *format, va_list)
    __attribute__((__format__(__printf__, 1, 0)));

/* Returns 'p', the result of an allocation; aborts if it is NULL. */
void *must(void *p);

/* Returns zeroed memory for 'n' elements of 'size' bytes, never NULL. */
void *allocate(size_t n, size_t size);

/* Memory that begins at a cache line, not zeroed. */
void *allocate_lines(size_t size);

/* Zeroed memory of 'size' bytes that takes up a page of the machine's memory
 * when it is first written.  free_pages(): frees it; NULL is allowed.
 * release_pages(): gives back the whole pages of a range.  Their content
 * becomes undefined. */
void *allocate_pages(size_t size);
void free_pages(void *, size_t size);
void release_pages(void *, size_t size);

/* Resizes 'p' to 'n' elements of 'size' bytes; new bytes are uninitialized. */
void *reallocate(void *p, size_t n, size_t size);

/* Returns 'array', of 'n' elements of 'size' bytes, with space for one more.
 * '*allocated' is the number of elements that there is space for. */
void *grow(void *array, size_t n, size_t *allocated, size_t size);

/* Returns a copy, or NULL for NULL. */
char *duplicate(const char *);

/* Replaces bytes that are not printable ASCII by '?', so that the text, which
 * may be NULL, is one line of a message.  Returns it. */
char *make_printable(char *);

/* Frees an array of 'n' strings and the strings. */
void free_strings(char **strings, size_t n);

#endif /* base/memory.h */
