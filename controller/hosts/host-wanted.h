/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_WANTED_H
#define HOST_WANTED_H 1

/* The rows of Host_Wanted that hosts are to have.
 *
 *    struct host_jobs jobs;
 *
 *    host_jobs_init(&jobs, cluster, policy, generation);
 *    while (...there is another 'host'...) {
 *        text = host_wanted_compose(&jobs, host);
 *        ...
 *    }
 *    host_jobs_uninit(&jobs);
 *
 * A row is a text, as in wire/host-order.h but without the version, so that it
 * can be compared with the one that the host has got, pushed and written.
 *
 * The index of jobs by host makes the time of all rows grow with the places
 * of jobs on hosts, not with jobs times hosts. */

#include <stddef.h>
#include <stdint.h>

#include "openvswitch/dynamic-string.h"
#include "openvswitch/shash.h"

struct cluster;
struct host;
struct job_entries;
struct policy;

/* A job keeps its place in the rows for this time, in ms, after it has
 * stopped: its sockets are still sending what they have. */
#define HOST_WANTED_LINGER_MS 250

struct host_jobs {
    struct shash by_host; /* Live jobs by the name of a host on which they have
                           * traffic, or processes that are not admitted. */
    long long due;        /* time_msec() when the rows will differ by
                           * themselves, because a job has lingered. */
    struct ds common;     /* Columns that all rows have. */
    struct job_entries *entries; /* Of live jobs. */
    size_t n;                    /* Of 'entries'. */
};

/* Valid until a job or a place of one changes.  If 'cluster' is NULL no host
 * has a job. */
void host_jobs_init(struct host_jobs *, const struct cluster *cluster,
                    const struct policy *, int64_t generation);
void host_jobs_uninit(struct host_jobs *);

/* Returns the row of a host, which the caller frees.  Equal jobs give equal
 * texts.  Leaves excluded jobs out.  Shims serve by rank, which is the key of
 * the job.  If the policy shares the network, jobs of one level get the same
 * rank.  Jobs of cojobs with a user have an owner, also those without an
 * admitted process on the host. */
char *host_wanted_compose(const struct host_jobs *, const struct host *);

#endif /* controller/hosts/host-wanted.h */
