/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_POLICY_RUN_H
#define LAB_POLICY_RUN_H 1

/* One run of a scenario under one policy, from a clean start to its end. */

struct cluster;
struct plan;
struct report_policy;
struct scenario;

/* Brings the cluster up, runs the searches of 'scenario', stores what
 * happened in 'policy' and takes the cluster down again.  If 'log_dir' is
 * nonnull it gets a copy of all logs.
 *
 * Returns NULL if every search ended by itself, otherwise a malloc()'d
 * message, which 'policy->failure' has too. */
char *policy_run(struct cluster *, const struct plan *,
                 const struct scenario *, const char *policy_file,
                 const char *log_dir, struct report_policy *policy);

#endif /* lab/run/policy-run.h */
