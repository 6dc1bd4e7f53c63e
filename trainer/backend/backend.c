/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/backend/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const struct backend_class *const backend_classes[] = {
#ifdef HAVE_CUDA
    &backend_cuda,
#endif
    &backend_cpu,
    NULL,
};

int
backend_open(const struct backend_class *class, int index, int n_threads,
             struct backend **backendp)
{
    *backendp = NULL;
    return class->open(index, n_threads, backendp);
}

static const char *
why_not(int error)
{
    return error == ENOENT ? "not in this build"
           : error == ENODEV ? "no device here"
           : strerror(error);
}

char *
backend_open_named(const char *name, int n_threads, struct backend **backendp)
{
    bool any = !strcmp(name, "auto");
    int error = ENOENT;

    for (int i = 0; backend_classes[i]; i++) {
        if (any || !strcmp(name, backend_classes[i]->name)) {
            error = backend_open(backend_classes[i], 0, n_threads, backendp);
            if (!error) {
                return NULL;
            }
        }
    }
    *backendp = NULL;
    return message("--backend: \"%s\": %s, \"auto\" takes what there is",
                   name, why_not(error));
}

void
backend_close(struct backend *b)
{
    if (b) {
        b->class->close(b);
    }
}

/* Memory is allocated before the first iteration; without it the program
 * ends. */
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

void *
backend_alloc_host(struct backend *b, size_t bytes)
{
    void *p = b->class->alloc_host ? b->class->alloc_host(b, bytes)
                                   : malloc(bytes ? bytes : 1);

    if (!p) {
        fprintf(stderr, "%s: no memory for %zu bytes of the host\n",
                b->class->name, bytes);
        abort();
    }
    return memset(p, 0, bytes);
}

void
backend_free_host(struct backend *b, void *p)
{
    if (b->class->free_host) {
        b->class->free_host(b, p);
    } else {
        free(p);
    }
}

void
backend_sync(struct backend *b)
{
    if (b->class->sync) {
        b->class->sync(b);
    }
}

const char *
backend_failure(const struct backend *b)
{
    return b->class->failure ? b->class->failure(b) : NULL;
}
