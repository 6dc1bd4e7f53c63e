/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_OPEN_H
#define POLICY_OPEN_H 1

/* Reads the policy that a command line names.  What has a '/' or ends in
 * ".json" is a file; all else is one of the installed policies, whose name may
 * be written like its order ("stage+early" for "stage-early").
 *
 * Returns NULL and stores the policy, which the caller frees, or returns a
 * message that the caller frees and stores NULL. */

struct policy;

char *policy_open(const char *name, struct policy **);

#endif /* cli/simulate/policy-open.h */
