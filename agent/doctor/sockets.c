/* SPDX-License-Identifier: Apache-2.0 */

/* Checks that need an attempt: socket diagnosis, and the daemons to which an
 * agent connects. */

#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/doctor/checks.h"
#include "agent/identify/sock-diag.h"
#include "openvswitch/poll-loop.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

#define ANSWER_MS 2000

struct seen {
    size_t n;                   /* Number of sockets. */
    size_t n_cgroups;           /* Number of sockets whose cgroup the kernel
                                 * reports. */
};

static void
see(const struct sock_info *info, void *seen_)
{
    struct seen *seen = seen_;

    seen->n++;
    seen->n_cgroups += info->cgroup != 0;
}

void
doctor_check_sock_diag(struct doctor *d)
{
    struct sock_diag *sd;
    struct seen seen = { 0, 0 };
    int error;

    if (!doctor_kernel_from(d, 5, 8)) {
        doctor_add(d, "sockets", DOCTOR_MISSING, "Linux 5.8",
                   "the kernel does not tell the cgroups of sockets: no flow "
                   "is known to be a job's");
        return;
    }
    if (*d->config->root) {
        return;
    }
    error = sock_diag_open(NULL, &sd);
    if (!error) {
        error = sock_diag_dump(sd, NULL, 0, see, &seen);
        sock_diag_close(sd);
    }
    if (error) {
        doctor_add(d, "sockets", DOCTOR_MISSING,
                   "a kernel with CONFIG_INET_DIAG, and CAP_NET_ADMIN",
                   "the kernel does not list its sockets (%s)",
                   ovs_strerror(error));
    } else if (seen.n && !seen.n_cgroups) {
        doctor_add(d, "sockets", DOCTOR_MISSING,
                   "a kernel with CONFIG_SOCK_CGROUP_DATA",
                   "the kernel tells the cgroup of none of %"PRIuSIZE
                   " sockets", seen.n);
    } else {
        doctor_add(d, "sockets", DOCTOR_OK, NULL, "the kernel tells their "
                   "cgroups");
    }
}

/* Returns 0 if a connection to 'remote' succeeds within ANSWER_MS, else an
 * errno value. */
static int
try_remote(const char *remote)
{
    long long deadline = time_msec() + ANSWER_MS;
    struct stream *stream;
    int error = stream_open(remote, &stream, 0);

    while (!error && (error = stream_connect(stream)) == EAGAIN) {
        if (time_msec() > deadline) {
            error = ETIMEDOUT;
            break;
        }
        error = 0;
        stream_run(stream);
        stream_run_wait(stream);
        stream_connect_wait(stream);
        poll_timer_wait_until(deadline + 1);
        poll_block();
    }
    if (stream) {
        stream_close(stream);
    }
    return error;
}

static void
check_remote(struct doctor *d, const char *what, const char *option,
             const char *remote)
{
    int error = try_remote(remote);

    if (error) {
        char *mend = xasprintf("start it, or name another with %s", option);

        doctor_add(d, "daemons", DOCTOR_MISSING, mend, "%s: %s does not "
                   "answer (%s)", remote, what, ovs_strerror(error));
        free(mend);
    } else {
        doctor_add(d, "daemons", DOCTOR_OK, NULL, "%s: %s answers", remote,
                   what);
    }
}

void
doctor_check_daemons(struct doctor *d)
{
    const struct doctor_config *c = d->config;

    if (*c->root) {
        return;
    }
    if (c->db) {
        check_remote(d, "the hosts database", "--db", c->db);
    }
    if (c->controller) {
        check_remote(d, "the controller", "--controller", c->controller);
    }
    if (c->shim) {
        char *remote = xasprintf("unix:%s", c->shim);

        check_remote(d, "the shim", "--shim", remote);
        free(remote);
    }
}
