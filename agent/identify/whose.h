/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WHOSE_H
#define WHOSE_H 1

/* Whose a socket is, by all that is known.
 *
 *
 * Motivation
 * ==========
 *
 * Most sockets are a job's by their cgroup, or are in a cgroup in which no
 * process works for a job, and stay so: that costs a look into a table.  Only
 * for a socket of a cgroup that nobody has looked into since it was opened,
 * the cgroup's processes are looked at: their environments, what is claimed of
 * them and of those that started them, and where one of them is a job's, the
 * sockets that it has open.  A cgroup is not looked into more often than a
 * small share of a core allows; until then the answer is "later".
 *
 *
 * Usage
 * =====
 *
 *    struct whose_socket socket = { .info = info, .netns = inode,
 *                                   .since = reported };
 *
 *    switch (whose_decide(w, &socket, now, &job, &when)) {
 *    case WHOSE_JOB: ...
 *    case WHOSE_NOBODY: ...
 *    case WHOSE_LATER: ...again at 'when'...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Writes what it finds into the registry, which is the caller's and outlives
 * it.  Memory is bounded: what is known of too many cgroups is forgotten.
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identify/sock-diag.h"

struct job;
struct port_rule;
struct registry;
struct whose;

struct whose_config {
    const char *cgroup_mount;   /* May be null, and then also: */
    const char *cgroup_root;
    const struct port_rule *ports;      /* Must outlive it. */
    size_t n_ports;
};

struct whose_socket {
    const struct sock_info *info;
    uint64_t netns;             /* Inode of its namespace. */
    long long since;            /* A time at which it was there. */
};

enum whose_answer {
    WHOSE_JOB,
    WHOSE_NOBODY,
    WHOSE_LATER,
};

struct whose *whose_create(const struct whose_config *, struct registry *);
void whose_destroy(struct whose *);

enum whose_answer whose_decide(struct whose *, const struct whose_socket *,
                               long long now, struct job **jobp,
                               long long *whenp);
void whose_forget(struct whose *);

/* True, once, if there was a cgroup that could not be found by its id, so that
 * only a look at the whole tree can tell whose it is. */
bool whose_needs_scan(struct whose *);

#endif /* agent/identify/whose.h */
