/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ENVIRON_H
#define ENVIRON_H 1

/* Job of a process, by its environment.
 *
 * Launchers and frameworks set variables by which their processes find each
 * other, with the same values on each host.  They identify a job under the
 * same name everywhere, without registration.  A table has a row for each
 * launcher and framework; the first row with all its variables present
 * decides:
 *
 *    asha/t0                 STAGECOACH_COJOB=asha STAGECOACH_JOB=t0
 *    slurm-4711-u1000/7          SLURM_ARRAY_JOB_ID=4711
 *                                SLURM_ARRAY_TASK_ID=7
 *    torch-u1000/10.0.0.1-29500  MASTER_ADDR=10.0.0.1 MASTER_PORT=29500
 *
 * A framework does not name the search, so the cojobs that rows make up end
 * with the user's id: the jobs of two users are never of one cojob.
 * STAGECOACH_COJOB alone assigns the job of any row to that cojob.
 *
 * A loopback address names nothing in a cluster: two hosts would have one job.
 * In its place is the host name of the process's UTS namespace, in a pod the
 * pod's name, so that Kubeflow's master, which has MASTER_ADDR=localhost, and
 * its workers, which have the master's name, are one job.
 *
 *    text = process_environ(pid, &size);
 *    name = environ_job(text, size, uid, process_host_name, pid);
 *
 * Characters that are not allowed in names become '-'; a name that is too long
 * is cut and gets a hash of the whole name.
 *
 * The caller frees names.  Thread-safe. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the value of 'name' in an environment of 'size' bytes, or NULL. */
const char *environ_get(const char *environ, size_t size, const char *name);

/* 'host' returns the host name of a process, or NULL.  It is called only for a
 * loopback address. */
char *environ_job(const char *environ, size_t size, uid_t,
                  char *(*host)(pid_t), pid_t);

/* Returns the port at which the processes of a job find each other, 0 if none
 * is named or it is not a port. */
uint16_t environ_rendezvous(const char *environ, size_t size);

#endif /* agent/identify/environ.h */
