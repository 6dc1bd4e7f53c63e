/* SPDX-License-Identifier: Apache-2.0 */

/* A policy that somebody else wrote: it is refused by a message of one line,
 * or it keeps the rules that the controller relies on. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_policy(const struct policy *p)
{
    int above = p->control_dscp;

    must(p->n_levels >= 1 && p->n_levels <= POLICY_MAX_LEVELS);
    for (int i = 0; i < p->n_levels; i++) {
        must(p->dscp[i] >> 3 < above >> 3);
        above = p->dscp[i];
    }
    must(p->default_dscp >> 3 < above >> 3 && p->control_dscp <= 63);
    must(p->lease_ms >= 100 && p->lease_ms <= 600000);
    must(p->coalesce_ms >= 10 && p->coalesce_ms <= 50);
    must(p->retag_ms >= 0 && p->retag_ms <= 60000);
    must(p->aging_s >= 0 && p->aging_s <= 1e6);
    must(strlen(p->name) <= 31 && strlen(p->hash) == 16);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct policy *policy;
    char *error;

    error = policy_from_string("f", text, &policy);
    must(!error == !!policy);
    if (policy) {
        check_policy(policy);
        must(!strcmp(policy->text, text));
    } else {
        must_be_message(error, "f:");
    }
    policy_destroy(policy);
    free(error);
    free(text);
    return 0;
}
