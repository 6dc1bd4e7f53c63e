/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fatal-signal.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "socket-util.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(progress);

#define MAX_DATAGRAMS_A_RUN 200

struct progress_socket {
    int fd;
    char *path;
    progress_func *tell;
    void *aux;
    struct progress_counts counts;
};

int
progress_socket_open(const char *path, progress_func *tell, void *aux,
                     struct progress_socket **psp)
{
    int fd = make_unix_socket(SOCK_DGRAM, true, path, NULL);
    struct progress_socket *ps;

    *psp = NULL;
    if (fd < 0) {
        return -fd;
    }
    /* Jobs are not run by root. */
    if (chmod(path, 0666)) {
        int error = errno;

        close(fd);
        return error;
    }
    ps = xzalloc(sizeof *ps);
    ps->fd = fd;
    ps->path = xstrdup(path);
    ps->tell = tell;
    ps->aux = aux;
    *psp = ps;
    return 0;
}

void
progress_socket_close(struct progress_socket *ps)
{
    if (ps) {
        close(ps->fd);
        fatal_signal_unlink_file_now(ps->path);
        free(ps->path);
        free(ps);
    }
}

static void
take_datagram(struct progress_socket *ps, const char *data, size_t size)
{
    char name[PROGRESS_NAME_SIZE];
    struct progress progress;
    char *error = progress_parse(data, size, name, &progress);

    ps->counts.received++;
    if (error) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "ignoring a progress datagram: %s", error);
        free(error);
        ps->counts.malformed++;
    } else if (!ps->tell(name, &progress, ps->aux)) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

        VLOG_WARN_RL(&rl, "%s: progress of a job that is not on this host",
                     name);
        ps->counts.unknown++;
    }
}

/* Reads what has come, at most some hundreds of datagrams. */
void
progress_socket_run(struct progress_socket *ps)
{
    for (int i = 0; i < MAX_DATAGRAMS_A_RUN; i++) {
        char data[PROGRESS_MAX_BYTES + 1];
        ssize_t n = recv(ps->fd, data, sizeof data, MSG_DONTWAIT);

        if (n < 0) {
            return;
        }
        take_datagram(ps, data, n);
    }
}

void
progress_socket_wait(struct progress_socket *ps)
{
    poll_fd_wait(ps->fd, POLLIN);
}

const struct progress_counts *
progress_socket_counts(const struct progress_socket *ps)
{
    return &ps->counts;
}
