/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MESSAGE_H
#define MESSAGE_H 1

/* Messages, and memory whose lack ends the program.
 *
 * A function that can fail for a reason that a person must read returns NULL
 * or a message() that the caller frees.  The trainer is built without
 * libopenvswitch, whose xmalloc() this stands for. */

#include <stddef.h>

char *message(const char *format, ...)
    __attribute__((__format__(__printf__, 1, 2)));

/* Zeroed memory.  Aborts if there is none. */
void *allocate(size_t n, size_t size);

/* Memory that begins at a cache line, not zeroed. */
void *allocate_lines(size_t size);

/* Memory of another size, which begins with what was in 'p'. */
void *reallocate(void *p, size_t n, size_t size);
char *duplicate(const char *);

#endif /* base/memory.h */
