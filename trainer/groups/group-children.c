/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/groups/group-children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/ps/server.h"

#define MAX_STARTS 100          /* Starts beyond the number of entries. */
#define END_US 2000000          /* Time limit for SIGTERM. */

struct group_children {
    const struct ps_server_config *config;
    char *central;              /* "HOST:PORT". */
    pid_t *pids;                /* 0: unused. */
    int n, max;                 /* Running processes, and entries of 'pids'. */
    int n_started;              /* Processes started so far. */
};

struct group_children *
group_children_create(const struct ps_server_config *config, uint16_t port)
{
    struct group_children *children = allocate(1, sizeof *children);

    children->config = config;
    children->max = config->n_workers + 1;
    children->pids = allocate(children->max, sizeof *children->pids);
    children->central = message(strchr(config->address, ':') ? "[%s]:%u"
                                                             : "%s:%u",
                                config->address, port);
    return children;
}

/* Reaps the processes that have ended. */
static void
reap_children(struct group_children *children)
{
    for (int i = 0; i < children->max; i++) {
        if (children->pids[i]
            && waitpid(children->pids[i], NULL, WNOHANG)) {
            children->pids[i] = 0;
            children->n--;
        }
    }
}

void
group_children_destroy(struct group_children *children)
{
    int64_t deadline = clock_monotonic_us() + END_US;

    if (!children) {
        return;
    }
    for (int i = 0; i < children->max; i++) {
        if (children->pids[i]) {
            kill(children->pids[i], SIGTERM);   /* It may be starting. */
        }
    }
    for (reap_children(children); children->n; reap_children(children)) {
        for (int i = 0; i < children->max; i++) {
            if (children->pids[i] && clock_monotonic_us() > deadline) {
                kill(children->pids[i], SIGKILL);
            }
        }
        poll(NULL, 0, 10);
    }
    free(children->pids);
    free(children->central);
    free(children);
}

/* In the new process: detaches standard input and output, which are the
 * central server's, and runs the program. */
static void
become_group_server(const struct group_children *children, pid_t parent)
{
    const struct ps_server_config *config = children->config;
    char reconnect[32], heartbeat[32];
    const char *argv[16] = {
        config->group_program, "server", "--central", children->central,
        "--address", config->address, "--reconnect-timeout", reconnect,
        "--heartbeat-timeout", heartbeat,
    };
    int null = open("/dev/null", O_RDWR);

    snprintf(reconnect, sizeof reconnect, "%.6f",
             config->reconnect_timeout_us * 1e-6);
    snprintf(heartbeat, sizeof heartbeat, "%.6f",
             config->heartbeat_timeout_us * 1e-6);
    if (config->congestion) {
        argv[10] = "--congestion";
        argv[11] = config->congestion;
    }
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0
        && dup2(null, STDOUT_FILENO) >= 0
        && !prctl(PR_SET_PDEATHSIG, SIGTERM) && getppid() == parent) {
        execv(config->group_program, (char *const *) argv);
    }
    _exit(127);
}

static char *
start_child(struct group_children *children)
{
    pid_t parent = getpid(), pid = fork();

    if (!pid) {
        become_group_server(children, parent);
    }
    if (pid < 0) {
        return message("group server: cannot start one (%s)",
                       strerror(errno));
    }
    for (int i = 0; i < children->max; i++) {
        if (!children->pids[i]) {
            children->pids[i] = pid;
            break;
        }
    }
    children->n++;
    children->n_started++;
    fprintf(stderr, "server: group server is process %d\n", (int) pid);
    return NULL;
}

char *
group_children_keep(struct group_children *children, int n)
{
    char *error = NULL;

    reap_children(children);
    n = n < children->max ? n : children->max;
    while (!error && children->n < n) {
        error = children->n_started < children->max + MAX_STARTS
                ? start_child(children)
                : message("group servers: giving up after %d starts",
                          children->n_started);
    }
    return error;
}

void
group_children_end(struct group_children *children, pid_t pid)
{
    for (int i = 0; children && i < children->max; i++) {
        if (pid > 0 && children->pids[i] == pid) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            children->pids[i] = 0;
            children->n--;
        }
    }
}
