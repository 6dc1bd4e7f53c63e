/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/measure/tcp-counters.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "util.h"

#define MAX_TEXT 16384          /* Size limit of /proc/net/netstat, which has
                                 * about 6,000 bytes. */

struct tcp_counters {
    int n;
    int *fds;                   /* /proc/net/netstat of each host, negative if
                                 * not readable. */
    uint64_t *before;           /* Timeouts of each host at the start. */
};

/* The file keeps reporting the namespace in which it was opened. */
static int
open_netstat(void *aux OVS_UNUSED)
{
    int fd = open("/proc/thread-self/net/netstat", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static bool
begins_with(const char *line, const char *group)
{
    size_t length = strlen(group);

    return !strncmp(line, group, length) && line[length] == ':';
}

/* Returns the line after 'line', or NULL. */
static const char *
next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end && end[1] ? end + 1 : NULL;
}

/* Returns the index of word 'name' in 'line', or -1. */
static int
find_word(const char *line, const char *name)
{
    size_t length = strlen(name), word;
    int i = 0;

    for (const char *p = line; *p && *p != '\n'; p += word) {
        p += *p == ' ';
        word = strcspn(p, " \n");
        if (word == length && !strncmp(p, name, length)) {
            return i;
        }
        i += word > 0;
    }
    return -1;
}

/* Returns word 'i' of 'line', or NULL. */
static const char *
get_word(const char *line, int i)
{
    for (const char *p = line; *p && *p != '\n'; i--) {
        p += *p == ' ';
        if (!i) {
            return p;
        }
        p += strcspn(p, " \n");
    }
    return NULL;
}

bool
tcp_counters_parse(const char *text, const char *group, const char *name,
                   uint64_t *value)
{
    for (const char *line = text; line; line = next_line(line)) {
        const char *values = next_line(line), *word;
        int i = begins_with(line, group) ? find_word(line, name) : -1;

        if (i > 0 && values && begins_with(values, group)) {
            unsigned long long x;
            char *end;

            word = get_word(values, i);
            errno = 0;
            x = word ? strtoull(word, &end, 10) : 0;
            if (!word || end == word || errno) {
                return false;
            }
            *value = x;
            return true;
        }
    }
    return false;
}

static bool
read_timeouts(int fd, uint64_t *timeouts)
{
    char text[MAX_TEXT + 1];
    size_t used = 0;
    ssize_t n;

    if (fd < 0 || lseek(fd, 0, SEEK_SET)) {
        return false;
    }
    while (used < MAX_TEXT
           && (n = read(fd, text + used, MAX_TEXT - used)) > 0) {
        used += n;
    }
    text[used] = '\0';
    return tcp_counters_parse(text, "TcpExt", "TCPTimeouts", timeouts);
}

struct tcp_counters *
tcp_counters_create(const struct plan *plan)
{
    struct tcp_counters *tc = xzalloc(sizeof *tc);

    tc->n = plan->n_hosts;
    tc->fds = xcalloc(tc->n, sizeof *tc->fds);
    tc->before = xcalloc(tc->n, sizeof *tc->before);
    for (int i = 0; i < tc->n; i++) {
        char *netns = plan_host_ns(plan, i);

        tc->fds[i] = netns_call(netns, open_netstat, NULL);
        read_timeouts(tc->fds[i], &tc->before[i]);
        free(netns);
    }
    return tc;
}

void
tcp_counters_destroy(struct tcp_counters *tc)
{
    if (tc) {
        for (int i = 0; i < tc->n; i++) {
            if (tc->fds[i] >= 0) {
                close(tc->fds[i]);
            }
        }
        free(tc->fds);
        free(tc->before);
        free(tc);
    }
}

double
tcp_counters_timeouts(const struct tcp_counters *tc)
{
    double sum = 0;

    for (int i = 0; i < tc->n; i++) {
        uint64_t now;

        if (!read_timeouts(tc->fds[i], &now)) {
            return NAN;
        }
        sum += now - tc->before[i];
    }
    return sum;
}
