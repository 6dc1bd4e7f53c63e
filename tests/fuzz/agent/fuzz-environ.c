/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the parser of process environments; any process of the host can set
 * its own. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identify/environ.h"
#include "base/name.h"
#include "tests/fuzz/must.h"

static char *
nobody(pid_t pid)
{
    (void) pid;
    return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = copy_bytes(data, size);
    char *name = environ_job(copy, size, 1000, nobody, 0);

    if (name) {
        char *slash = strchr(name, '/');

        must(slash);
        *slash = '\0';
        must(name_is_valid(name) && name_is_valid(slash + 1));
    }
    free(name);
    free(copy);
    return 0;
}
