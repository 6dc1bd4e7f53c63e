/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_RUN_H
#define SIM_RUN_H 1

/* What "stagecoach sim" was told and found, for the files that show it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/simulate/workload-open.h"
#include "sim/run/port-use.h"
#include "sim/run/results.h"
#include "sim/run/simulate.h"

#define SIM_RUN_MAX_POLICIES 16

struct policy;
struct workload;

enum sim_format { SIM_FORMAT_TABLE, SIM_FORMAT_JSON };

/* One policy's simulation. */
struct sim_run_policy {
    const char *name;           /* As the user says it. */
    struct policy *policy;
    struct sim_result result;
    struct results results;
    struct port_use use;        /* Only if a page is to be written. */
};

struct sim_run {
    const char *what;           /* File, or what is generated. */
    const char *fabric;         /* Instead of the workload's, or NULL. */
    bool offline;               /* Everything arrives at time 0. */
    bool lp;                    /* Bounds by linear programming. */
    const uint64_t *seed;       /* NULL: what 'what' says. */
    int n_levels;               /* 0: what the policy or the order says. */
    enum sim_format format;
    const char *html;           /* File of a page to write, or NULL. */
    size_t n_policies;
    struct sim_run_policy policies[SIM_RUN_MAX_POLICIES];
    struct workload_input input;
    struct workload *workload;  /* The input's. */
};

/* Mean of policy 'i' over that of the first one. */
double sim_run_ratio(const struct sim_run *, size_t i);

void sim_run_print_table(const struct sim_run *);
void sim_run_print_json(const struct sim_run *);

/* Writes the page.  Returns NULL or a malloc()'d message. */
char *sim_run_write_html(const struct sim_run *);

#endif /* cli/simulate/sim-run.h */
