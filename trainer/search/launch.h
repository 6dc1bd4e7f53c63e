/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAUNCH_H
#define LAUNCH_H 1

/* How a program gets to a host.
 *
 *
 * Motivation
 * ==========
 *
 * A search starts programs on hosts and talks to them by their standard input
 * and output.  What differs between a namespace on this machine and a machine
 * elsewhere is only how the program gets there: one row of launch_classes[]
 * for each "launch" of a cluster file.
 *
 *
 * Usage
 * =====
 *
 *    error = child_start(&child, host, argv, env);
 *    ...poll for child.out...
 *    while ((line = child_line(&child))) {
 *        ...
 *    }
 *    child_say(&child, "until 40\n");
 *    if (child_reap(&child)) {
 *        ...child.status...
 *    }
 *    child_uninit(&child);
 *
 * A child is the leader of a process group of its own, gets SIGTERM when we
 * die, and has our standard error.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller owns the struct.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CHILD_MAX_LINE 4096     /* Longer lines are dropped. */

struct search_host;

/* All run in the new process, between fork() and exec(). */
struct launch_class {
    /* Optional: goes to the host.  Returns 0 or an errno. */
    int (*enter)(const struct search_host *);
};

/* By enum launch_kind. */
extern const struct launch_class launch_classes[];

struct child {
    pid_t pid;                  /* 0 before it starts and after its end. */
    int in;                     /* Its standard input, -1 when closed. */
    int out;                    /* Its standard output, -1 after its end. */
    int status;                 /* As waitpid() says, after the end. */
    char buffer[CHILD_MAX_LINE];
    size_t length;              /* Bytes in the buffer. */
    size_t taken;               /* Of those, returned by child_line(). */
    bool skipping;              /* The rest of a line that is too long. */
};

void child_init(struct child *);
void child_uninit(struct child *);      /* Kills it, if it still runs. */

/* 'argv[0]' is a path.  'env' are "NAME=VALUE", added to ours; NULL at the
 * end.  Returns NULL, or a message if the program could not be executed. */
char *child_start(struct child *, const struct search_host *,
                  const char *const argv[], const char *const env[]);

/* The next complete line without its newline, or NULL if there is none now.
 * It lives until the next call. */
char *child_line(struct child *);

void child_say(struct child *, const char *text);
void child_hang_up(struct child *);     /* Closes its standard input. */
void child_kill(const struct child *, int signal);      /* Its whole group. */

/* True once, when the child has ended.  Take its last lines after that. */
bool child_reap(struct child *);

#endif /* trainer/search/launch.h */
