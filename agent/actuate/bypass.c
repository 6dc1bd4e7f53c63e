/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/bypass.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/actuate/watchdog.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "wire/shim-protocol.h"
#include "shim/ports/kernel-path.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(bypass);

#define AGAIN_MS 1000           /* Between two looks at a path that is up, or
                                 * tries to raise one. */

enum path_state {
    PATH_UNKNOWN,               /* A former agent may have raised it. */
    PATH_UP,
    PATH_DOWN,
};

struct bypass {
    struct watchdog watchdog;
    pid_t pid;                  /* Of the shim, 0 if not known. */
    int pidfd;                  /* Readable when it ends, or -1. */
    int netns;                  /* Its namespace, or -1. */

    struct bypass_place place;  /* Without its namespace, once 'path' is
                                 * there. */
    struct kernel_path *path;   /* NULL until the place is known. */
    enum path_state state;
    long long next;             /* When to see to the path again. */
    int last_error;             /* So that each is logged once. */
};

static bool
is_iface(const char *name, size_t length)
{
    return length && length < 16 && strcspn(name, "/: \t\n") >= length;
}

char *
bypass_place_parse(const char *text, struct bypass_place *place)
{
    const char *colon = strrchr(text, ':');
    const char *iface = colon ? colon + 1 : text;
    const char *comma = strchr(iface, ',');
    size_t netns = colon ? colon - text : 0;

    memset(place, 0, sizeof *place);
    if (!comma || !is_iface(iface, comma - iface)
        || !is_iface(comma + 1, strlen(comma + 1))
        || strchr(comma + 1, ',') || (colon && !netns)
        || netns >= sizeof place->netns || memchr(text, '/', netns)) {
        return xasprintf("\"%s\" is not two interfaces, [NETNS:]IFACE,IFACE "
                         "is allowed", text);
    }
    memcpy(place->netns, text, netns);
    memcpy(place->iface, iface, comma - iface);
    strcpy(place->other, comma + 1);
    return NULL;
}

/* Forgets the process, but not where it stood. */
static void
forget(struct bypass *b)
{
    if (b->pidfd >= 0) {
        close(b->pidfd);
    }
    if (b->netns >= 0) {
        close(b->netns);
    }
    b->pidfd = b->netns = -1;
    b->pid = 0;
}

/* Opens the path in 'netns'; the one that was open before stays if that
 * fails. */
static void
open_path(struct bypass *b, int netns)
{
    struct kernel_path *path;
    int error = kernel_path_open(netns, &path);

    if (error) {
        VLOG_WARN("no bypass: cannot reach the shim's network namespace (%s)",
                  ovs_strerror(error));
        return;
    }
    kernel_path_close(b->path);
    b->path = path;
}

static void
open_place(struct bypass *b)
{
    char *name = xasprintf("/run/netns/%s", b->place.netns);
    int netns = b->place.netns[0] ? open(name, O_RDONLY | O_CLOEXEC) : -1;

    if (b->place.netns[0] && netns < 0) {
        VLOG_WARN("no bypass until the shim was there: %s: %s", name,
                  ovs_strerror(errno));
    } else {
        open_path(b, netns);
    }
    if (netns >= 0) {
        close(netns);
    }
    free(name);
}

/* 'place' may be null. */
struct bypass *
bypass_create(const struct bypass_place *place, long long now)
{
    struct bypass *b = xzalloc(sizeof *b);

    watchdog_init(&b->watchdog, now);
    b->pidfd = b->netns = -1;
    if (place) {
        b->place = *place;
        open_place(b);
    }
    return b;
}

/* Leaves the path as it is. */
void
bypass_destroy(struct bypass *b)
{
    if (b) {
        forget(b);
        kernel_path_close(b->path);
        free(b);
    }
}

/* A shim is at the other end of 'fd'.  What is opened here stays good when its
 * process has ended; that it was this process is certain as long as the
 * connection holds. */
void
bypass_met(struct bypass *b, int fd, long long now)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    forget(b);
    watchdog_met(&b->watchdog, now);
    if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) && cred.pid) {
        char *name = xasprintf("/proc/%d/ns/net", cred.pid);

        b->pid = cred.pid;
        b->pidfd = syscall(SYS_pidfd_open, cred.pid, 0);
        b->netns = open(name, O_RDONLY | O_CLOEXEC);
        free(name);
    }
}

void
bypass_asked(struct bypass *b, long long now)
{
    watchdog_asked(&b->watchdog, now);
}

static void
take_place(struct bypass *b, const struct shim_ports *ports)
{
    ovs_strlcpy(b->place.iface, ports->host, sizeof b->place.iface);
    ovs_strlcpy(b->place.other, ports->uplink, sizeof b->place.other);
    if (b->netns >= 0) {
        open_path(b, b->netns);
        close(b->netns);
        b->netns = -1;
    }
}

