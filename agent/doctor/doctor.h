/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DOCTOR_H
#define DOCTOR_H 1

/* Checks what a host lacks, and how to add it.
 *
 * Agent and shim continue without missing features, because a job must never
 * wait for them: without a cgroup tree no job is found, without a capability
 * no packet is known to be a job's, and the only sign is a low coverage.  The
 * doctor checks everything at once, in advance, and reports it in words.
 *
 *    struct doctor *d = doctor_examine(&config);
 *
 *    for (size_t i = 0; i < d->n; i++) {
 *        ...d->findings[i]...
 *    }
 *    well = doctor_is_well(d);
 *    doctor_destroy(d);
 *
 * With a 'root' other than "" a host is checked by its files alone, without
 * requests to the running kernel.
 *
 * Main thread only.  Changes nothing on the host. */

#include <stdbool.h>
#include <stddef.h>

enum doctor_result {
    DOCTOR_OK,
    DOCTOR_NOTE,                /* It works but could be better. */
    DOCTOR_MISSING,             /* A configured feature does not work. */
};
extern const char *const doctor_result_names[];

struct doctor_config {
    const char *root;           /* Root of the file system without a final
                                 * slash, "" for this host. */
    const char *rundir;
    const char *cgroup;         /* Root of the tree of jobs, below the mount
                                 * of cgroup v2. */
    const char *db;             /* Remotes of the hosts database, NULL to
                                 * skip the check. */
    const char *controller;     /* Remotes of telemetry, NULL to skip the
                                 * check. */
    const char *shim;
    const char *const *ports;   /* Ports of the shim, "KIND:WHAT". */
    size_t n_ports;
    bool bypass;                /* The agent enables the bypass if the shim
                                 * fails. */
    bool netns;                 /* Jobs run in other network namespaces. */
    bool quick;                 /* Only checks that read a few small files,
                                 * for a running agent. */
};

struct doctor_finding {
    const char *check;          /* One word: "cgroup". */
    enum doctor_result result;
    char *what;                 /* Result, a sentence. */
    char *mend;                 /* How to correct it, NULL if there is
                                 * nothing to do. */
};

struct doctor {
    const struct doctor_config *config;
    struct doctor_finding *findings;
    size_t n, allocated;
};

struct doctor *doctor_examine(const struct doctor_config *);
void doctor_destroy(struct doctor *);

/* For tests: adds findings "overlay" and "pods", and returns true if the
 * host's kernel is at least 'major'.'minor', or its version is unknown. */
void doctor_check_interfaces(struct doctor *);
bool doctor_kernel_is_from(const struct doctor *, int major, int minor);

/* Returns true if nothing is missing. */
bool doctor_is_well(const struct doctor *);

#endif /* agent/doctor/doctor.h */
