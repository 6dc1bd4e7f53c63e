/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/switch-buffers.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

#define BUFFER_BYTES (64 << 20) /* More than all queues of all ports. */

/* Widens 'fd' if it is a packet socket.  The kernel doubles the value that is
 * set, so a smaller value means that the socket is not widened yet. */
static void
widen(int fd)
{
    static const int options[][2] = {
        { SO_SNDBUF, SO_SNDBUFFORCE }, { SO_RCVBUF, SO_RCVBUFFORCE },
    };
    int domain = 0, bytes = BUFFER_BYTES;
    socklen_t size = sizeof domain;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size)
        || domain != AF_PACKET) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        int now = 0;

        size = sizeof now;
        if (!getsockopt(fd, SOL_SOCKET, options[i][0], &now, &size)
            && now < BUFFER_BYTES) {
            setsockopt(fd, SOL_SOCKET, options[i][1], &bytes, sizeof bytes);
        }
    }
}

void
switch_buffers_widen(pid_t pid)
{
    int pidfd = syscall(SYS_pidfd_open, pid, 0);
    char *name = xasprintf("/proc/%d/fd", (int) pid);
    DIR *dir = pidfd < 0 ? NULL : opendir(name);
    struct dirent *de;

    while (dir && (de = readdir(dir))) {
        int fd = syscall(SYS_pidfd_getfd, pidfd, atoi(de->d_name), 0);

        if (fd >= 0) {
            widen(fd);
            close(fd);
        }
    }
    if (dir) {
        closedir(dir);
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    free(name);
}
