/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the central server of the scheme "groups": what group servers and
 * workers send to it, and when they are lost.  Its events: server-world.h. */

#include "tests/fuzz/trainer/server-world.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size) {
        server_world_run(data[0] & 1 ? "groups,groups=1" : "groups", data + 1,
                         size - 1);
    }
    return 0;
}
