/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "controller/ovsdb/rpc-call.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "timeval.h"
#include "util.h"

/* A schema's version, "X.Y.Z". */
struct version {
    int x, y, z;
};

static bool
version_parse(const struct json *schema, struct version *v)
{
    const struct json *json = (schema && schema->type == JSON_OBJECT
                               ? shash_find_data(json_object(schema),
                                                 "version") : NULL);

    return json && json->type == JSON_STRING
           && ovs_scan(json_string(json), "%d.%d.%d", &v->x, &v->y, &v->z);
}

static int
version_compare(const struct version *a, const struct version *b)
{
    return a->x != b->x ? a->x - b->x : a->y != b->y ? a->y - b->y
           : a->z - b->z;
}

/* Sends 'method' with 'params', which it takes, to 'remote' and stores the
 * result, which the caller destroys, in '*resultp'. */
static char *
call(const char *remote, const char *method, struct json *params,
     int timeout_ms, struct json **resultp)
{
    struct jsonrpc_msg *reply;
    char *error = NULL;
    int errnum;

    *resultp = NULL;
    errnum = rpc_call(remote, jsonrpc_create_request(method, params, NULL),
                      timeout_ms, &reply);
    if (errnum) {
        return xasprintf("%s: no answer to \"%s\" (%s)", remote, method,
                         ovs_strerror(errnum));
    }
    if (reply->type == JSONRPC_REPLY) {
        *resultp = json_clone(reply->result);
    } else {
        char *text = jsonrpc_msg_to_string(reply);

        error = xasprintf("%s: \"%s\" is refused: %s", remote, method, text);
        free(text);
    }
    jsonrpc_msg_destroy(reply);
    return error;
}

/* Stores how the schema that is served compares with 'ours', which is below 0
 * if it is older, in '*orderp', and its version in '*theirs'. */
static char *
compare_served(const struct database *db, const char *remote, int timeout_ms,
               const struct version *ours, struct version *theirs,
               int *orderp)
{
    struct json *served;
    char *error = call(remote, "get_schema",
                       json_array_create_1(json_string_create(db->schema)),
                       timeout_ms, &served);

    if (!error) {
        *orderp = (version_parse(served, theirs)
                   ? version_compare(theirs, ours) : -1);
    }
    json_destroy(served);
    return error;
}

/* Converts the database to 'schema', of version 'ours'.  The server closes the
 * connections of those who knew the old one, which may be ours before we have
 * the answer: what counts is what it serves then. */
static char *
convert(const struct database *db, const char *remote, int timeout_ms,
        const struct json *schema, const struct version *ours)
{
    struct json *params = json_array_create_2(json_string_create(db->schema),
                                              json_clone(schema));
    struct version theirs;
    struct json *result;
    char *refused, *error;
    int order = -1;

    refused = call(remote, "convert", params, timeout_ms, &result);
    json_destroy(result);
    error = compare_served(db, remote, timeout_ms, ours, &theirs, &order);
    if (error || !order) {
        free(refused);
        return error;
    }
    return (refused ? refused
            : xasprintf("%s: the %s database was not converted", remote,
                        db->name));
}

/* Compares what is served with 'schema', of version 'ours', and converts what
 * is older. */
static char *
upgrade(const struct database *db, const char *remote, int timeout_ms,
        const struct json *schema, const struct version *ours)
{
    struct version theirs;
    int order = 0;
    char *error = compare_served(db, remote, timeout_ms, ours, &theirs,
                                 &order);

    if (error || !order) {
        return error;
    }
    return (order < 0 ? convert(db, remote, timeout_ms, schema, ours)
            : xasprintf("%s: the %s database has schema %d.%d.%d, up to "
                        "%d.%d.%d is allowed, install a newer stagecoach",
                        remote, db->name, theirs.x, theirs.y, theirs.z,
                        ours->x, ours->y, ours->z));
}

char *
database_upgrade(const struct database *db, const char *remote,
                 int timeout_ms)
{
    char *file = database_schema_file(db);
    struct json *schema;
    struct version ours;
    char *error;

    if (!file) {
        return xasprintf("%s.ovsschema: not found beside the program or in "
                         "../share/stagecoach", db->name);
    }
    schema = json_from_file(file);
    error = (version_parse(schema, &ours)
             ? upgrade(db, remote, timeout_ms, schema, &ours)
             : xasprintf("%s: not a schema with a version X.Y.Z", file));
    json_destroy(schema);
    free(file);
    return error;
}
