/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/data-file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "policies/policy.h"

char *
data_file_find(const char *name)
{
    static const char *const folders[] = {
        "../share/stagecoach", "../source", NULL,
    };

    return directory_find(folders, name, R_OK);
}

static bool
is_file_name(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"));
}

char *
policy_find(const char *name, char **filep)
{
    char *file;

    if (is_file_name(name)) {
        *filep = duplicate(name);
        return NULL;
    }
    file = message("policies/%s.json", name);
    for (char *s = file; *s; s++) {
        *s = *s == '+' ? '-' : *s;
    }
    *filep = data_file_find(file);
    free(file);
    return (*filep ? NULL
            : message("%s: no such policy, a name such as \"stage\" or a "
                      "file such as \"./stage.json\" is allowed", name));
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
