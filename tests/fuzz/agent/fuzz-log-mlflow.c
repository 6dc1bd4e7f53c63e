/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes metric files of MLflow's file store. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/agent/fuzz-log-decoder.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_log("mlflow:/x", data, size);
    return 0;
}
