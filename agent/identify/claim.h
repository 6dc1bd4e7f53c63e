/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLAIM_H
#define CLAIM_H 1

/* Claims: statements that a cgroup, namespace or process belongs to a job.
 *
 * Several sources know the job of a process: its launcher, its cgroup, its
 * environment, its ports.  Some are more reliable than others.  A claim is the
 * statement of one source about one thing; the registry keeps all claims, and
 * if they differ, the source of highest precedence decides.
 *
 *    struct claim_what what = { CLAIMS_PROCESS, pid };
 *
 *    job = registry_claim(r, CLAIM_LAUNCHER, "asha/t0", &what, NULL, now);
 *    job = registry_best_claim(r, &what, NULL)->job;
 *    registry_unclaim(r, CLAIM_LAUNCHER, "asha/t0", &what);
 *
 * A claim of a cgroup includes the cgroups below it, a claim of a process its
 * descendants: a look-up tries those above too.
 *
 * Claims belong to the registry.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/name.h"
#include "hash.h"
#include "openvswitch/hmap.h"

/* Sources of a claim, in order of decreasing precedence. */
enum claim_source {
    CLAIM_REGISTRATION, /* The job itself, or the program that runs
                         * the search. */
    CLAIM_LAUNCHER,     /* A hook of Slurm or Kubernetes. */
    CLAIM_CGROUP,       /* Its cgroup in the tree of jobs. */
    CLAIM_ENVIRONMENT,  /* Environment of the process. */
    CLAIM_PORT,         /* A port of the connection. */
};

enum claim_kind { CLAIMS_CGROUP, CLAIMS_NETNS, CLAIMS_PROCESS };

struct claim_what {
    enum claim_kind kind;
    uint64_t id;                /* Inode of the directory of the cgroup or
                                 * of the namespace, or process id; never 0. */
};

static inline uint32_t
claim_what_hash(const struct claim_what *what)
{
    return hash_add64(what->kind, what->id);
}

static inline bool
claim_what_equals(const struct claim_what *a, const struct claim_what *b)
{
    return a->kind == b->kind && a->id == b->id;
}

struct claim {
    struct hmap_node node;      /* In struct registry's 'claims', by 'what'. */
    struct claim_what what;
    enum claim_source source;
    struct job *job;
    char *path;                 /* Path of the cgroup or namespace, by which
                                 * its end is detected; NULL if unknown, and
                                 * for processes. */
    uint64_t born;              /* Start time of the process, clock ticks
                                 * since boot; 0 if unknown. */
    uid_t real;                 /* Real user of the process. */
    unsigned int gpus;          /* That its launcher has given it, 0 if
                                 * unknown.  See registry_set_gpus(). */
    bool has_uid;               /* 'uid' is valid. */
    uint64_t uid;               /* User of the process, or the one that the
                                 * launcher has named. */
    struct user *user;          /* Of the process; NULL for other things. */
};

/* Returns true if somebody with a right to the host makes claims of this
 * source: wire/membership.h. */
static inline bool
claim_source_is_registered(enum claim_source source)
{
    return source <= CLAIM_CGROUP;
}

extern const char *const claim_source_names[];
extern const char *const claim_kind_names[];

char *claim_what_parse(const char *kind, const char *text,
                       const char *cgroup_mount, struct claim_what *,
                       char **pathp);

/* Ports of a job, at either end of a connection: the claim of lowest
 * precedence. */
struct port_rule {
    uint16_t first, last;
    char job[NAME_PAIR_SIZE]; /* "COJOB/JOB". */
};

char *port_rule_parse(const char *text, struct port_rule *);

#endif /* agent/identify/claim.h */
