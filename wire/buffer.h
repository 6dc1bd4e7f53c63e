/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_BUFFER_H
#define SHIM_BUFFER_H 1

/* Client of a Unix stream socket that does not wait, and its queues: bytes are
 * appended at the end and consumed at the start.
 *
 * Plain C without any library. */

#include <stddef.h>
#include <sys/types.h>

struct buffer {
    char *base;
    size_t start, end, allocated;       /* base[start .. end) is in use. */
};

void buffer_uninit(struct buffer *);
size_t buffer_size(const struct buffer *);

/* Returns the first byte, of any alignment, valid until the next change. */
char *buffer_data(const struct buffer *);

/* Returns 0 or ENOMEM. */
int buffer_append(struct buffer *, const void *, size_t);
void buffer_consume(struct buffer *, size_t);

/* Read until the buffer has 'max' bytes, or write all of it, without waiting.
 * Each returns 0 or a positive errno; ECONNRESET if the remote end has
 * closed. */
int buffer_read(struct buffer *, int fd, size_t max);
int buffer_write(struct buffer *, int fd);

/* Connects to the socket 'path' without waiting.  Returns 0 or a positive
 * errno; EAGAIN if the server's backlog is full. */
int unix_connect(const char *path, int *fdp);

/* Waits until 'fd' has one of the 'events' of poll(), at most until 'until',
 * in ms of the monotonic clock.  Returns 0 or a positive errno: ETIMEDOUT. */
int unix_wait(int fd, short events, long long until);

#endif /* wire/buffer.h */
