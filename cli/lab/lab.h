/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_LAB_H
#define CLI_LAB_H 1

/* What the commands of "stagecoach lab" share: options, and the setting that
 * the options and a scenario make.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svec.h"

struct plan;
struct scenario;

#define LAB_NO_SEED (-1)
#define LAB_NO_ACTUATOR (-1)
#define LAB_MAX_PLACEMENTS 1000

struct lab_options {
    const char *name;
    const char *rundir;         /* NULL for the default. */
    const char *out;            /* Folder of the report. */
    const char *bin_dir;        /* NULL for the default. */
    bool keep;
    bool json;
    bool ha;
    bool blind;
    const char *congestion;     /* TCP's congestion control of the hosts, NULL
                                 * for the kernel's own. */
    int actuator;               /* An enum host_actuator, or LAB_NO_ACTUATOR
                                 * for the scenario's. */
    int64_t seed;               /* LAB_NO_SEED for the scenario's. */
    int n_placements;           /* 0 for one run without a folder for each
                                 * placement. */
    struct svec policies;       /* Policies that replace those of the
                                 * scenario. */
    char **args;                /* Other arguments, null-terminated. */
};

/* A policy of the scenario or the command line, and its file. */
struct lab_policy {
    char *name;
    char *file;
    bool plain;                 /* See plan.h. */
    bool orders;                /* Not fair sharing. */
};

struct lab_setting {
    struct scenario *scenario;
    struct plan *plan;
    struct lab_policy *policies;        /* Policies to run, in this order. */
    size_t n_policies;
};

/* Reads the scenario 'file' and its policies.  Returns NULL or a malloc()'d
 * message; lab_setting_uninit() is needed in both cases. */
char *lab_setting_init(struct lab_setting *, const struct lab_options *,
                       const char *file);
void lab_setting_uninit(struct lab_setting *);

/* Prepares the plan for a cluster with 'policy'. */
void lab_setting_choose(const struct lab_setting *, const struct lab_policy *);

/* Prints 'error', which it frees.  Returns the exit status, 128 and the signal
 * after an interrupt. */
int lab_fail(char *error);

/* Runs the scenario, the only argument. */
int lab_run(const struct lab_options *);

#endif /* cli/lab/lab.h */
