/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/buffer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define CHUNK 16384             /* Bytes to read at a time. */

void
buffer_uninit(struct buffer *b)
{
    free(b->base);
    memset(b, 0, sizeof *b);
}

size_t
buffer_size(const struct buffer *b)
{
    return b->end - b->start;
}

char *
buffer_data(const struct buffer *b)
{
    return b->base ? b->base + b->start : NULL;
}

/* Provides space for 'size' bytes at the end.  Returns 0 or ENOMEM. */
static int
reserve(struct buffer *b, size_t size)
{
    size_t used = buffer_size(b), allocated = b->allocated;
    char *base;

    if (b->start) {
        memmove(b->base, b->base + b->start, used);
        b->start = 0;
        b->end = used;
    }
    if (b->allocated - used >= size) {
        return 0;
    }
    while (allocated - used < size) {
        allocated = allocated ? allocated * 2 : CHUNK;
    }
    base = realloc(b->base, allocated);
    if (!base) {
        return ENOMEM;
    }
    b->base = base;
    b->allocated = allocated;
    return 0;
}

int
buffer_append(struct buffer *b, const void *data, size_t size)
{
    int error = size ? reserve(b, size) : 0;

    if (!error && size) {
        memcpy(b->base + b->end, data, size);
        b->end += size;
    }
    return error;
}

void
buffer_consume(struct buffer *b, size_t size)
{
    b->start += size;
    if (b->start == b->end) {
        b->start = b->end = 0;
    }
}

int
buffer_read(struct buffer *b, int fd, size_t max)
{
    while (buffer_size(b) < max) {
        ssize_t n;

        if (reserve(b, CHUNK)) {
            return ENOMEM;
        }
        n = recv(fd, b->base + b->end, CHUNK, MSG_DONTWAIT);
        if (n > 0) {
            b->end += n;
        } else if (!n) {
            return ECONNRESET;
        } else if (errno != EINTR) {
            return errno == EAGAIN ? 0 : errno;
        }
    }
    return 0;
}

int
buffer_write(struct buffer *b, int fd)
{
    while (buffer_size(b)) {
        ssize_t n = send(fd, buffer_data(b), buffer_size(b),
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0) {
            buffer_consume(b, n);
        } else if (errno != EINTR) {
            return errno == EAGAIN ? 0 : errno;
        }
    }
    return 0;
}

int
unix_connect(const char *path, int *fdp)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd;

    if (strlen(path) >= sizeof sun.sun_path) {
        return ENAMETOOLONG;
    }
    strcpy(sun.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    if (connect(fd, (struct sockaddr *) &sun, sizeof sun)) {
        int error = errno;

        close(fd);
        return error;
    }
    *fdp = fd;
    return 0;
}

int
unix_wait(int fd, short events, long long until)
{
    for (;;) {
        struct pollfd pfd = { .fd = fd, .events = events };
        long long left = until - clock_monotonic_ms();
        int n = left > 0 ? poll(&pfd, 1, left) : 0;

        if (n >= 0) {
            return n ? 0 : ETIMEDOUT;
        }
        if (errno != EINTR) {
            return errno;
        }
    }
}
