/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_CONTROLLER_H
#define POLICY_CONTROLLER_H 1

/* Input of "stagecoach policy" from a running controller.  Only in builds with
 * OVS.
 *
 * Each function returns NULL or a malloc()'d message. */

struct snapshot;
struct workload;

/* Reads the stages of the controller's last order.  '*errnum' is nonzero if
 * the controller does not reply. */
char *snapshot_from_controller(struct snapshot *, int *errnum);

/* Reads a history of stages as a workload, which the caller must destroy.
 * 'what' is an age such as "24h", which selects from the history of the
 * running controller, or the file of its option --history, which may be in
 * use.  From a file, only stages that ended within the age 'since' are read,
 * all if it is null.  At most 20,000 stages are read, the last ones. */
char *policy_history_open(const char *what, const char *since,
                          struct workload **);

#endif /* cli/simulate/policy-controller.h */
