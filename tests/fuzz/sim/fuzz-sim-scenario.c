/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of simulator scenarios: it rejects the file with a message
 * of one line, or every transfer is between hosts that exist and every rung
 * has jobs. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/workload/workload-scenario.h"
#include "tests/fuzz/sim/fuzz-workload.h"

static void
check_job(const struct workload *w, const struct workload_job *job)
{
    must(job->compute >= 0 && job->devices >= 1);
    must_have_hosts(w, job);
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        must(t->shard < job->n_shards && t->phase < job->n_phases);
    }
}

static void
check_cojob(const struct workload *w, const struct workload_cojob *cojob)
{
    size_t n_jobs = cojob->n_jobs;
    int64_t iterations = 0;

    for (size_t i = 0; i < cojob->n_jobs; i++) {
        check_job(w, &cojob->jobs[i]);
    }
    for (size_t i = 0; i < cojob->n_rungs; i++) {
        must(cojob->rungs[i].iterations > iterations);
        must(cojob->rungs[i].n_jobs >= 1 && cojob->rungs[i].n_jobs <= n_jobs);
        iterations = cojob->rungs[i].iterations;
        n_jobs = cojob->rungs[i].n_jobs;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct workload *w;
    char *error = workload_scenario_from_string("f", text, &w);

    must_be_workload(w, error, check_cojob);
    free(text);
    return 0;
}
