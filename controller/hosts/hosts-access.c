/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hosts/hosts-access.h"

#include <stdlib.h>
#include <string.h>

#include "controller/ovsdb/database.h"
#include "wire/hosts-idl.h"
#include "ovsdb-idl.h"
#include "util.h"

#define ROLE "agent"

/* Of an agent's connection to a relay. */
#define PROBE_MS 10000

void
hosts_access_init(struct ovsdb_idl *idl)
{
    ovsdb_idl_add_table(idl, &hostsrec_table_global);
    ovsdb_idl_add_column(idl, &hostsrec_global_col_connections);
    ovsdb_idl_add_table(idl, &hostsrec_table_connection);
    ovsdb_idl_add_column(idl, &hostsrec_connection_col_target);
    ovsdb_idl_add_column(idl, &hostsrec_connection_col_role);
    ovsdb_idl_add_column(idl, &hostsrec_connection_col_inactivity_probe);
    ovsdb_idl_add_table(idl, &hostsrec_table_rbac_role);
    ovsdb_idl_add_column(idl, &hostsrec_rbac_role_col_name);
    ovsdb_idl_add_column(idl, &hostsrec_rbac_role_col_permissions);
    ovsdb_idl_add_table(idl, &hostsrec_table_rbac_permission);
    ovsdb_idl_add_column(idl, &hostsrec_rbac_permission_col_table);
    ovsdb_idl_add_column(idl, &hostsrec_rbac_permission_col_authorization);
    ovsdb_idl_add_column(idl, &hostsrec_rbac_permission_col_insert_delete);
    ovsdb_idl_add_column(idl, &hostsrec_rbac_permission_col_update);
}

static void
write_role(struct ovsdb_idl_txn *txn)
{
    static const char *columns[] = { "agent", "applied", "applied_at",
                                     "health", "ports", "state" };
    static const char *authorization[] = { "host" };
    static const char *tables[] = { "Host_Reported" };
    struct hostsrec_rbac_permission *permission;
    struct hostsrec_rbac_role *role;

    permission = hostsrec_rbac_permission_insert(txn);
    hostsrec_rbac_permission_set_table(permission, tables[0]);
    hostsrec_rbac_permission_set_authorization(permission, authorization,
                                               ARRAY_SIZE(authorization));
    hostsrec_rbac_permission_set_insert_delete(permission, false);
    hostsrec_rbac_permission_set_update(permission, columns,
                                        ARRAY_SIZE(columns));

    role = hostsrec_rbac_role_insert(txn);
    hostsrec_rbac_role_set_name(role, ROLE);
    hostsrec_rbac_role_set_permissions(role, tables, &permission, 1);
}

static void
write_connection(struct ovsdb_idl_txn *txn)
{
    struct hostsrec_connection *connection = hostsrec_connection_insert(txn);
    char *target = xasprintf("pssl:%d", DATABASE_RELAY_PORT);
    int64_t probe = PROBE_MS;

    hostsrec_connection_set_target(connection, target);
    hostsrec_connection_set_role(connection, ROLE);
    hostsrec_connection_set_inactivity_probe(connection, &probe, 1);
    hostsrec_global_set_connections(hostsrec_global_insert(txn), &connection,
                                    1);
    free(target);
}

/* A database from before these tables has none of them, and no relay. */
void
hosts_access_write(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn)
{
    if (hostsrec_server_has_global_table(idl)) {
        if (!hostsrec_rbac_role_first(idl)) {
            write_role(txn);
        }
        if (!hostsrec_global_first(idl)) {
            write_connection(txn);
        }
    }
}

void
hosts_access_write_host(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
                        const char *host)
{
    const struct hostsrec_host_reported *row;

    HOSTSREC_HOST_REPORTED_FOR_EACH (row, idl) {
        if (!strcmp(row->host, host)) {
            return;
        }
    }
    row = hostsrec_host_reported_insert(txn);
    hostsrec_host_reported_set_host(row, host);
    hostsrec_host_reported_set_state(row, "fair");
}
