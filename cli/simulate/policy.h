/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_POLICY_H
#define CLI_POLICY_H 1

/* The commands of "stagecoach policy", and their frame: arguments, policies,
 * workload. */

#include <stdbool.h>
#include <stdint.h>

#include "cli/simulate/workload-open.h"
#include "sim/run/simulate.h"
#include "sim/run/tune.h"

struct policy;
struct workload;

int policy_diff(int argc, char *argv[]);
int policy_whatif(int argc, char *argv[]);
int policy_tune(int argc, char *argv[]);
int policy_export(int argc, char *argv[]);

/* Groups of options. */
enum policy_options {
    POLICY_TRACE = 1 << 0,   /* --trace, --fabric, --rate. */
    POLICY_HISTORY = 1 << 1, /* --history and --since. */
    POLICY_POLICY = 1 << 2,  /* --policy. */
    POLICY_FORMAT = 1 << 3,  /* --format. */
    POLICY_PLAIN = 1 << 4,   /* None. */
    POLICY_TUNE = 1 << 5,    /* --seeds, --objective, --keep, --budget,
                              * --out, --seed; several --trace. */
};

/* Most values of --trace, and of --keep. */
#define POLICY_MAX_TRACES 16
#define POLICY_MAX_KEPT 16

/* Arguments of a command. */
struct policy_syntax {
    const char *name;           /* "stagecoach policy show", for messages. */
    const char *usage;          /* --help without the options. */
    unsigned int options;       /* Bits of enum policy_options. */
    int n_names;                /* Policies that stand alone, at most 2. */
    int n_policies;             /* Policies in all, at least, */
    int max_policies;           /* and at most, 2 or less. */
    const char *policy;         /* Default policy, or NULL. */
    bool needs_trace;           /* True if a trace or a history is required. */
};

struct policy_args {
    const struct policy_syntax *syntax;
    const char *names[2];
    int n_names;
    const char *traces[POLICY_MAX_TRACES];
    size_t n_traces;
    const char *trace, *out;    /* 'trace' is the first one. */
    struct workload_network network;
    struct tune_options tune;
    const char *kept[POLICY_MAX_KEPT];  /* Of 'tune'. */
    struct seed_range seeds;
    const char *history;        /* Replaces 'trace', which is then equal to
                                 * it. */
    int64_t since;              /* Age in ms that limits a history, or 0. */
    bool json;

    struct policy *policies[2];
    struct workload_input input;        /* Empty without 'trace', or if the
                                         * command opens its workloads. */
};

/* Parses the arguments, opens the policies and the workload, and calls 'run',
 * which returns an exit status.  Returns the exit status of the command. */
int policy_command(const struct policy_syntax *, int argc, char *argv[],
                   int (*run)(struct policy_args *));

/* Returns the service for 'workload': levels as in the data plane, but the
 * exact order for a trace of coflows, as in the literature. */
enum sim_service policy_service(const struct workload *);

/* Simulates the workload under one of the policies, with progress on a
 * terminal.  Returns false after an interrupt (base/interrupt.h). */
bool policy_args_replay(const struct policy_args *, int policy,
                        struct sim_result *);

/* Reads a history of stages as a workload, which the caller must destroy.
 * 'what' is an age such as "24h", which selects from the history of the
 * running controller, or the file of its option --history, which may be in
 * use.  From a file, only stages that ended within the age 'since' are read,
 * all if it is 0.  At most 20,000 stages are read, the last ones.  Returns
 * NULL or a malloc()'d message.  Only in builds with OVS. */
char *policy_history_open(const char *what, int64_t since, struct workload **);

/* Reads such a file as text for workload_recording_from_string(), which the
 * caller frees; 'since' is the epoch ms after which stages have ended; with
 * 'all', those of unannounced jobs are among them. */
char *policy_history_read(const char *file, int64_t since, bool all,
                          char **textp);

#endif /* cli/simulate/policy.h */
