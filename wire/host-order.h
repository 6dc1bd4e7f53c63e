/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_ORDER_H
#define HOST_ORDER_H 1

/* A host's row of Host_Wanted in the notation of RFC 7047, section 5.1: what a
 * controller pushes to the host's agent, and writes to the database.
 *
 * The row is whole, so that a message is lost without harm if a later one
 * arrives.  Types and limits are those of the schema.
 *
 *    struct ovsdb_datum data[HOSTSREC_HOST_WANTED_N_COLUMNS];
 *    char *error = host_order_read(json, data);
 *    if (!error) {
 *        ...data[i] belongs to hostsrec_host_wanted_columns[i]...
 *        host_order_free(data);
 *    }
 *
 * No state. */

#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "ovsdb-data.h"
#include "ovsdb-error.h"
#include "ovsdb-idl-provider.h"
#include "util.h"
#include "wire/hosts-idl.h"

/* Of the message; another one has other columns. */
#define HOST_ORDER_VERSION 1

static inline void
host_order_free(struct ovsdb_datum data[HOSTSREC_HOST_WANTED_N_COLUMNS])
{
    for (size_t i = 0; i < HOSTSREC_HOST_WANTED_N_COLUMNS; i++) {
        ovsdb_datum_destroy(&data[i], &hostsrec_host_wanted_columns[i].type);
    }
}

/* Reads 'json', which may be NULL, into 'data'.  Returns NULL or a message
 * that the caller frees; then there is nothing in 'data'. */
static inline char *
host_order_read(const struct json *json,
                struct ovsdb_datum data[HOSTSREC_HOST_WANTED_N_COLUMNS])
{
    const struct shash none = SHASH_INITIALIZER(&none);
    const struct shash *row =
        json && json->type == JSON_OBJECT ? json_object(json) : &none;
    const char *bad = NULL;

    for (size_t i = 0; i < HOSTSREC_HOST_WANTED_N_COLUMNS; i++) {
        const struct ovsdb_idl_column *column =
            &hostsrec_host_wanted_columns[i];
        const struct json *value = shash_find_data(row, column->name);
        struct ovsdb_error *error;

        ovsdb_datum_init_empty(&data[i]);
        if (bad) {
            continue;
        }
        error = (value ? ovsdb_datum_from_json(&data[i], &column->type, value,
                                               NULL)
                       : NULL);
        if (!value || error) {
            bad = column->name;
            ovsdb_datum_init_empty(&data[i]);
            ovsdb_error_destroy(error);
        }
    }
    if (!bad && shash_count(row) == HOSTSREC_HOST_WANTED_N_COLUMNS) {
        return NULL;
    }
    host_order_free(data);
    return xasprintf("order: column %s is not as in the schema; expected a "
                     "whole row of Host_Wanted",
                     bad ? bad : "of another name");
}

#endif /* wire/host-order.h */
