/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_POLICY_H
#define CLI_POLICY_H 1

/* Commands of "stagecoach policy", and the histories that they and
 * "stagecoach report" read. */

#include <stdbool.h>
#include <stdint.h>

struct workload;

int policy_whatif(int argc, char *argv[]);
int policy_export(int argc, char *argv[]);

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
