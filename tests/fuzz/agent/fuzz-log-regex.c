/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes logs from which regular expressions extract numbers. */

#include <config.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/agent/fuzz-log-decoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_log("regex:/x,iteration=step[ =]*([0-9]+),"
             "metric=(loss|acc): ([^ ]*)|x(y)*", data, size);
    return 0;
}
