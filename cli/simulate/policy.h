/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_POLICY_H
#define CLI_POLICY_H 1

/* The commands of "stagecoach policy", and their frame: arguments, policies,
 * workload. */

#include <stdbool.h>
#include <stdint.h>

#include "cli/simulate/workload-open.h"
#include "sim/run/simulate.h"

struct policy;
struct workload;

int policy_diff(int argc, char *argv[]);
int policy_whatif(int argc, char *argv[]);
int policy_export(int argc, char *argv[]);

/* Groups of options. */
enum policy_options {
    POLICY_TRACE = 1 << 0,  /* A trace or a history, which is required, its
                             * network, and --policy instead of operands. */
    POLICY_FORMAT = 1 << 1, /* --format. */
    POLICY_PLAIN = 1 << 2   /* None. */
};

/* Arguments of a command. */
struct policy_syntax {
    const char *name;           /* "stagecoach policy show", for messages. */
    const char *usage;          /* --help without the options. */
    unsigned int options;       /* Bits of enum policy_options. */
    int n_policies;             /* So many must be named, at most 2. */
};

struct policy_args {
    const struct policy_syntax *syntax;
    const char *names[2];
    int n_names;
    const char *trace;
    struct workload_network network;
    const char *history;        /* Replaces 'trace', which is then equal to
                                 * it. */
    int64_t since;              /* Age in ms that limits a history, or 0. */
    bool json;

    struct policy *policies[2];
    struct workload_input input; /* Empty without 'trace'. */
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
