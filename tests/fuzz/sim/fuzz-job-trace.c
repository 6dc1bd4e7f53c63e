/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of job traces: it rejects the file with a message of one
 * line, or every transfer of the resulting searches is between hosts that
 * exist. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/workload/workload-jobs.h"
#include "sim/workload/workload.h"
#include "tests/fuzz/must.h"

static void
check_cojob(const struct workload *w, const struct workload_cojob *cojob)
{
    must(cojob->n_jobs >= 1 && cojob->n_rungs >= 1 && cojob->arrival >= 0);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const struct workload_job *job = &cojob->jobs[i];

        must(job->n_transfers > 0 && job->compute >= 0);
        for (size_t j = 0; j < job->n_transfers; j++) {
            const struct workload_transfer *t = &job->transfers[j];

            must(t->src >= 0 && t->src < w->fabric->n_hosts);
            must(t->dst >= 0 && t->dst < w->fabric->n_hosts);
            must(t->src != t->dst && t->bytes > 0);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobs_options options = JOBS_OPTIONS_INIT;
    struct workload *w;
    FILE *stream;
    char *error;
    void *copy;

    if (!size) {
        return 0;               /* fmemopen() refuses it. */
    }
    options.n_hosts = 2 + data[size - 1] % 16;
    copy = copy_bytes(data, size);
    stream = fmemopen(copy, size, "r");
    must(stream);
    error = workload_jobs_read("f", stream, &options, &w);
    must(!error == !!w);
    if (w) {
        must(w->n_cojobs >= 1);
        for (size_t i = 0; i < w->n_cojobs; i++) {
            check_cojob(w, &w->cojobs[i]);
        }
    } else {
        must_be_message(error, "f:");
    }
    workload_destroy(w);
    free(error);
    fclose(stream);
    free(copy);
    return 0;
}
