/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_OPTIONS_H
#define LAB_OPTIONS_H 1

/* What was typed after "stagecoach lab", and the lab that it names.
 *
 *
 * Motivation
 * ==========
 *
 * Every command of a lab takes the same options, and all must be found valid
 * before the first namespace is made.  "run" and "up" need a scenario, its
 * policies and a plan; "down" and "exec" no more than a plan's names.
 *
 *
 * Usage
 * =====
 *
 *    error = lab_options_parse(argc, argv, &o);
 *    error = error ? error : lab_setting_init(&setting, &o, file);
 *    if (error) {
 *        status = lab_fail(error);
 *    }
 *    ...
 *    lab_setting_uninit(&setting);
 *    lab_options_uninit(&o);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The options point into 'argv'.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>

#include "svec.h"

struct plan;
struct scenario;

struct lab_options {
    const char *name;
    const char *rundir;         /* NULL for the default. */
    const char *out;            /* Directory of the report. */
    const char *bin_dir;        /* NULL for the default. */
    bool keep;
    bool json;
    bool ha;
    struct svec policies;       /* Instead of the scenario's, if any. */
    char **args;                /* Not options, null-terminated. */
};

/* A policy of the scenario or the command line, and its file. */
struct lab_policy {
    char *name;
    char *file;
};

struct lab_setting {
    struct scenario *scenario;
    struct plan *plan;
    struct lab_policy *policies;        /* That are to run, in this order. */
    size_t n_policies;
};

/* Returns NULL or a message.  To be uninitialized also on error. */
char *lab_options_parse(int argc, char *argv[], struct lab_options *);
void lab_options_uninit(struct lab_options *);

/* Reads scenario 'file' and all that it and the options name, and checks that
 * this is root.  Returns NULL or a message.  To be uninitialized also on
 * error. */
char *lab_setting_init(struct lab_setting *, const struct lab_options *,
                       const char *file);
void lab_setting_uninit(struct lab_setting *);

/* Where no more than names are needed.  Returns NULL or a message; the caller
 * destroys the plan also on error. */
char *lab_plan_create(const struct lab_options *, struct plan **);

/* Prints 'error', frees it, and returns the exit status. */
int lab_fail(char *error);

#endif /* cli/lab/lab-options.h */
