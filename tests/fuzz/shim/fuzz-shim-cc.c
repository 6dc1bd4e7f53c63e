/* SPDX-License-Identifier: Apache-2.0 */

/* Frames of a malicious host and a malicious network in congestion control: it
 * reads and writes nothing beyond them, moves their start by at most its
 * option, and releases all queues.  The input is the one of give_all(). */

#include "tests/fuzz/shim/cc-frames.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_slots *slots = job_slots_create();
    struct cc *cc = create_cc(slots);

    destroy_cc(cc, give_all(cc, data, size, 1000 * MS));
    job_slots_destroy(slots);
    return 0;
}
