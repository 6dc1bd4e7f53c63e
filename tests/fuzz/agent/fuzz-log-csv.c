/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes logs of comma-separated values. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/agent/fuzz-log-decoder.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_log("csv:/x,metric=loss,stage=rung", data, size);
    return 0;
}
