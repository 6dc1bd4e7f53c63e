/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_PROCESS_H
#define JOB_PROCESS_H 1

/* A process of a job, held so that it cannot become another one.
 *
 * A program that is to act with the rights of a job takes them from one of its
 * processes.  Process ids are reused, so an id that was in the job can belong
 * to root a moment later.  A pidfd never changes its process: it is opened
 * first, then everything is read by the id, and job_process_is_alive() at the
 * end shows that all of it was read from that process.
 *
 * The rights are the real user and group and the supplementary groups.  A
 * process whose program had raised rights when it was executed (AT_SECURE: it
 * has a set-user-ID bit, for example) is refused: the user who started it
 * chose its environment and its working directory, but not its user.
 *
 *    n = job_pids(registry, root, job, &pids);
 *    if (job_process_open(pids[0], &p)) {
 *        ...p.pid is still one of job_pids(), job_process_is_alive(&p)...
 *        job_process_close(&p);
 *    }
 *
 * The caller frees ids.  No state.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct job;
struct registry;

#define JOB_PROCESS_MAX_GROUPS 64

struct job_process {
    pid_t pid;
    int pidfd;
    uid_t uid;                  /* Real user. */
    gid_t gid;                  /* Real group. */
    size_t n_groups;            /* Supplementary groups; 0 if it has more
                                 * than JOB_PROCESS_MAX_GROUPS. */
    gid_t groups[JOB_PROCESS_MAX_GROUPS];
};

/* Stores the processes in the job's cgroup of the tree, in cgroups that are
 * claimed for it, in those below, and those that are claimed themselves.
 * Processes in claimed network namespaces are not among them.  'root' is the
 * absolute path of the tree of jobs, or NULL. */
size_t job_pids(const struct registry *, const char *root, const struct job *,
                pid_t **pidsp);

/* Returns false if there is no such process or it is refused. */
bool job_process_open(pid_t, struct job_process *);
bool job_process_is_alive(const struct job_process *);
void job_process_close(struct job_process *);

/* For tests: reads user and groups from the content of /proc/PID/status. */
bool job_process_parse_status(const char *status, struct job_process *);

#endif /* agent/identify/job-process.h */
