/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the parser of policies: it rejects the file with a message of one
 * line, or the policy satisfies the invariants that the controller needs. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "tests/fuzz/must.h"

static void
check_policy(const struct policy *p)
{
    uint64_t used = UINT64_C(1) << p->control_dscp;

    must(p->n_levels >= 1 && p->n_levels <= POLICY_MAX_LEVELS);
    for (int i = 0; i < p->n_levels; i++) {
        must(p->dscp[i] <= 63 && !(used >> p->dscp[i] & 1));
        used |= UINT64_C(1) << p->dscp[i];
    }
    must(p->default_dscp <= 63 && !(used >> p->default_dscp & 1));
    must(p->control_dscp && p->control_dscp <= 63);
    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];
        double value = policy_member_get(m, p);

        must(value >= m->min && value <= m->max);
    }
    for (size_t i = 0; i < p->cojobs.n; i++) {
        double weight = policy_weight(p, NULL, p->cojobs.factors[i].name);

        must(weight >= 0.001 && weight <= 1000);
    }
    must(strlen(p->name) <= 31 && strlen(p->hash) == 16);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct policy *policy;
    char *error, *errors;

    error = policy_from_string("f", text, &policy);
    must(!error == !!policy);
    if (policy) {
        check_policy(policy);
        must(!strcmp(policy->text, text));
    } else {
        must_be_message(error, "f:");
    }
    errors = policy_errors("f", text);
    must(!errors == !error);
    policy_destroy(policy);
    free(errors);
    free(error);
    free(text);
    return 0;
}
