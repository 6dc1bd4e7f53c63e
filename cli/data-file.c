/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/data-file.h"

#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "base/similar.h"
#include "policies/policy.h"

char *
data_file_find(const char *name)
{
    static const char *const folders[] = { "../share/stagecoach", "../source",
                                           NULL };

    return directory_find(folders, name, R_OK);
}

static bool
is_file_name(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"));
}

char **
policy_names(void)
{
    char *stage = data_file_find("policies/stage.json");
    char *pattern =
        stage ? message("%.*s*.json", (int) strlen(stage) - 10, stage) : NULL;
    glob_t found = { 0 };
    char **names;
    size_t n = 0;

    if (pattern) {
        glob(pattern, 0, NULL, &found);
    }
    names = allocate(found.gl_pathc + 1, sizeof *names);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *base = strrchr(found.gl_pathv[i], '/') + 1;

        if (!strstr(base, ".schema.")) {
            names[n++] = message("%.*s", (int) strlen(base) - 5, base);
        }
    }
    names[n] = NULL;
    if (pattern) {
        globfree(&found);
    }
    free(pattern);
    free(stage);
    return names;
}

/* Returns the message for the unknown policy 'name'. */
static char *
no_such_policy(const char *name)
{
    char **names = policy_names();
    const char *meant = similar_name(name, (const char *const *) names);
    char *error =
        meant ? message("%s: no such policy, did you mean \"%s\"", name, meant)
              : message(
                  "%s: no such policy; expected a name of \"stagecoach policy "
                  "list\" or a file such as \"./stage.json\"",
                  name);

    for (size_t i = 0; names[i]; i++) {
        free(names[i]);
    }
    free(names);
    return error;
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
    return *filep ? NULL : no_such_policy(name);
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
