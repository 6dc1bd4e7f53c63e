/* SPDX-License-Identifier: Apache-2.0 */

#ifndef READ_POLICY_H
#define READ_POLICY_H 1

/* Reads a policy of the source tree, for benchmarks that simulate. */

#include <stdio.h>
#include <stdlib.h>

#include "policies/policy.h"

/* Returns policies/NAME.json, or ends the program with a message. */
static inline struct policy *
read_policy(const char *name)
{
    struct policy *policy;
    char file[64], *error;

    snprintf(file, sizeof file, "policies/%s.json", name);
    error = policy_from_file(file, &policy);
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return policy;
}

#endif /* tests/bench/read-policy.h */
