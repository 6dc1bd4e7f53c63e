/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_WANTED_H
#define HOST_WANTED_H 1

/* The order of one host: its row of Host_Wanted.
 *
 * Writing a row sends an update to the host's agent.  So the row is computed
 * from the cluster's jobs, compared with the stored one, and written only if
 * it differs.
 *
 *
 * Usage
 * =====
 *
 *    host_wanted_init(&w, &ctx, host);
 *    if (host_wanted_differs(&w, &ctx, row)) {
 *        host_wanted_write(&w, &ctx, row);
 *    }
 *    host_wanted_uninit(&w);
 *
 * Owns its arrays; the names are the cluster's.  Only host_wanted_write() uses
 * the database.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct host;
struct hostsrec_host_wanted;
struct policy;

/* What all rows of a transaction have in common. */
struct host_wanted_ctx {
    const struct cluster *cluster;
    const struct policy *policy;
    int64_t generation;         /* Of the leader. */
    int64_t version;            /* Of rows that are written. */
    bool observe;               /* Hosts get no job. */
    bool has_guard_share;       /* The database has the column... */
    bool has_congestion;        /* ...since a later version of the schema. */
};

/* The jobs of one host. */
struct host_wanted {
    const char **names;         /* "COJOB/JOB". */
    int64_t *ranks, *levels, *dscps;
    double *weights;
    size_t n;                   /* Of each array. */
};

void host_wanted_init(struct host_wanted *, const struct host_wanted_ctx *,
                      const struct host *);
void host_wanted_uninit(struct host_wanted *);

bool host_wanted_differs(const struct host_wanted *,
                         const struct host_wanted_ctx *,
                         const struct hostsrec_host_wanted *row);
void host_wanted_write(const struct host_wanted *,
                       const struct host_wanted_ctx *,
                       const struct hostsrec_host_wanted *row);

#endif /* controller/hosts/host-wanted.h */
