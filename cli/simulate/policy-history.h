/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_HISTORY_H
#define POLICY_HISTORY_H 1

/* What a controller has kept of its stages, as a workload.
 *
 * 'what' is an age such as "24h", of which the running controller is asked, or
 * the file of its "--history", which may be a copy, and may be in use; of that
 * the stages count that ended within 'since', an age, or all if it is null.
 * Returns NULL and stores the workload, which the caller destroys, or returns
 * an error message that the caller frees and stores NULL.  The last 20,000
 * stages count; sim/workload/workload-recording.h says what they become. */

struct workload;

char *policy_history_open(const char *what, const char *since,
                          struct workload **);

#endif /* cli/simulate/policy-history.h */
