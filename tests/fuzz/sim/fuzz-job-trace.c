/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of job traces: it rejects the file with a message of one
 * line, or every transfer of the resulting searches is between hosts that
 * exist. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/workload/workload-jobs.h"
#include "tests/fuzz/sim/fuzz-workload.h"

static void
check_cojob(const struct workload *w, const struct workload_cojob *cojob)
{
    must(cojob->n_jobs >= 1 && cojob->n_rungs >= 1 && cojob->arrival >= 0);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        must(cojob->jobs[i].n_transfers > 0 && cojob->jobs[i].compute >= 0);
        must_have_hosts(w, &cojob->jobs[i]);
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
    must_be_workload(w, error, check_cojob);
    fclose(stream);
    free(copy);
    return 0;
}
