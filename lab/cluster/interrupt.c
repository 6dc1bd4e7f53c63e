/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "openvswitch/poll-loop.h"
#include "util.h"

static int fd = -1;
static int first;               /* What interrupt_signal() returns. */

void
interrupt_init(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (fd < 0) {
        fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        if (fd < 0) {
            ovs_fatal(errno, "signalfd");
        }
    }
}

int
interrupt_signal(void)
{
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD && !first) {
            first = info.ssi_signo;
        }
    }
    return first;
}

void
interrupt_wait(void)
{
    poll_fd_wait(fd, POLLIN);
}

void
interrupt_sleep(int ms)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    poll(&pfd, 1, ms);
}
