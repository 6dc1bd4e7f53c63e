/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/fabric-open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/settings.h"
#include "sim/workload.h"

static char *
open_leaf_spine(const char *text, struct workload *w)
{
    int leaf = 16;
    double over = 1;
    const struct setting settings[] = {
        { .name = "leaf", .integer = &leaf, .min = 1, .max = 10000 },
        { .name = "over", .number = &over, .min = 0.1, .max = 1000 },
    };
    char *error = settings_read("--fabric", text, settings, 2);

    if (!error) {
        workload_set_fabric(w, sim_fabric_create_leaf_spine(
            w->fabric->n_hosts, leaf, w->fabric->capacity[0], over));
    }
    return error;
}

char *
fabric_open(const char *text, struct workload *w)
{
    size_t n = strcspn(text, ",");
    const char *rest = text + n + (text[n] == ',');
    char *error;

    if (!strcmp(text, "switch")) {
        workload_set_fabric(w, sim_fabric_create(w->fabric->n_hosts,
                                                 w->fabric->capacity[0]));
        return NULL;
    } else if (n == strlen("leaf-spine") && !strncmp(text, "leaf-spine", n)) {
        return open_leaf_spine(rest, w);
    }
    if (asprintf(&error, "--fabric: \"%.24s\" is not one of \"switch\", "
                 "\"leaf-spine,leaf=N,over=X\"", text) < 0) {
        abort();
    }
    return error;
}
