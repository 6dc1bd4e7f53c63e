/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the parsers of workload settings: they reject the text with a message
 * of one line, or all numbers are in their ranges. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/workload/workload-generate.h"
#include "sim/workload/workload-jobs.h"
#include "tests/fuzz/must.h"

static void
check_generate(const char *text)
{
    struct generate_options o;
    char *error = generate_options_parse(text, &o);

    if (error) {
        must_be_message(error, "generate: ");
    } else {
        must(o.seed < 1ull << 53);
        must(o.n_hosts >= 2 && o.n_hosts <= 4096);
        must(o.n_cojobs >= 1 && o.n_cojobs <= 10000);
        must(o.n_jobs >= 0 && o.n_jobs <= 256);
        must(o.n_rungs >= 1 && o.n_rungs <= 8);
        must(o.placement >= GENERATE_PS && o.placement <= GENERATE_MIXED);
        must(o.compute >= 0 && o.compute <= 0.95);
        must(o.load >= 0.01 && o.load <= 10);
    }
    free(error);
}

static void
check_jobs(const char *text)
{
    struct jobs_options o = JOBS_OPTIONS_INIT;
    char *error = jobs_options_parse(text, &o);

    if (error) {
        must_be_message(error, "jobs: ");
    } else {
        must(o.n_hosts >= 2 && o.n_jobs >= 1 && o.window >= 0);
        must(o.load >= 0.01 && o.seed <= 1000000000);
    }
    free(error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);

    check_generate(text);
    check_jobs(text);
    free(text);
    return 0;
}
