/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_POLICY_RUN_H
#define LAB_POLICY_RUN_H 1

/* Runs a scenario under one policy. */

struct cluster;
struct plan;
struct report_policy;
struct scenario;

/* Starts the cluster, runs the searches of 'scenario', stores the results in
 * 'policy' and stops the cluster.  If 'log_dir' is nonnull, it gets a copy of
 * all logs.
 *
 * Returns NULL if every search has ended normally, otherwise a malloc()'d
 * message, which is also stored in 'policy->failure'. */
char *policy_run(struct cluster *, const struct plan *,
                 const struct scenario *, const char *policy_file,
                 const char *log_dir, struct report_policy *policy);

#endif /* lab/run/policy-run.h */
