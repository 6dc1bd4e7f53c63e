/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of controller recordings: it rejects the file with a
 * message of one line, or every stage becomes a cojob with transfers between
 * different hosts. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/workload/workload-recording.h"
#include "sim/workload/workload.h"
#include "tests/fuzz/must.h"

static void
check_cojob(const struct workload *w, const struct workload_cojob *cojob)
{
    must(cojob->n_jobs == 1 && cojob->n_rungs == 1 && cojob->arrival >= 0);
    for (size_t i = 0; i < cojob->jobs->n_transfers; i++) {
        const struct workload_transfer *t = &cojob->jobs->transfers[i];

        must(t->src >= 0 && t->src < w->fabric->n_hosts);
        must(t->dst >= 0 && t->dst < w->fabric->n_hosts);
        must(t->src != t->dst && t->bytes > 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct workload *w;
    char *error = workload_recording_from_string("f", text, &w);

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
    free(text);
    return 0;
}
