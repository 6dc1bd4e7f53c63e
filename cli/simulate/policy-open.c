/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/policy-open.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/data-file.h"
#include "policies/policy.h"

static bool
is_file_name(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"));
}

char *
policy_find(const char *name, char **filep)
{
    char *base, *error = NULL;

    if (is_file_name(name)) {
        *filep = strdup(name);
        if (!*filep) {
            abort();
        }
        return NULL;
    }
    if (asprintf(&base, "%s.json", name) < 0) {
        abort();
    }
    for (char *s = base; *s; s++) {
        *s = *s == '+' ? '-' : *s;
    }
    *filep = data_file_find("policies", base);
    free(base);
    if (!*filep
        && asprintf(&error, "%s: no such policy, a name such as \"stage\" or "
                    "a file such as \"./stage.json\" is allowed", name) < 0) {
        abort();
    }
    return error;
}

char *
policy_open(const char *name, struct policy **policyp)
{
    char *file;
    char *error = policy_find(name, &file);

    *policyp = NULL;
    error = error ? error : policy_from_file(file, policyp);
    free(file);
    return error;
}
