/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLAIM_H
#define CLAIM_H 1

/* Evidence that something on this host is a job's.
 *
 *
 * Motivation
 * ==========
 *
 * Many know which job a process works for: who started it, its cgroup, its
 * environment, the port that it listens on.  Some of them are right more often
 * than others.  A claim is what one of them says of one thing (a cgroup, a
 * network namespace, a process); the registry keeps all that is claimed, and
 * where claims disagree the source that is believed more decides.
 *
 *
 * Usage
 * =====
 *
 *    struct claim_what what = { CLAIMS_PROCESS, pid };
 *
 *    job = registry_claim(r, CLAIM_LAUNCHER, "asha/t0", &what, now);
 *    job = registry_owner(r, &what, 1);
 *    registry_unclaim(r, CLAIM_LAUNCHER, "asha/t0", &what);
 *
 * A claim of a cgroup includes what is below it, that of a process what it
 * starts; whoever claims follows them (see tracker.h).
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Claims are the registry's.  Main thread only. */

#include <stdint.h>

#include "openvswitch/hmap.h"

/* Who says so, the most believed first. */
enum claim_source {
    CLAIM_REGISTRATION,         /* The job itself, or who runs the search. */
    CLAIM_LAUNCHER,             /* A hook of Slurm's or Kubernetes'. */
    CLAIM_CGROUP,               /* Its place in the tree of jobs. */
    CLAIM_ENVIRONMENT,          /* Variables of the process. */
    CLAIM_PORT,                 /* A port of its. */
    N_CLAIM_SOURCES,
};

enum claim_kind {
    CLAIMS_CGROUP,
    CLAIMS_NETNS,
    CLAIMS_PROCESS,
};

struct claim_what {
    enum claim_kind kind;
    uint64_t id;                /* Inode of the cgroup's directory or of the
                                 * namespace, id of the process; never 0. */
};

struct claim {
    struct hmap_node node;      /* In struct registry's 'claims', by 'what'. */
    struct claim_what what;
    enum claim_source source;
    struct job *job;
    char *path;                 /* Where the cgroup or namespace is, so that
                                 * its end is seen; NULL if nobody said, and
                                 * for processes. */
    uint64_t born;              /* When the process began, in clock ticks since
                                 * the boot; 0 if nobody looked. */
};

const char *claim_source_name(enum claim_source);
enum claim_source claim_source_from_name(const char *);
const char *claim_kind_name(enum claim_kind);

/* What a person wrote: KIND is "cgroup", "netns" or "pid". */
char *claim_what_parse(const char *kind, const char *text,
                       const char *cgroup_mount, struct claim_what *,
                       char **pathp);

#endif /* agent/identify/claim.h */
