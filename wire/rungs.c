/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/rungs.h"

#include "base/json-check.h"
#include "base/memory.h"

#define MAX_RUNGS 32

struct search_rung *
search_rungs_read(const struct json_at *at, int n_jobs, size_t *n)
{
    const struct json_at *array = json_array(at, "rungs", 1, MAX_RUNGS);
    struct search_rung *rungs;
    int64_t before = 0;

    *n = json_n(array);
    rungs = allocate(*n, sizeof *rungs);
    for (size_t i = 0; i < *n; i++) {
        const struct json_at *rung = json_element_object(array, i);

        before = rungs[i].iterations =
            json_integer(rung, "iterations", before + 1, RUNG_MAX_ITERATIONS);
        if (n_jobs) {
            n_jobs = rungs[i].keep =
                i + 1 < *n ? json_integer(rung, "keep", 1, n_jobs)
                           : json_integer_or(rung, "keep", 1, n_jobs, 1);
        }
    }
    return rungs;
}
