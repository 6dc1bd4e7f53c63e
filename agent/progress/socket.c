/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "agent/launch/launch.h"
#include "fatal-signal.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "socket-util.h"
#include "util.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(progress);

#define MAX_DATAGRAMS_A_RUN 200
#define MAX_PARENTS 16 /* Ancestors of a process that are checked. */

struct progress_socket {
    int fd;
    char *path;
    progress_func *tell;
    void *aux;

    /* Numbers of datagrams. */
    uint64_t received, malformed;
    uint64_t incomplete;        /* Without a member that was none. */
    uint64_t unknown;           /* For unknown jobs. */
    uint64_t refused;           /* Of other processes. */
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
    /* For all users: jobs do not run as root.  Other users cannot put another
     * file in its place: base/run-directory.h. */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int))
        || fcntl(fd, F_SETFD, FD_CLOEXEC) || chmod(path, 0666)) {
        int error = errno;

        close(fd);
        fatal_signal_unlink_file_now(path);
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
take_datagram(struct progress_socket *ps, const char *data, size_t size,
              const struct ucred *sender)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);
    static struct vlog_rate_limit refused = VLOG_RATE_LIMIT_INIT(1, 1);
    char name[PROGRESS_NAME_SIZE];
    struct progress progress;
    char *error = progress_parse(data, size, name, &progress);

    ps->received++;
    if (error) {
        VLOG_WARN_RL(&rl, "ignoring a progress datagram: %s", error);
        free(error);
        ps->malformed++;
        return;
    }
    ps->incomplete += progress.left_out;
    switch (ps->tell(name, &progress, sender, ps->aux)) {
    case PROGRESS_UNKNOWN:
        VLOG_WARN_RL(&rl, "%s: progress of a job that is not on this host",
                     name);
        ps->unknown++;
        break;
    case PROGRESS_REFUSED:
        VLOG_WARN_RL(&refused,
                     "%s: progress refused, process %d of user %u "
                     "is none of the job's",
                     name, (int) sender->pid, (unsigned int) sender->uid);
        ps->refused++;
        break;
    case PROGRESS_TAKEN:
        break;
    }
}

/* Reads the received datagrams, some hundreds at most. */
void
progress_socket_run(struct progress_socket *ps)
{
    for (int i = 0; i < MAX_DATAGRAMS_A_RUN; i++) {
        char control[CMSG_SPACE(sizeof(struct ucred))]
            __attribute__((aligned(__alignof__(struct cmsghdr))));
        char data[PROGRESS_MAX_BYTES + 1];
        struct iovec iov = { data, sizeof data };
        struct msghdr msg = {
            .msg_iov = &iov, .msg_iovlen = 1,
            .msg_control = control, .msg_controllen = sizeof control,
        };
        /* That the kernel passes. */
        struct ucred sender = { .uid = (uid_t) -1, .gid = (gid_t) -1 };
        ssize_t n = recvmsg(ps->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n < 0) {
            return;
        }
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
             c = CMSG_NXTHDR(&msg, c)) {
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS
                && c->cmsg_len == CMSG_LEN(sizeof sender)) {
                memcpy(&sender, CMSG_DATA(c), sizeof sender);
            }
        }
        take_datagram(ps, data, n, &sender);
    }
}

void
progress_socket_wait(struct progress_socket *ps)
{
    poll_fd_wait(ps->fd, POLLIN);
}

struct json *
progress_socket_to_json(const struct progress_socket *ps)
{
    struct json *json = json_object_create();

    json_put_integer(json, "received", ps->received);
    json_put_integer(json, "malformed", ps->malformed);
    json_put_integer(json, "incomplete", ps->incomplete);
    json_put_integer(json, "unknown", ps->unknown);
    json_put_integer(json, "refused", ps->refused);
    return json;
}

/* The senders that may report. */

/* Returns the best claim on the cgroup at 'path', which becomes "/", or on one
 * above it: a cgroup below a job's may be newer than the last scan. */
static const struct claim *
claim_of_cgroup(const struct registry *r, const char *mount, char *path)
{
    const struct claim *best = NULL;

    while (strlen(path) > 1) {
        char *dir = xasprintf("%s%s", mount, path);
        struct claim_what what = { .kind = CLAIMS_CGROUP };
        struct stat s;

        if (!stat(dir, &s)) {
            what.id = s.st_ino;
            best = registry_best_claim(r, &what, best);
        }
        free(dir);
        *strrchr(path, '/') = '\0';
    }
    return best;
}

/* Returns the job of process 'pid' by its cgroup, or by a claim on it or on
 * one of its ancestors, or NULL. */
static struct job *
job_of_sender(const struct registry *r, const char *mount, pid_t pid)
{
    const struct claim *best = NULL;
    struct process process;
    char *path = pid > 0 && mount ? job_cgroup_path(pid) : NULL;

    if (path) {
        best = claim_of_cgroup(r, mount, path);
        free(path);
    }
    for (int i = 0; i < MAX_PARENTS && pid > 1
                    && process_read(pid, &process); i++) {
        best = registry_best_of_process(r, &process, best);
        pid = process.parent;
    }
    return best ? best->job : NULL;
}

bool
progress_may_report(const struct registry *r, const char *mount,
                    const struct ucred *sender, const struct job *job)
{
    const struct job *own;
    uid_t uid;

    if (sender->uid == 0 && process_is_of_host(sender->pid)) {
        return true;
    }
    own = job_of_sender(r, mount, sender->pid);
    return own
           && (own == job
               || (job->has_uid && process_user(sender->pid, &uid)
                   && uid == job->uid
                   && !strncmp(own->name, job->name,
                               strcspn(own->name, "/") + 1)));
}
