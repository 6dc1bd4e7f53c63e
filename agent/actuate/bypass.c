/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/bypass.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/identify/process.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "shim/ports/kernel-path.h"
#include "util.h"
#include "wire/shim-protocol.h"

VLOG_DEFINE_THIS_MODULE(bypass);

#define RETRY_MS 1000           /* Between checks of an active bypass, or
                                 * attempts to change it. */

#define REPLY_MS                                        \
    100 /* Without a reply, before the kernel's data is \
         * read. */
#define STILL_MS                                        \
    400 /* Without having run, before the shim counts   \
         * as hung: longer than a busy machine delays a \
         * thread that is ready to run. */

void
watchdog_init(struct watchdog *w, long long now)
{
    memset(w, 0, sizeof *w);
    w->since = now;
}

/* A new connection may be to another process, so everything starts over. */
void
watchdog_connected(struct watchdog *w, long long now)
{
    watchdog_init(w, now);
    w->known = w->exists = w->connected = true;
}

void
watchdog_requested(struct watchdog *w, long long now)
{
    if (!w->requested) {
        w->requested = now;
    }
}

void
watchdog_received(struct watchdog *w, uint64_t polls, uint64_t poll_age_ns)
{
    w->requested = w->checked = 0;
    w->stuck = poll_age_ns > WATCHDOG_HUNG_MS * UINT64_C(1000000);
    w->polls = polls > 0 && !w->stuck;
}

void
watchdog_disconnected(struct watchdog *w, long long now)
{
    w->connected = false;
    w->requested = 0;
    w->since = now;
}

static bool
is_unresponsive(const struct watchdog *w, long long now)
{
    return w->exists
           && (!w->connected
               || (w->requested && now - w->requested >= REPLY_MS));
}

bool
watchdog_wants_progress(const struct watchdog *w, long long now)
{
    return is_unresponsive(w, now) && now - w->checked >= WATCHDOG_CHECK_MS;
}

void
watchdog_progress(struct watchdog *w, long long now, uint64_t steps)
{
    if (!w->checked || steps != w->steps) {
        w->ran = now;
    }
    w->steps = steps;
    w->checked = now;
}

enum watchdog_verdict
watchdog_judge(const struct watchdog *w, long long now)
{
    if (!w->exists) {
        /* After a takeover the new shim connects before the old connection
         * ends.  After the agent's start, a running shim has some time to be
         * connected to. */
        return (!w->connected
                        && (w->known || now - w->since >= WATCHDOG_HUNG_MS)
                    ? WATCHDOG_FAILS
                    : WATCHDOG_UNSURE);
    }
    if (w->stuck) {
        return WATCHDOG_FAILS;
    }
    if (is_unresponsive(w, now)) {
        return w->checked && w->checked - w->ran >= STILL_MS ? WATCHDOG_FAILS
                                                             : WATCHDOG_UNSURE;
    }
    return w->polls ? WATCHDOG_FORWARDS : WATCHDOG_UNSURE;
}

long long
watchdog_next(const struct watchdog *w, long long now)
{
    if (!w->exists) {
        return w->since + WATCHDOG_HUNG_MS > now ? w->since + WATCHDOG_HUNG_MS
                                                 : LLONG_MAX;
    }
    if (is_unresponsive(w, now)) {
        return w->checked ? w->checked + WATCHDOG_CHECK_MS : now;
    }
    return w->requested ? w->requested + REPLY_MS : LLONG_MAX;
}

enum path_state {
    PATH_UNKNOWN,               /* A previous agent may have enabled it. */
    PATH_UP,
    PATH_DOWN,
};

struct bypass {
    struct watchdog watchdog;
    pid_t pid;                  /* Of the shim, 0 if unknown. */
    int pidfd;                  /* Readable when the shim exits, or -1. */

    struct bypass_ports ports; /* Interfaces to join, "" until known. */
    struct route_socket *path; /* In their namespace, NULL until that is
                                * known. */
    enum path_state state;
    long long next;             /* Time of the next check or attempt. */
    int last_error;             /* So that each error is logged once. */
};

char *
bypass_ports_parse(const char *text, struct bypass_ports *p)
{
    const char *colon = strrchr(text, ':');
    int n = 0, end = 0;

    memset(p, 0, sizeof *p);
    if (colon && sscanf(text, "%63[^/:]%n", p->netns, &n) == 1
        && text + n == colon) {
        n++;
    }
    if (sscanf(text + n, "%15[^/:, \t\n],%15[^/:, \t\n]%n", p->iface, p->other,
               &end)
            != 2
        || text[n + end]) {
        return xasprintf(
            "\"%s\" is not two interfaces; expected [NETNS:]IFACE,IFACE",
            text);
    }
    return NULL;
}

/* Closes what belongs to the shim's process. */
static void
close_process(struct bypass *b)
{
    if (b->pidfd >= 0) {
        close(b->pidfd);
    }
    b->pidfd = -1;
    b->pid = 0;
}

/* Opens the path in the network namespace of the file 'name', NULL for the
 * agent's, in place of the open one unless that fails. */
static void
open_path(struct bypass *b, const char *name)
{
    int netns = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    struct route_socket *path;
    int error = name && netns < 0 ? errno : route_socket_open(netns, &path);

    if (error) {
        VLOG_WARN("bypass unavailable: cannot enter the shim's network "
                  "namespace (%s)",
                  ovs_strerror(error));
    } else {
        route_socket_close(b->path);
        b->path = path;
    }
    if (netns >= 0) {
        close(netns);
    }
}

