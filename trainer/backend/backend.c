/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/backend/backend.h"

#include <stdio.h>
#include <stdlib.h>

int
backend_open(const struct backend_class *class, int index, int n_threads,
             struct backend **backendp)
{
    *backendp = NULL;
    return class->open(index, n_threads, backendp);
}

void
backend_close(struct backend *b)
{
    if (b) {
        b->class->close(b);
    }
}

/* Everything is allocated before the first iteration, where there is nothing
 * better to do about a lack of memory than to end. */
void *
backend_alloc(struct backend *b, size_t bytes)
{
    void *d_buffer = b->class->alloc(b, bytes);

    if (!d_buffer) {
        fprintf(stderr, "%s: no memory for %zu bytes\n", b->class->name,
                bytes);
        abort();
    }
    return d_buffer;
}

void
backend_free(struct backend *b, void *d_buffer)
{
    if (d_buffer) {
        b->class->free(b, d_buffer);
    }
}

void
backend_sync(struct backend *b)
{
    if (b->class->sync) {
        b->class->sync(b);
    }
}
