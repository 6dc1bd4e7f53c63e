/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/rungs.h"

#include <stdbool.h>

#include "base/json-check.h"
#include "base/memory.h"

#define MAX_RUNGS 32
#define MAX_PLACES 1024

static const char *const methods[] = { "synchronous", "asynchronous", NULL };

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

struct search_rung *
search_method_read(const struct json_at *at, int n_jobs,
                   struct search_method *m, size_t *n)
{
    bool asynchronous = json_enum_or(at, "method", methods, 0);
    bool by_eta =
        asynchronous || json_has(at, "eta") || json_has(at, "brackets");
    struct search_rung *rungs = search_rungs_read(at, by_eta ? 0 : n_jobs, n);

    *m = (struct search_method){ .n_brackets = 1 };
    if (by_eta) {
        m->eta = json_number_or(at, "eta", 2, 1000, 3);
        m->n_brackets = json_integer_or(at, "brackets", 1, *n ? *n : 1, 1);
    }
    if (asynchronous) {
        m->places = json_integer(at, "places", 1, MAX_PLACES);
    }
    for (int b = 0; by_eta && b < m->n_brackets; b++) {
        int left = n_jobs / m->n_brackets + (b < n_jobs % m->n_brackets);

        for (int r = 0; r < (int) *n; r++) {
            left = r < b ? left : (int) search_rung_keeps(left, m->eta);
            rungs[r].keep += left;
        }
    }
    return rungs;
}
