/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_BUFFER_H
#define SHIM_BUFFER_H 1

/* Bytes on their way to or from a non-blocking socket: appended at the end,
 * consumed at the start.  What buffer_data() returns need not be aligned, and
 * holds until the next change. */

#include <stddef.h>
#include <sys/types.h>

struct buffer {
    char *base;
    size_t start, end, allocated;       /* base[start .. end) is in use. */
};

void buffer_uninit(struct buffer *);
size_t buffer_size(const struct buffer *);
char *buffer_data(const struct buffer *);
int buffer_append(struct buffer *, const void *, size_t);
void buffer_consume(struct buffer *, size_t);

/* Each returns 0 if it did all that the socket allows now, or a positive
 * errno; ECONNRESET if the other end has closed. */
int buffer_read(struct buffer *, int fd, size_t max);
int buffer_write(struct buffer *, int fd);

#endif /* wire/buffer.h */
