/* SPDX-License-Identifier: Apache-2.0 */

/* Preloaded into a shim, makes the kernel leave frames in a transmit ring
 * while the file named by STUCK exists: it suppresses the empty send() and
 * sendto() that start the transmission.  To the driver it looks like a busy
 * kernel. */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool
is_stuck(size_t size)
{
    const char *file = getenv("STUCK");

    return !size && file && !access(file, F_OK);
}

ssize_t
sendto(int fd, const void *data, size_t size, int flags,
       const struct sockaddr *to, socklen_t to_size)
{
    static ssize_t (*next)(int, const void *, size_t, int,
                           const struct sockaddr *, socklen_t);

    if (is_stuck(size)) {
        errno = EAGAIN;
        return -1;
    }
    if (!next) {
        *(void **) &next = dlsym(RTLD_NEXT, "sendto");
    }
    return next(fd, data, size, flags, to, to_size);
}

ssize_t
send(int fd, const void *data, size_t size, int flags)
{
    return sendto(fd, data, size, flags, NULL, 0);
}
