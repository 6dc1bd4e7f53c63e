/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database-cluster.h"

#include <stdlib.h>
#include <string.h>

#include "controller/ovsdb/database.h"
#include "controller/ovsdb/rpc-call.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define ASK_MS 2000

/* If 'line' is "NAME: VALUE", replaces '*valuep' by VALUE. */
static void
take_value(const char *line, const char *name, char **valuep)
{
    size_t n = strlen(name);

    if (!strncmp(line, name, n) && !strncmp(line + n, ": ", 2)) {
        free(*valuep);
        *valuep = xstrdup(line + n + 2);
    }
}

/* Takes "    NICK (ID at ADDRESS) ...". */
static void
take_member(const char *line, struct svec *members)
{
    const char *at = strncmp(line, "    ", 4) ? NULL : strstr(line, " at ");

    if (at && strchr(at, ')')) {
        svec_add_nocopy(members, xmemdup0(at + 4, strcspn(at + 4, ")")));
    }
}

static void
database_cluster_init(struct database_cluster *dc)
{
    *dc = (struct database_cluster) {
        .status = xstrdup("unknown"), .role = xstrdup("unknown"),
        .leader = xstrdup("unknown"), .term = xstrdup("0"),
        .address = xstrdup(""), .members = SVEC_EMPTY_INITIALIZER,
    };
}

/* Takes 'reply', what ovsdb-server says to "cluster/status". */
void
database_cluster_parse(const char *reply, struct database_cluster *dc)
{
    char *text = xstrdup(reply);
    char *save = NULL;

    database_cluster_init(dc);
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        take_value(line, "Status", &dc->status);
        take_value(line, "Role", &dc->role);
        take_value(line, "Leader", &dc->leader);
        take_value(line, "Term", &dc->term);
        take_value(line, "Address", &dc->address);
        take_member(line, &dc->members);
    }
    svec_sort(&dc->members);
    free(text);
}

/* Asks the server whose sockets are in 'rundir'.  Returns NULL, or a message
 * that the caller frees; '*dc' is then empty. */
char *
database_cluster_ask(const struct database *db, const char *rundir,
                     struct database_cluster *dc)
{
    const char *args[] = { db->schema };
    char *ctl = database_ctl(db, rundir);
    char *reply, *error;
    int errnum;

    error = rpc_unixctl(ctl, "cluster/status", 1, args, ASK_MS, &reply,
                        &errnum);
    if (error) {
        database_cluster_init(dc);
    } else {
        database_cluster_parse(reply, dc);
    }
    free(reply);
    free(ctl);
    return error;
}

void
database_cluster_uninit(struct database_cluster *dc)
{
    free(dc->status);
    free(dc->role);
    free(dc->leader);
    free(dc->term);
    free(dc->address);
    svec_destroy(&dc->members);
}

char *
database_cluster_remote(const struct database *db, const char *rundir,
                        const struct database_cluster *dc)
{
    struct ds ds = DS_EMPTY_INITIALIZER;

    ds_put_format(&ds, "unix:%s/%s.sock", rundir, db->name);
    for (size_t i = 0; i < dc->members.n; i++) {
        const char *address = dc->members.names[i];
        const char *port = strrchr(address, ':');

        if (strcmp(address, dc->address) && !strncmp(address, "ssl:", 4)) {
            ds_put_format(&ds, ",%.*s:%d", (int) (port - address), address,
                          db->port);
        }
    }
    return ds_steal_cstr(&ds);
}
