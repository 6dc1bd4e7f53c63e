/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SPAWN_H
#define LAB_SPAWN_H 1

/* Starts programs in a network namespace and a cgroup, and keeps daemons
 * running.
 *
 * Programs of a lab must end with the lab and must not receive the Ctrl-C of
 * its terminal, and most of them run in a namespace.  "ip netns exec" would
 * hide the cgroup file system, so the child enters the namespace itself.
 *
 *    struct spawn s = { .argv = argv, .netns = "scl-lab-h0", ... };
 *    int error = spawn(&s, &pid);
 *
 *    char *why = tool_run(NULL, argv, "link set lo up\n", 5000, &output);
 *
 * The caller must reap the child.  A child is killed when the calling thread
 * ends, so call spawn() from the main thread. */

#include <stdbool.h>
#include <sys/types.h>

/* A program to start.  For NULL members the child inherits from the caller. */
struct spawn {
    const char *const *argv;    /* Null-terminated; argv[0] by PATH. */
    const char *const *env;     /* "NAME=VALUE" to add, null-terminated. */
    const char *netns;          /* Name of a network namespace. */
    const char *cgroup;         /* Relative to the cgroup v2 mount. */
    int in, out, err;           /* File descriptors, 0 for /dev/null. */
};

int spawn(const struct spawn *, pid_t *);

/* Namespaces have the names of "ip netns". */
int netns_enter(const char *name);
int netns_call(const char *name, int (*cb)(void *aux), void *aux);

/* Runs 'argv' in 'netns' (null: the caller's) with 'input' (may be null) on
 * standard input, for at most 'timeout_ms'.  Returns NULL if it exits with 0,
 * otherwise a malloc()'d message with the last line of its standard error.
 * Stores its standard output in '*outputp' unless that is null; NULL on
 * error. */
char *tool_run(const char *netns, const char *const argv[], const char *input,
               int timeout_ms, char **outputp);

/* Waits until child 'pid' ends and stores its status.  At 'deadline',
 * time_msec(), kills 'victim', the process or its group, and returns false. */
bool end_child(pid_t pid, pid_t victim, long long deadline, int *statusp);

/* Opens 'file' to append to it.  Returns a file descriptor, or -1. */
int open_log(const char *file);

/* Daemons
 * -------
 *
 * A supervisor restarts a daemon that ends, counts that for the report, and
 * fails if a daemon ends soon after each start. */

struct plan;
struct supervisor;
struct svec;

struct supervisor *supervisor_create(const struct plan *);
void supervisor_destroy(struct supervisor *);

/* Starts a daemon.  'name' identifies it in messages and names its log.  Takes
 * ownership of the strings of 'env' and 'argv'. */
char *supervisor_add(struct supervisor *, const char *name,
                     const char *netns, struct svec *env, struct svec *argv);
char *supervisor_run(struct supervisor *);
void supervisor_wait(struct supervisor *);
void supervisor_stop(struct supervisor *);

/* Number of restarts of all daemons. */
unsigned int supervisor_restarts(const struct supervisor *);

/* Process id of daemon 'name', 0 if it is not running. */
pid_t supervisor_pid(const struct supervisor *, const char *name);

#endif /* lab/cluster/spawn.h */
