/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_OPEN_H
#define POLICY_OPEN_H 1

/* Policies by name.
 *
 * A name that has a '/' or ends in ".json" is a file.  Any other name is an
 * installed policy; '+' stands for '-', so that "stage+early" is the policy
 * "stage-early".
 *
 * Each function returns NULL or a malloc()'d message. */

struct policy;

/* Stores the path of the policy, which the caller must free, or NULL. */
char *policy_find(const char *name, char **filep);

/* Reads the policy, which the caller must free.  Stores NULL on failure. */
char *policy_open(const char *name, struct policy **);

#endif /* cli/simulate/policy-open.h */
