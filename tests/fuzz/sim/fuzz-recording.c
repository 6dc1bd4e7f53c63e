/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of controller recordings: it rejects the file with a
 * message of one line, or every stage becomes a cojob with transfers between
 * different hosts. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/workload/workload-recording.h"
#include "tests/fuzz/sim/fuzz-workload.h"

static void
check_cojob(const struct workload *w, const struct workload_cojob *cojob)
{
    must(cojob->n_jobs == 1 && cojob->n_rungs == 1 && cojob->arrival >= 0);
    must_have_hosts(w, cojob->jobs);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct workload *w;
    char *error = workload_recording_from_string("f", text, &w);

    must_be_workload(w, error, check_cojob);
    free(text);
    return 0;
}
