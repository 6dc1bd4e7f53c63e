/* SPDX-License-Identifier: Apache-2.0 */

#include "base/service-notify.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ALIVE_MS 1000

int
service_notify(const char *state)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    const char *path = getenv("NOTIFY_SOCKET");
    size_t size = path ? strlen(path) : 0;
    ssize_t n;
    int fd, error;

    if (!size) {
        return 0;
    } else if (size >= sizeof sun.sun_path || !strchr("/@", *path)) {
        return EINVAL;
    }
    memcpy(sun.sun_path, path, size);
    if (*path == '@') {         /* In the abstract name space. */
        sun.sun_path[0] = '\0';
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    n = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
               (const struct sockaddr *) &sun,
               offsetof(struct sockaddr_un, sun_path) + size);
    error = n < 0 ? errno : 0;
    close(fd);
    return error;
}

long long
service_alive(long long now)
{
    static long long next = LLONG_MIN;

    if (!getenv("NOTIFY_SOCKET")) {
        return LLONG_MAX;
    }
    if (now >= next) {
        service_notify("WATCHDOG=1");
        next = now + ALIVE_MS;
    }
    return next;
}
