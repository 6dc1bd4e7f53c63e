/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach controller status: the clusters of the databases. */

#include <config.h>

#include "cli/operator/controller-status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/operator/table.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database.h"
#include "openvswitch/json.h"
#include "util.h"

static struct json *
cluster_to_json(const struct database *db, const struct database_cluster *dc)
{
    struct json *members = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t i = 0; i < dc->members.n; i++) {
        json_array_add(members, json_string_create(dc->members.names[i]));
    }
    json_object_put_string(json, "database", db->name);
    json_object_put_string(json, "status", dc->status);
    json_object_put_string(json, "role", dc->role);
    json_object_put_string(json, "leader", dc->leader);
    json_object_put_string(json, "term", dc->term);
    json_object_put_string(json, "address", dc->address);
    json_object_put(json, "members", members);
    return json;
}

static void
add_row(struct table *t, const struct database *db,
        const struct database_cluster *dc)
{
    char *members = svec_join(&dc->members, " ", "");

    table_add(t, "%s", db->name);
    table_add(t, "%s", dc->role);
    table_add(t, "%s", dc->term);
    table_add(t, "%s", dc->status);
    table_add(t, "%s", members);
    free(members);
}

static char *
check(const struct database *db, const struct database_cluster *dc)
{
    return (strcmp(dc->leader, "unknown") ? NULL
            : xasprintf("%s: the cluster has no leader, more than half of "
                        "its members must run and reach each other",
                        db->name));
}

char *
controller_status(const char *rundir,
                  const struct database *const databases[], size_t n,
                  bool json)
{
    struct table *t = table_create("database", "role", "term", "status",
                                   "members", NULL);
    struct json *array = json_array_create_empty();
    char *error = NULL;

    for (size_t i = 0; !error && i < n; i++) {
        struct database_cluster dc;

        error = database_cluster_get(databases[i], rundir, &dc);
        if (!error) {
            add_row(t, databases[i], &dc);
            json_array_add(array, cluster_to_json(databases[i], &dc));
            error = check(databases[i], &dc);
        }
        database_cluster_uninit(&dc);
    }
    if (json) {
        struct json *top = json_object_create();
        char *text;

        json_object_put(top, "databases", json_clone(array));
        text = json_to_string(top, JSSF_SORT);
        puts(text);
        free(text);
        json_destroy(top);
    } else {
        table_print(t, stdout);
    }
    json_destroy(array);
    table_destroy(t);
    return error;
}
