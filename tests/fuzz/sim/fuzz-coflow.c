/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of coflow traces: it rejects the file with a message of
 * one line that names the line, or every transfer is between hosts that
 * exist. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/workload/workload-coflow.h"
#include "tests/fuzz/sim/fuzz-workload.h"

static void
check_cojob(const struct workload *w, const struct workload_cojob *cojob)
{
    must(cojob->n_jobs == 1 && cojob->n_rungs == 1);
    must(cojob->arrival >= 0 && cojob->arrival <= 1e9);
    for (size_t i = 0; i < cojob->jobs->n_transfers; i++) {
        const struct workload_transfer *t = &cojob->jobs->transfers[i];

        must(t->src >= 0 && t->src < w->fabric->n_hosts);
        must(t->dst >= 0 && t->dst < w->fabric->n_hosts);
        must(t->bytes >= 0 && t->bytes <= 1e9 * 1024 * 1024);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct workload *w;
    FILE *stream;
    char *error;
    void *copy;

    if (!size) {
        return 0;               /* fmemopen() refuses it. */
    }
    copy = copy_bytes(data, size);
    stream = fmemopen(copy, size, "r");
    must(stream);
    error = workload_coflow_read("f", stream, data[0] == ' ' ? 2 : 0, &w);
    must_be_workload(w, error, check_cojob);
    fclose(stream);
    free(copy);
    return 0;
}
