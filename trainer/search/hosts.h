/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_HOSTS_H
#define SEARCH_HOSTS_H 1

/* Hosts that a search may use: the cluster file.
 *
 *    {"hosts": [{"name": "h0", "address": "10.77.0.1", "launch": "netns",
 *                "netns": "lab-h0", "rundir": "/run/stagecoach/h0",
 *                "cgroup": "stagecoach/h0", "slots": 4}]}
 *
 * "launch" selects how programs are started there (launch.h): on this machine,
 * in a network namespace of it, or by ssh.  'rundir' and 'cgroup' become
 * STAGECOACH_RUNDIR and STAGECOACH_CGROUP of the programs; the default is the
 * environment of the search.
 *
 * Plain data, owned by the caller, immutable after parsing. */

#include <stddef.h>

enum launch_kind { LAUNCH_LOCAL, LAUNCH_NETNS, LAUNCH_SSH };

struct search_host {
    char *name;
    char *address;              /* Address on which servers listen. */
    enum launch_kind launch;
    char *netns;                /* Name for "ip netns", NULL if local. */
    char *rundir, *cgroup;      /* NULL for the values of the search. */
    int slots;                  /* Largest number of processes. */
};

struct search_hosts {
    size_t n;
    struct search_host *hosts;
};

/* Returns NULL or a message. */
char *search_hosts_from_file(const char *file, struct search_hosts **);
void search_hosts_destroy(struct search_hosts *);

/* Returns NULL if there is no such host. */
const struct search_host *search_hosts_find(const struct search_hosts *,
                                            const char *name);

#endif /* trainer/search/hosts.h */
