/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROCESS_H
#define PROCESS_H 1

/* What /proc says of a process.
 *
 *
 * Motivation
 * ==========
 *
 * Processes come and go while they are looked at, and their ids are used
 * again.  Each function here looks once and says so if there was nothing to
 * see; a process is the same as before if it began at the same time.
 *
 *
 * Usage
 * =====
 *
 *    if (process_look(pid, &process) && process.born == born) {
 *        ...it is still the same...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Thread-safe. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    pid_t parent;
    uint64_t born;              /* Clock ticks since the boot. */
};

bool process_look(pid_t, struct process *);
char *process_environ(pid_t, size_t *sizep);
uint64_t process_netns(pid_t);
bool process_user(pid_t, uid_t *);

/* 'inode' is as in struct sock_info. */
typedef void process_socket_func(uint32_t inode, pid_t, void *aux);

void process_walk_sockets(pid_t, process_socket_func *, void *aux);

size_t processes_of_cgroup(const char *path, pid_t **pidsp);

#endif /* agent/identify/process.h */