/* 'ports' is null if it does not tell them: an older shim, of which is known
 * only that it answers. */
void
bypass_answered(struct bypass *b, const struct shim_ports *ports)
{
    if (ports) {
        watchdog_answered(&b->watchdog, ports->turns, ports->turn_age_ns);
        take_place(b, ports);
    } else {
        watchdog_answered(&b->watchdog, 1, 0);
    }
}

void
bypass_lost(struct bypass *b, long long now)
{
    watchdog_lost(&b->watchdog, now);
}

/* Adds what 'format' finds in the lines of /proc/PID/task/PID/'leaf' of the
 * shim's main thread, after the name in brackets if there is one. */
static uint64_t
sum_lines(const struct bypass *b, const char *leaf, const char *format)
{
    char *name = xasprintf("/proc/%d/task/%d/%s", b->pid, b->pid, leaf);
    FILE *stream = fopen(name, "re");
    unsigned long long n;
    uint64_t sum = 0;
    char line[512];

    while (stream && fgets(line, sizeof line, stream)) {
        const char *text = strrchr(line, ')');

        if (sscanf(text ? text + 1 : line, format, &n) == 1) {
            sum += n;
        }
    }
    if (stream) {
        fclose(stream);
    }
    free(name);
    return sum;
}

/* How often the thread that forwards was put on a CPU, and what it took of it:
 * one of the two changes when it runs. */
static uint64_t
count_steps(const struct bypass *b, long long now)
{
    /* Of a process that we cannot see we believe no ill. */
    if (!b->pid) {
        return now;
    }
    return sum_lines(b, "status", "voluntary_ctxt_switches: %llu")
           + sum_lines(b, "status", "nonvoluntary_ctxt_switches: %llu")
           + sum_lines(b, "stat", " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u "
                       "%*u %llu")
           + sum_lines(b, "stat", " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u "
                       "%*u %*u %llu");
}

static void
look_at_process(struct bypass *b, long long now)
{
    struct pollfd pfd = { .fd = b->pidfd, .events = POLLIN };

    if (b->watchdog.exists
        && (b->pidfd < 0 ? !b->watchdog.connected
            : poll(&pfd, 1, 0) > 0)) {
        watchdog_died(&b->watchdog);
    }
    if (watchdog_wants_progress(&b->watchdog, now)) {
        watchdog_progress(&b->watchdog, now, count_steps(b, now));
    }
}

static void
raise_path(struct bypass *b)
{
    int error = kernel_path_raise(b->path, b->place.iface, b->place.other);

    if (error && error != b->last_error) {
        VLOG_ERR("the shim does not forward, and the kernel does not join %s "
                 "and %s (%s)", b->place.iface, b->place.other,
                 ovs_strerror(error));
    } else if (!error && b->state != PATH_UP) {
        VLOG_WARN("the shim does not forward: the kernel joins %s and %s, "
                  "without order", b->place.iface, b->place.other);
    }
    b->state = error ? PATH_UNKNOWN : PATH_UP;
    b->last_error = error;
}

static void
lower_path(struct bypass *b)
{
    int error = kernel_path_lower(b->path, b->place.iface, b->place.other);

    if (error && error != b->last_error) {
        VLOG_ERR("the shim forwards again, but so does the kernel between %s "
                 "and %s (%s)", b->place.iface, b->place.other,
                 ovs_strerror(error));
    } else if (!error && b->state == PATH_UP) {
        VLOG_INFO("the shim forwards again");
    }
    b->state = error ? PATH_UNKNOWN : PATH_DOWN;
    b->last_error = error;
}

void
bypass_run(struct bypass *b, long long now)
{
    enum watchdog_opinion opinion;
    enum path_state right;

    look_at_process(b, now);
    opinion = watchdog_judge(&b->watchdog, now);
    if (opinion == WATCHDOG_UNSURE || !b->path) {
        return;
    }

    right = opinion == WATCHDOG_FAILS ? PATH_UP : PATH_DOWN;
    if (b->state != right ? !b->last_error || now >= b->next
                          : right == PATH_UP && now >= b->next) {
        b->next = now + AGAIN_MS;
        if (right == PATH_UP) {
            raise_path(b);
        } else {
            lower_path(b);
        }
    }
}

void
bypass_wait(const struct bypass *b, long long now)
{
    long long next = watchdog_next(&b->watchdog, now);

    if (next != LLONG_MAX) {
        poll_timer_wait_until(next);
    }
    if (b->pidfd >= 0 && b->watchdog.exists) {
        poll_fd_wait(b->pidfd, POLLIN);
    }
    if (b->path && (b->state == PATH_UP || b->last_error)) {
        poll_timer_wait_until(b->next);
    }
}

bool
bypass_is_up(const struct bypass *b)
{
    return b->state == PATH_UP;
}
