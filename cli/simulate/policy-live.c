/* SPDX-License-Identifier: Apache-2.0 */

/* What the running controller has to order, for "stagecoach policy diff". */

#include <config.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "cli/operator/controller-query.h"
#include "cli/simulate/policy-snapshot.h"
#include "controller/ovsdb/rpc-call.h"
#include "util.h"

#define TIMEOUT_MS 3000

/* Names of ports; the index is the port. */
struct ports {
    size_t n, allocated;
    char **names;
};

static int
port_by_name(struct ports *ports, const char *name)
{
    for (size_t i = 0; i < ports->n; i++) {
        if (!strcmp(ports->names[i], name)) {
            return i;
        }
    }
    if (ports->n == ports->allocated) {
        ports->names = x2nrealloc(ports->names, &ports->allocated,
                                  sizeof *ports->names);
    }
    ports->names[ports->n] = xstrdup(name);
    return ports->n++;
}

static double
number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void
add_row(struct snapshot *snapshot, struct ports *ports, const cJSON *row)
{
    const char *cojob = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(row, "cojob"));
    double weight = number(row, "weight");
    struct snapshot_stage *stage = snapshot_add(
        snapshot, xstrdup(cojob ? cojob : "-"), number(row, "rung"),
        weight > 0 ? weight : 1);
    const cJSON *demand;

    stage->traits.arrival = number(row, "age_s");
    cJSON_ArrayForEach (demand,
                        cJSON_GetObjectItemCaseSensitive(row, "demand")) {
        if (cJSON_IsNumber(demand)) {
            snapshot_add_demand(stage, port_by_name(ports, demand->string),
                                demand->valuedouble);
        }
    }
}

char *
snapshot_from_controller(struct snapshot *snapshot, int *errnum)
{
    char *socket = xasprintf("%s/controller.ctl", cli_rundir());
    struct ports ports = { 0 };
    const cJSON *row;
    char *reply, *error;
    cJSON *json;

    *snapshot = (struct snapshot) { 0 };
    error = rpc_unixctl(socket, "controller/order", 0, NULL, TIMEOUT_MS,
                        &reply, errnum);
    free(socket);
    if (error) {
        return error;
    }
    json = cJSON_Parse(reply);
    cJSON_ArrayForEach (row, cJSON_GetObjectItemCaseSensitive(json,
                                                              "order")) {
        add_row(snapshot, &ports, row);
    }
    snapshot->n_ports = ports.n;
    for (size_t i = 0; i < ports.n; i++) {
        free(ports.names[i]);
    }
    free(ports.names);
    cJSON_Delete(json);
    free(reply);
    return NULL;
}
