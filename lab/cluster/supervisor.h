/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SUPERVISOR_H
#define LAB_SUPERVISOR_H 1

/* Keeps the daemons of a lab running.
 *
 *
 * Motivation
 * ==========
 *
 * A lab is where people kill a part of the system to see what happens, so a
 * daemon that ends is news (one line, and a count in the report) and is
 * started again shortly after.  One that never lives long is an error that
 * ends the run, with the last lines of its log.
 *
 *
 * Usage
 * =====
 *
 *    sv = supervisor_create(log_dir, cgroup);
 *    error = supervisor_add(sv, "agent-h0", ns, env, argv);
 *    for (;;) {
 *        error = supervisor_run(sv);     // Reaps and restarts.
 *        supervisor_wait(sv);            // For poll_block().
 *        poll_block();
 *    }
 *    supervisor_stop(sv);                // SIGTERM, youngest first.
 *    supervisor_destroy(sv);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  Arguments are copied. */

#include <stddef.h>
#include <sys/types.h>

struct supervisor;

struct supervisor *supervisor_create(const char *log_dir, const char *cgroup);
void supervisor_destroy(struct supervisor *);

/* Starts a daemon.  'name' is its name in messages and of its log. */
char *supervisor_add(struct supervisor *, const char *name,
                     const char *netns, const char *const env[],
                     const char *const argv[]);
char *supervisor_run(struct supervisor *);
void supervisor_wait(struct supervisor *);
void supervisor_stop(struct supervisor *);

/* How many times a daemon was started again. */
unsigned int supervisor_restarts(const struct supervisor *);

/* Process id of daemon 'name', 0 if it is not running. */
pid_t supervisor_pid(const struct supervisor *, const char *name);

#endif /* lab/cluster/supervisor.h */
