/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_WANTED_H
#define HOST_WANTED_H 1

/* The jobs that a host's row of Host_Wanted has.
 *
 *    struct host_jobs jobs;
 *    struct host_wanted w;
 *
 *    host_jobs_init(&jobs, cluster);
 *    while (...there is another 'host'...) {
 *        host_wanted_init(&w, &jobs, policy, host);
 *        ...job w.names[i] has rank w.ranks[i]...
 *        host_wanted_uninit(&w);
 *    }
 *    host_jobs_uninit(&jobs);
 *
 * The index of jobs by host makes the time of all rows grow with the places
 * of jobs on hosts, not with jobs times hosts. */

#include <stddef.h>
#include <stdint.h>

#include "openvswitch/shash.h"

struct cluster;
struct host;
struct policy;

/* Live jobs by the name of a host on which they have traffic, or processes
 * that are not admitted. */
struct host_jobs {
    struct shash by_host;
};

/* Valid until a job or a place of one changes.  If 'cluster' is NULL no host
 * has a job. */
void host_jobs_init(struct host_jobs *, const struct cluster *cluster);
void host_jobs_uninit(struct host_jobs *);

/* The jobs of one host.  Owns its arrays; the names are the cluster's. */
struct host_wanted {
    const char **names; /* "COJOB/JOB". */
    int64_t *ranks, *levels;
    double *weights;
    size_t n;           /* Of each array. */
    const char **owned; /* "COJOB/JOB" of cojobs with a user, also those
                         * without an admitted process on the host. */
    int64_t *owners;    /* The users. */
    size_t n_owned;     /* Of both arrays. */
};

/* Leaves excluded jobs out.  Shims serve by rank, which is the key of the
 * job.  If the policy shares the network, the order inside a level has no
 * meaning, and jobs of one level get the same rank. */
void host_wanted_init(struct host_wanted *, const struct host_jobs *,
                      const struct policy *, const struct host *);
void host_wanted_uninit(struct host_wanted *);

#endif /* controller/hosts/host-wanted.h */
