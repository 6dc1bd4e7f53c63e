/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the progress datagrams that any process of a job can send to the
 * agent. */

#include <config.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "tests/fuzz/must.h"
#include "wire/progress-datagram.h"

/* Checks that 'name' is COJOB/JOB with two valid names. */
static void
check_name(char *name)
{
    char *slash;

    must(memchr(name, '\0', PROGRESS_NAME_SIZE));
    slash = strchr(name, '/');
    must(slash);
    *slash = '\0';
    must(name_is_valid(name) && name_is_valid(slash + 1));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = copy_bytes(data, size);
    char name[PROGRESS_NAME_SIZE] = "untouched";
    struct progress p = { .stage = -7 };
    char *error = progress_parse(copy, size, name, &p);

    if (error) {
        must_be_message(error, "/");
        must(!strcmp(name, "untouched") && p.stage == -7);
    } else {
        check_name(name);
        must(p.iteration >= (p.control_port ? -1 : 0));
        must(p.stage >= -1 && p.time >= 0);
        must(memchr(p.metric, '\0', sizeof p.metric));
        must(!*p.metric || name_is_valid_metric(p.metric));
        must(!p.has_value || isfinite(p.value));
    }
    free(error);
    free(copy);
    return 0;
}