/* 'ports' may be NULL: they are learned from the first shim. */
struct bypass *
bypass_create(const struct bypass_ports *ports, long long now)
{
    struct bypass *b = xzalloc(sizeof *b);

    watchdog_init(&b->watchdog, now);
    b->pidfd = -1;
    if (ports) {
        char *name = xasprintf("/run/netns/%s", ports->netns);

        b->ports = *ports;
        open_path(b, ports->netns[0] ? name : NULL);
        free(name);
    }
    return b;
}

/* An active bypass stays active. */
void
bypass_destroy(struct bypass *b)
{
    if (b) {
        close_process(b);
        route_socket_close(b->path);
        free(b);
    }
}

/* Notes that 'fd' is connected to a shim.  What is opened here stays valid
 * when the process exits; while the connection exists, the process id cannot
 * have been reused. */
void
bypass_connected(struct bypass *b, int fd, long long now)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    close_process(b);
    watchdog_connected(&b->watchdog, now);
    if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) && cred.pid) {
        char *name = xasprintf("/proc/%d/ns/net", cred.pid);

        b->pid = cred.pid;
        b->pidfd = syscall(SYS_pidfd_open, cred.pid, 0);
        open_path(b, name);
        free(name);
    }
}

void
bypass_requested(struct bypass *b, long long now)
{
    watchdog_requested(&b->watchdog, now);
}

/* Handles a reply to SHIM_PORTS.  'ports' is NULL if the shim does not know
 * the request: an older version, which replies and therefore runs. */
void
bypass_received(struct bypass *b, const struct shim_ports *ports)
{
    if (ports) {
        watchdog_received(&b->watchdog, ports->polls, ports->poll_age_ns);
        ovs_strlcpy(b->ports.iface, ports->host, sizeof b->ports.iface);
        ovs_strlcpy(b->ports.other, ports->uplink, sizeof b->ports.other);
    } else {
        watchdog_received(&b->watchdog, 1, 0);
    }
}

void
bypass_disconnected(struct bypass *b, long long now)
{
    watchdog_disconnected(&b->watchdog, now);
}

/* Returns the number that follows 'name' in 'text', or 0 without that name. */
static uint64_t
number_after(const char *text, const char *name)
{
    const char *p = strstr(text, name);

    return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

/* Returns the context switches and CPU time of the forwarding thread, which is
 * the shim's main thread: the sum changes whenever the thread runs. */
static uint64_t
count_steps(const struct bypass *b, long long now)
{
    unsigned long long user = 0, system = 0;
    char leaf[64], text[16384];
    uint64_t switches;
    const char *p;

    /* A process that the agent cannot see counts as running. */
    if (!b->pid) {
        return now;
    }
    snprintf(leaf, sizeof leaf, "task/%d/status", b->pid);
    process_read_file(b->pid, leaf, text, sizeof text);
    switches = number_after(text, "\nvoluntary_ctxt_switches:")
               + number_after(text, "\nnonvoluntary_ctxt_switches:");

    /* The name before the numbers, in parentheses, may contain any
     * character. */
    snprintf(leaf, sizeof leaf, "task/%d/stat", b->pid);
    process_read_file(b->pid, leaf, text, sizeof text);
    p = strrchr(text, ')');
    if (p) {
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
               &user, &system);
    }
    return switches + user + system;
}

static void
check_process(struct bypass *b, long long now)
{
    struct pollfd pfd = { .fd = b->pidfd, .events = POLLIN };

    if (b->watchdog.exists
        && (b->pidfd < 0 ? !b->watchdog.connected : poll(&pfd, 1, 0) > 0)) {
        b->watchdog.exists = false;
    }
    if (watchdog_wants_progress(&b->watchdog, now)) {
        watchdog_progress(&b->watchdog, now, count_steps(b, now));
    }
}

/* Enables or disables the bypass. */
static void
change_path(struct bypass *b, enum path_state wanted)
{
    bool up = wanted == PATH_UP;
    int error = (up ? kernel_path_raise : kernel_path_lower)(
        b->path, b->ports.iface, b->ports.other);

    if (error && error != b->last_error) {
        VLOG_ERR("the shim %s, %s the bypass between %s and %s cannot be %s "
                 "(%s)", up ? "does not forward" : "forwards again",
                 up ? "and" : "but", b->ports.iface, b->ports.other,
                 up ? "enabled" : "disabled", ovs_strerror(error));
    } else if (!error && up && b->state != PATH_UP) {
        VLOG_WARN("the shim does not forward: kernel bypass between %s and %s "
                  "enabled, without priorities",
                  b->ports.iface, b->ports.other);
    } else if (!error && !up && b->state == PATH_UP) {
        VLOG_INFO("the shim forwards again, bypass disabled");
    }
    b->state = error ? PATH_UNKNOWN : wanted;
    b->last_error = error;
}

void
bypass_run(struct bypass *b, long long now)
{
    enum watchdog_verdict verdict;
    enum path_state wanted;

    check_process(b, now);
    verdict = watchdog_judge(&b->watchdog, now);
    if (verdict == WATCHDOG_UNSURE || !b->path || !b->ports.iface[0]) {
        return;
    }

    wanted = verdict == WATCHDOG_FAILS ? PATH_UP : PATH_DOWN;
    if (b->state != wanted ? !b->last_error || now >= b->next
                          : wanted == PATH_UP && now >= b->next) {
        b->next = now + RETRY_MS;
        change_path(b, wanted);
    }
}

void
bypass_wait(const struct bypass *b, long long now)
{
    poll_timer_wait_until(watchdog_next(&b->watchdog, now));
    if (b->pidfd >= 0 && b->watchdog.exists) {
        poll_fd_wait(b->pidfd, POLLIN);
    }
    if (b->path && (b->state == PATH_UP || b->last_error)) {
        poll_timer_wait_until(b->next);
    }
}

bool
bypass_is_active(const struct bypass *b)
{
    return b->state == PATH_UP;
}
