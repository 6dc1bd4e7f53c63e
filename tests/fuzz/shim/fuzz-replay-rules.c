/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the parser of replay rules: it rejects the file with a message of one
 * line, or the rules are within the limits of the protocol. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/replay/rules.h"
#include "tests/fuzz/must.h"

static void
check(const struct replay_rules *rules)
{
    static const uint8_t frame[42];
    struct shim_flow_key key = { .family = 4, .protocol = 6 };

    must(rules->rate_bps >= SHIM_MIN_RATE && rules->rate_bps <= SHIM_MAX_RATE);
    must(rules->min_share <= SHIM_MIN_SHARE_UNIT
         || rules->min_share == SHIM_MIN_SHARE_DEFAULT);
    must(rules->n_addresses || rules->n_macs);
    must(!protocol_check_body(SHIM_SLOT_SET, rules->jobs,
                              rules->n_jobs * sizeof *rules->jobs));
    for (size_t i = 0; i < rules->n_flows; i++) {
        must(rules->flows[i].slot && rules->flows[i].slot <= rules->n_jobs);
    }
    must(replay_rules_slot(rules, &key) <= rules->n_jobs);
    must(replay_rules_direction(rules, frame, sizeof frame) <= REPLAY_SKIP);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size), *error;
    struct replay_rules *rules;

    error = replay_rules_parse("rules", text, &rules);
    if (error) {
        must(!rules);
        must_be_message(error, "rules");
    } else {
        check(rules);
    }
    replay_rules_destroy(rules);
    free(error);
    free(text);
    return 0;
}
