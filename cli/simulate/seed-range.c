/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/seed-range.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/simulate/workload-open.h"

#define MAX_SEEDS 10000

char *
seed_range_parse(const char *text, void *range_)
{
    struct seed_range *range = range_;
    uint64_t first = 0, last = 0;
    int n = 0;

    if (text[strspn(text, "0123456789-")]
        || sscanf(text, "%9" SCNu64 "-%9" SCNu64 "%n", &first, &last, &n) != 2
        || text[n] || first > last || last - first >= MAX_SEEDS) {
        return message("\"%s\" is not a range of seeds, FIRST-LAST such as "
                       "\"1-60\" with at most %d seeds is allowed",
                       text, MAX_SEEDS);
    }
    *range = (struct seed_range){ .first = first, .n = last - first + 1 };
    return NULL;
}

char *
seed_range_open(const char *what, uint64_t seed, struct workload_input *input)
{
    char *error = workload_open(what, &seed, input);

    if (!error && !input->seeded) {
        error = message("%s: nothing in it is random, --seeds requires "
                        "\"generate:SEED\", a trace of jobs or a scenario "
                        "with a seed",
                        what);
    }
    return error;
}
