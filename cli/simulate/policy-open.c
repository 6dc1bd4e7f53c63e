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

/* Returns the file of installed policy 'name', NULL if there is none. */
static char *
find_installed(const char *name)
{
    char *base, *file;

    if (asprintf(&base, "%s.json", name) < 0) {
        abort();
    }
    for (char *s = base; *s; s++) {
        *s = *s == '+' ? '-' : *s;
    }
    file = data_file_find("policies", base);
    free(base);
    return file;
}

char *
policy_open(const char *name, struct policy **policyp)
{
    char *file, *error;

    *policyp = NULL;
    if (is_file_name(name)) {
        return policy_from_file(name, policyp);
    }
    file = find_installed(name);
    if (!file) {
        if (asprintf(&error, "%s: no such policy, a name such as \"stage\" or "
                     "a file such as \"./stage.json\" is allowed", name) < 0) {
            abort();
        }
        return error;
    }
    error = policy_from_file(file, policyp);
    free(file);
    return error;
}
