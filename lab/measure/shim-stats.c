/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/measure/shim-stats.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lab/cluster/plan.h"
#include "wire/shim-protocol.h"
#include "util.h"

/* Timeout of a call: a shim replies within microseconds unless it is
 * stopped. */
#define TIMEOUT_MS 100

/* Counters of one shim: the sum of 'before' and 'now'. */
struct shim {
    char *socket;
    bool asked;                 /* True if 'now' was read. */
    uint64_t boot_id;
    uint64_t before[3];         /* Counters of earlier processes. */
    uint64_t now[3];            /* IP bytes, bytes of the default class,
                                 * packets dropped. */
};

struct shim_watch {
    int n;
    struct shim *shims;
};

struct shim_watch *
shim_watch_create(const struct plan *plan)
{
    struct shim_watch *sw = xmalloc(sizeof *sw);

    sw->n = plan->n_hosts;
    sw->shims = xcalloc(sw->n, sizeof *sw->shims);
    for (int i = 0; i < sw->n; i++) {
        char *dir = plan_host_dir(plan, i);

        sw->shims[i].socket = xasprintf("%s/shim.sock", dir);
        free(dir);
    }
    return sw;
}

void
shim_watch_destroy(struct shim_watch *sw)
{
    if (sw) {
        for (int i = 0; i < sw->n; i++) {
            free(sw->shims[i].socket);
        }
        free(sw->shims);
        free(sw);
    }
}

/* Reads exactly 'size' bytes.  Returns 0 or a positive errno value. */
static int
read_all(int fd, void *buffer, size_t size)
{
    for (size_t n = 0; n < size;) {
        struct pollfd pfd = { .fd = fd, .events = POLLIN };
        ssize_t got;

        if (poll(&pfd, 1, TIMEOUT_MS) <= 0) {
            return ETIMEDOUT;
        }
        got = recv(fd, (char *) buffer + n, size - n, MSG_DONTWAIT);
        if (got == 0) {
            return EOF;
        } else if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return errno;
        }
        n += MAX(0, got);
    }
    return 0;
}

static int
ask(const char *path, struct shim_stats *stats)
{
    struct shim_msg msg = {
        .length = sizeof msg, .version = SHIM_PROTOCOL_VERSION,
        .type = SHIM_STATS, .xid = 1,
    };
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd, error = 0;

    /* Non-blocking, since connect() would wait if the shim is stopped and its
     * backlog is full. */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    ovs_strlcpy(sun.sun_path, path, sizeof sun.sun_path);
    if (connect(fd, (struct sockaddr *) &sun, sizeof sun)
        || send(fd, &msg, sizeof msg, MSG_NOSIGNAL) != sizeof msg) {
        error = errno;
    }
    error = error ? error : read_all(fd, &msg, sizeof msg);
    if (!error && (msg.status || msg.type != SHIM_STATS
                   || msg.length < sizeof msg + sizeof *stats)) {
        error = EPROTO;
    }
    error = error ? error : read_all(fd, stats, sizeof *stats);
    close(fd);
    return error;
}

static void
shim_run(struct shim *shim)
{
    struct shim_stats stats;

    if (ask(shim->socket, &stats)) {
        return;
    }
    if (shim->asked && shim->boot_id != stats.boot_id) {
        for (int i = 0; i < 3; i++) {
            shim->before[i] += shim->now[i];
        }
    }
    shim->asked = true;
    shim->boot_id = stats.boot_id;
    shim->now[0] = stats.tx_ip_bytes;
    shim->now[1] = stats.tx_default_bytes;
    shim->now[2] = stats.queue_dropped + stats.port_dropped;
}

void
shim_watch_run(struct shim_watch *sw)
{
    for (int i = 0; i < sw->n; i++) {
        shim_run(&sw->shims[i]);
    }
}

void
shim_watch_totals(const struct shim_watch *sw, uint64_t *ip_bytes,
                  uint64_t *default_bytes, uint64_t *dropped)
{
    uint64_t *totals[3] = { ip_bytes, default_bytes, dropped };

    for (int k = 0; k < 3; k++) {
        *totals[k] = 0;
        for (int i = 0; i < sw->n; i++) {
            *totals[k] += sw->shims[i].before[k] + sw->shims[i].now[k];
        }
    }
}
