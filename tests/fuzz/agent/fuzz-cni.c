/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the input of the CNI plug-in from a container runtime, including pod
 * annotations.  The first byte is the command, the rest of the first line is
 * CNI_ARGS, and the other lines are the standard input. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/pod-identity.h"
#include "base/name.h"
#include "tests/fuzz/must.h"

/* Checks that the names for the agent are valid names. */
static void
check_identity(const struct cni_request *r)
{
    if (r->command != CNI_VERSION_COMMAND && r->identity.job[0]) {
        must(name_is_valid(r->identity.job));
        must(name_is_valid(r->identity.cojob));
        must(r->identity.rung >= -1 && r->identity.rung <= 1000);
    }
    must(!r->warning || !strchr(r->warning, '\n'));
}

/* Checks that the reply to the runtime is a JSON object. */
static void
check_result(char *result, bool wanted)
{
    json_t *json = result ? json_loads(result, 0, NULL) : NULL;

    must(!wanted || json_is_object(json));
    json_decref(json);
    free(result);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const commands[] = { "ADD", "DEL", "CHECK", "VERSION" };
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t n = line ? line - data : size;
    struct cni_environment environment = {
        .command = commands[size ? data[0] % 4 : 0],
        .netns = "/run/netns/a",
    };
    struct cni_request r;
    char *args = copy_text(data + (n > 0), n ? n - 1 : 0);
    char *error;
    int code = 0;

    environment.args = args;
    data += n + (line != NULL);
    size -= n + (line != NULL);
    error = cni_request_read((const char *) data, size, &environment, &r,
                             &code);
    if (error) {
        must(code && error[0] && !strchr(error, '\n'));
        check_result(cni_error(r.version, code, error), true);
        free(error);
    } else {
        check_identity(&r);
        check_result(cni_request_result(&r), r.command == CNI_ADD
                     || r.command == CNI_VERSION_COMMAND);
    }
    cni_request_uninit(&r);
    free(args);
    return 0;
}
