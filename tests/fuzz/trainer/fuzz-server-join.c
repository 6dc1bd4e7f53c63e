/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes how workers join, lose and rejoin a parameter server, and what they
 * send to it.  The first byte selects the scheme; the others are events, see
 * server-world.h. */

#include "tests/fuzz/trainer/server-world.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const schemes[] = {
        "bsp", "ssp,staleness=2", "asp", "backup,backups=1", "flexrr",
    };

    if (size) {
        server_world_run(schemes[data[0] % 5], data + 1, size - 1);
    }
    return 0;
}
