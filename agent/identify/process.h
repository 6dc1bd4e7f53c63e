/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROCESS_H
#define PROCESS_H 1

/* Data of processes from /proc, and the tree of cgroups of the host's jobs.
 *
 * Processes may exit at any time and their ids are reused.  Each function
 * reads once and reports a missing process; a process is the same as before if
 * its start time is the same.
 *
 *    if (process_read(pid, &process) && process.born == born) {
 *        ...it is still the same...
 *    }
 *
 * A program that is to act with the rights of a job takes them from one of its
 * processes.  Process ids are reused, so an id that was in the job can belong
 * to root a moment later.  A pidfd never changes its process: it is opened
 * first, then everything is read by the id, and job_process_is_alive() at the
 * end shows that all of it was read from that process.
 *
 *    if (job_process_open(pid, &p)) {
 *        ...'pid' is still of the job, and job_process_is_alive(&p)...
 *        job_process_close(&p);
 *    }
 *
 * A process that "stagecoach run" starts is in ROOT/COJOB/JOB of the cgroup v2
 * file system, with all its descendants.  The kernel stores the cgroup of each
 * socket and identifies it by the inode of its directory.  So the tree is the
 * host's record of its jobs, which survives the agent, and the key from a
 * socket to a job.  Jobs may create cgroups below their own; sockets there
 * belong to the job.
 *
 *    cgroup_scan(root, see_cgroup, aux);
 *    if (!cgroup_is_populated(root, "asha/t0")) {
 *        cgroup_remove(root, "asha/t0");
 *    }
 *
 *    name = cgroup_job_at(root, path);            // "asha/t0"
 *
 * 'root' is the absolute path of ROOT.  A scan reads a bounded number of
 * directories, never follows links, and ignores invalid names.
 *
 * The caller frees names.  No state.  Thread-safe. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    pid_t parent;
    uint64_t born;              /* Start time, clock ticks since boot. */
};

/* Read a file, which may be one of a process, into 'buffer' as a string that
 * is truncated to its size; one read has all of such a file.  Return the
 * number of bytes or a negative errno. */
ssize_t small_file_read(const char *path, char *buffer, size_t size);
ssize_t process_read_file(pid_t, const char *name, char *buffer, size_t size);

bool process_read(pid_t, struct process *);
char *process_environ(pid_t, size_t *sizep);
bool process_is_of_host(pid_t);

/* Stores the user of the process in '*uidp': the user that counts in all
 * checks and shares.  A user with a namespace of users has 65,536 subordinate
 * ones in it, which count as the user that made it.  Returns false if
 * unknown. */
bool process_user(pid_t, uid_t *uidp);

/* Stores the real user of the process, which the kernel stores in sockets. */
bool process_real_user(pid_t, uid_t *uidp);

/* Returns the host name in the process's namespace, the agent's if it may not
 * enter that, or NULL if the process has ended.  The caller frees it. */
char *process_host_name(pid_t);

/* Ids of processes; the caller frees 'pids'. */
struct pids {
    pid_t *pids;
    size_t n, allocated;
};

/* Add a process, or those of the cgroup at 'path' to a struct pids. */
void pids_add(struct pids *, pid_t);
void pids_add_cgroup(const char *path, void *pids);

#define JOB_PROCESS_MAX_GROUPS 64

struct job_process {
    pid_t pid;
    int pidfd;
    uid_t uid;       /* Real user. */
    gid_t gid;       /* Real group. */
    size_t n_groups; /* Supplementary groups; 0 if it has more
                      * than JOB_PROCESS_MAX_GROUPS. */
    gid_t groups[JOB_PROCESS_MAX_GROUPS];
};

/* Returns false if there is no such process, or if its program had raised
 * rights when it was executed (AT_SECURE: it has a set-user-ID bit, for
 * example): its caller chose its environment and its working directory, but
 * not its user. */
bool job_process_open(pid_t, struct job_process *);
bool job_process_is_alive(const struct job_process *);
void job_process_close(struct job_process *);

/* For tests: reads user and groups from the content of /proc/PID/status. */
bool job_process_parse_status(const char *status, struct job_process *);

/* 'job' is "COJOB/JOB" and 'id' the inode of its directory, which user 'uid'
 * has created. */
typedef void cgroup_see_func(const char *job, uint64_t id, uid_t uid,
                             void *aux);

int cgroup_scan(const char *root, cgroup_see_func *, void *aux);
void cgroup_see_job(const char *root, const char *job, cgroup_see_func *,
                    void *aux);
bool cgroup_is_populated(const char *root, const char *job);
int cgroup_remove(const char *root, const char *job);

typedef void cgroup_path_func(const char *path, void *aux);
void cgroup_walk(const char *path, int max, cgroup_path_func *, void *aux);

char *cgroup_job_at(const char *root, const char *path);

#endif /* agent/identify/process.h */
