/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_READERS_H
#define LOG_READERS_H 1

/* Has the logs of jobs read, each by a process with the rights of its job.
 *
 * A job that does not use the progress socket usually writes its progress to a
 * file.  The job's environment, or the first matching rule, names the files.
 * "stagecoach run --log" stores its argument in the environment of the
 * command, as STAGECOACH_LOG, so an agent that starts late or again finds it
 * with the job.
 *
 * Files, file systems and expressions are the tenant's.  The agent is root and
 * must not stall, so it never opens such a file nor compiles such an
 * expression: it starts a stagecoach-tail (agent/tail) for each job with a
 * log, which has the rights and the files of a process of the job, and reports
 * its progress.  This module finds the process
 * (identify/process.h), and supervises the tail: it kills
 * a late one and starts another after a time that doubles with each failure.
 * A tail that refuses its specification is not started again, until the rules
 * change.  A user has at most LOG_MAX_TAILS tails, those that do not end
 * included.
 *
 *    lr = log_readers_create(root, on_logged, aux);
 *    error = log_readers_load(lr, file);
 *    log_readers_job_begin(lr, job);
 *    for (;;) {
 *        log_readers_run(lr, registry);
 *        log_readers_wait(lr);
 *        poll_block();
 *    }
 *
 * Main thread only. */

struct job;
struct json;
struct log_readers;
struct progress;
struct registry;

#define LOG_MAX_TAILS 64        /* Of a user. */

/* Called by log_readers_run() with what the job has logged, or with iteration
 * -1 and the control port that the environment of one of its processes
 * names: where they find each other. */
typedef void log_readers_func(struct job *, const struct progress *,
                              void *aux);

/* 'cgroup_root' is the absolute path of the tree of jobs, which must outlive
 * the object, or NULL. */
struct log_readers *log_readers_create(const char *cgroup_root,
                                       log_readers_func *, void *aux);
void log_readers_destroy(struct log_readers *);

/* Loads the rules in 'file', in place of the previous ones.  Returns NULL, or
 * a malloc()'d message; then nothing has changed. */
char *log_readers_load(struct log_readers *, const char *file);

void log_readers_job_begin(struct log_readers *, struct job *);
void log_readers_job_end(struct log_readers *, struct job *);

void log_readers_run(struct log_readers *, const struct registry *);
void log_readers_wait(struct log_readers *);

/* Returns the state of all readers: an array of one object per job. */
struct json *log_readers_to_json(const struct log_readers *);

#endif /* agent/progress/log-readers.h */
