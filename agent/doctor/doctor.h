/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DOCTOR_H
#define DOCTOR_H 1

/* What a host lacks, and how to mend it.
 *
 *
 * Motivation
 * ==========
 *
 * Agent and shim go on without what they do not find, because a job must never
 * wait for them: without a cgroup tree no job is found, without a capability
 * some sockets are not seen, and nobody notices but by a coverage that is too
 * low.  The doctor looks at everything at once, before that, and says it in
 * words.
 *
 *
 * Usage
 * =====
 *
 *    struct doctor *d = doctor_examine(&config);
 *
 *    for (size_t i = 0; i < d->n; i++) {
 *        ...d->findings[i]...
 *    }
 *    well = doctor_is_well(d);
 *    doctor_destroy(d);
 *
 * With a 'root' of its own a host is examined by its files alone: what would
 * ask the running kernel is left out.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only.  Changes nothing on the host but for sockets that it opens
 * and closes. */

#include <stdbool.h>
#include <stddef.h>

enum doctor_result {
    DOCTOR_OK,
    DOCTOR_NOTE,                /* It works, and could be better. */
    DOCTOR_MISSING,             /* Something that is configured does not
                                 * work. */
};
extern const char *const doctor_result_names[];

struct doctor_config {
    const char *root;           /* Instead of "/", without a slash at its end;
                                 * "" for this host. */
    const char *rundir;
    const char *cgroup;         /* Of jobs, below the v2 mount. */
    const char *db;             /* Remotes and the path of the shim's socket, */
    const char *controller;     /* NULL if they are not to be looked at. */
    const char *shim;
    const char *const *ports;   /* "KIND:WHAT" of the shim, as it takes
                                 * them. */
    size_t n_ports;
    bool bypass;                /* The agent shall join the shim's interfaces
                                 * when it dies. */
    bool netns;                 /* Jobs live in other network namespaces. */
};

struct doctor_finding {
    const char *check;          /* One word: "cgroup". */
    enum doctor_result result;
    char *what;                 /* That was found. */
    char *mend;                 /* What to do about it, NULL if nothing. */
};

struct doctor {
    const struct doctor_config *config;
    struct doctor_finding *findings;
    size_t n, allocated;
};

struct doctor *doctor_examine(const struct doctor_config *);
void doctor_destroy(struct doctor *);

/* Is there all that is needed? */
bool doctor_is_well(const struct doctor *);

#endif /* agent/doctor/doctor.h */
