/* SPDX-License-Identifier: Apache-2.0 */

#ifndef READ_POLICY_H
#define READ_POLICY_H 1

/* What benchmarks that simulate share: policies of the source tree, and means
 * over outcomes. */

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "policies/policy.h"
#include "reporting/interval.h"

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

/* Returns the interval of a member of 'n' structures of 'size' bytes; 'member'
 * is in the first one. */
static inline struct interval
interval_of_member(const double *member, size_t size, size_t n)
{
    double *values = allocate(n, sizeof *values);
    struct interval in;

    for (size_t i = 0; i < n; i++) {
        values[i] = *(const double *) ((const char *) member + i * size);
    }
    in = interval_of(values, n);
    free(values);
    return in;
}

#endif /* tests/bench/read-policy.h */
