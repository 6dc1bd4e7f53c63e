/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/fabric-open.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/line-reader.h"
#include "order/problem/memory.h"
#include "sim/workload/settings.h"
#include "sim/workload/workload.h"

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

static char *
open_topology(const char *file, const char *text, struct workload *w)
{
    double over = 1;
    const struct setting settings[] = {
        { .name = "over", .number = &over, .min = 0.1, .max = 1000 },
    };
    struct sim_fabric *fabric;
    char *error = settings_read("--fabric", text, settings, 1);

    if (!error) {
        error = sim_fabric_from_csv(file, w->fabric->capacity[0], over,
                                    &fabric);
    }
    if (!error && fabric->n_hosts < w->fabric->n_hosts) {
        if (asprintf(&error, "%s: %d hosts, at least the workload's %d are "
                     "needed", file, fabric->n_hosts, w->fabric->n_hosts)
            < 0) {
            abort();
        }
        sim_fabric_destroy(fabric);
    } else if (!error) {
        workload_set_fabric(w, fabric);
    }
    return error;
}

static bool
is_csv(const char *name)
{
    size_t n = strlen(name);

    return n > 4 && !strcmp(name + n - 4, ".csv");
}

char *
fabric_open(const char *text, struct workload *w)
{
    size_t n = strcspn(text, ",");
    const char *rest = text + n + (text[n] == ',');
    char *name = order_must(strndup(text, n));
    char *error = NULL;

    if (!strcmp(text, "switch")) {
        workload_set_fabric(w, sim_fabric_create(w->fabric->n_hosts,
                                                 w->fabric->capacity[0]));
    } else if (!strcmp(name, "leaf-spine")) {
        error = open_leaf_spine(rest, w);
    } else if (is_csv(name)) {
        error = open_topology(name, rest, w);
    } else if (asprintf(&error, "--fabric: \"%s\" is not one of "
                        "\"switch\", \"leaf-spine,leaf=N,over=X\", "
                        "\"FILE.csv,over=X\"", line_reader_shown(name)) < 0) {
        abort();
    }
    free(name);
    return error;
}
