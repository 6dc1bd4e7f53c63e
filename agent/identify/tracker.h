/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRACKER_H
#define TRACKER_H 1

/* Tracks the jobs of this host and their flows.
 *
 * The flows of a job change for two reasons: cgroups, namespaces and processes
 * of the job come and go, and so do its sockets.  The tracker looks up a
 * single socket when the shim reports a miss, and scans the cgroups when a job
 * is registered or claimed.  It also polls both, so that nothing depends on
 * such events: the cgroups once a second, the sockets at most twice a second
 * and with at most one hundredth of a core.
 *
 *    tracker = tracker_create(&config, &class, aux);
 *    for (;;) {
 *        tracker_run(tracker);
 *        tracker_wait(tracker);
 *        poll_block();
 *    }
 *
 * The functions of the class are called from tracker_create() and
 * tracker_run(), for differences only.
 *
 * The agent looks up single sockets and dumps all sockets only as a safety
 * net.  With 100,000 sockets on a host, a lookup takes 1 us, a dump of all 60
 * ms, and a dump of the jobs' cgroups alone 10 ms (the kernel filters by
 * cgroup id).  Closed sockets are found by the dumps: nothing depends on
 * noticing them sooner.
 *
 * The tracker owns the registry and the flow table.  Other modules read them,
 * and write the members of a job that they measure.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identify/claim.h"
#include "agent/identify/sock-diag.h"
#include "wire/shim-protocol.h"

struct flow_table;
struct identity;
struct job;
struct json;
struct port_rule;
struct registry;
struct tracker;

/* A job is removed after this time without a process, in ms. */
#define TRACKER_EMPTY_MS 5000

struct tracker_class {
    void (*job_begin)(struct job *, void *aux);

    /* Called before 'job' is removed, after its flows have ended. */
    void (*job_end)(struct job *, void *aux);

    /* Stores the user that owns the job called 'name'.  Returns false if that
     * is unknown.  May be NULL. */
    bool (*job_owner)(const char *name, uid_t *, void *aux);

    /* The user or the registration of the job has changed. */
    void (*job_changed)(struct job *, void *aux);       /* May be NULL. */

    /* Returns the slot of the job called 'name', 0 if it has none.  Needed
     * with 'identity' only. */
    uint16_t (*job_slot)(const char *name, void *aux);

    /* Also called when a flow changes its job.  Never with 'identity'. */
    void (*flow_begin)(const struct shim_flow_key *, const struct job *,
                       void *aux);
    void (*flow_end)(const struct shim_flow_key *, void *aux);
};

/* What it refers to must outlive the tracker. */
struct tracker_config {
    const char *cgroup_mount;   /* Mount of cgroup v2, NULL if there is
                                 * none. */
    const char *cgroup_root;    /* Absolute path of the tree of jobs, NULL
                                 * without cgroup v2. */
    char **netns;               /* Names in /run/netns, in addition to the
                                 * agent's namespace. */
    size_t n_netns;
    const struct port_rule *ports;
    size_t n_ports;
    struct identity *identity; /* The kernel knows the job of each packet, and
                                * asks; NULL: sockets are looked up. */
};

struct tracker *tracker_create(const struct tracker_config *,
                               const struct tracker_class *, void *aux);
void tracker_destroy(struct tracker *);

void tracker_run(struct tracker *);
void tracker_wait(struct tracker *);

/* Reports that the shim does not know the flow. */
void tracker_miss(struct tracker *, const struct shim_flow_key *);

/* Requests a scan of the cgroups.  The rate of scans is limited. */
void tracker_request_scan(struct tracker *);

/* Returns the job called 'name', a valid name, or NULL if it has no cgroup.
 * Scans for an unknown job at once, and requests a scan for others. */
struct job *tracker_register(struct tracker *, const char *name);

/* Adds a claim of 'source' for the job called 'name'.  It ends by
 * tracker_unclaim() or when the claimed thing no longer exists.  'rung' is -1
 * and 'uid' is NULL if unknown.  Returns NULL or a malloc()'d message. */
char *tracker_claim(struct tracker *, enum claim_source, const char *name,
                    const char *kind, const char *text, int64_t rung,
                    const uid_t *uid);
char *tracker_unclaim(struct tracker *, enum claim_source, const char *name,
                      const char *kind, const char *text);

/* Sets the user that owns the job, by the controller. */
void tracker_set_owner(struct tracker *, struct job *, uid_t);

/* Calls 'see' for the TCP connections of this namespace in cgroups of jobs. */
void tracker_walk_sockets(struct tracker *, sock_diag_func *see, void *aux);

/* Reads the kernel's struct tcp_info of a flow, see sock_diag_tcp_info(). */
int tracker_tcp_info(struct tracker *, const struct shim_flow_key *,
                     void *tcp_info, size_t *sizep);

const struct registry *tracker_registry(const struct tracker *);
const struct flow_table *tracker_flows(const struct tracker *);

/* Returns the numbers of dumps, scans, lookups and misses. */
struct json *tracker_to_json(const struct tracker *);

#endif /* agent/identify/tracker.h */
