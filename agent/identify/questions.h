/* SPDX-License-Identifier: Apache-2.0 */

#ifndef QUESTIONS_H
#define QUESTIONS_H 1

/* Replies to the kernel's questions to which job a process belongs.
 *
 * The kernel sends a question about a process that makes a socket while no
 * claim is about it, once each few seconds.  The reply, by its environment and
 * its ancestors, becomes a claim in the registry: a claim of a process applies
 * to its descendants too.  A process that has just begun may still execute
 * another program with another environment, so it is inspected again until it
 * is old enough.  Any process can write anything into its environment, so that
 * counts only for processes of the job's user and of the host's root
 * (registry.h).
 *
 * Users get replies in turn, one process each, and a user's questions have a
 * limit: one that makes many processes delays no other.
 *
 *    questions_add(q, pid, uid);
 *    if (questions_run(q, now)) {
 *        ...a process belongs to a job...
 *    }
 *    questions_again(q);     // A claim has changed: their descendants too.
 *
 * Memory is bounded.  Main thread only. */

#include <stdbool.h>
#include <sys/types.h>

struct questions;
struct registry;

/* The registry must outlive it. */
struct questions *questions_create(struct registry *);
void questions_destroy(struct questions *);

void questions_add(struct questions *, pid_t, uid_t);

/* Adds questions about all processes that run now: their sockets are older
 * than the programs that would have sent them. */
void questions_add_all(struct questions *);

/* Replies to a few questions.  Returns true if one of the processes belongs to
 * a job. */
bool questions_run(struct questions *, long long now);
void questions_wait(const struct questions *);

/* Calls 'see' for each process without a known job. */
typedef void questions_func(pid_t, void *aux);
void questions_for_each(const struct questions *, questions_func *, void *aux);

/* Repeats the questions about processes without a known job. */
void questions_again(struct questions *);

#endif /* agent/identify/questions.h */
