/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/controllers.h"

#include <stdlib.h>
#include <string.h>

#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "ovsdb-idl.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"
#include "wire/intent-idl.h"

#define RENEW_MS 5000 /* Time between two changes of the own row. */
#define STALE_MS \
    15000 /* Time without a change until it counts as disconnected. */
#define DELETE_MS                                             \
    600000 /* Time without a change until its row is deleted. \
            */

struct controllers {
    struct ovsdb_idl_loop loop;
    char *address;
    char *hash;     /* Hash of the own policy, NULL at first. */
    long long next; /* time_msec() of the next change. */
};

struct controllers *
controllers_create(const char *remote, const char *address)
{
    struct controllers *cs = xzalloc(sizeof *cs);
    struct ovsdb_idl *idl =
        ovsdb_idl_create(remote, &intentrec_idl_class, false, true);

    ovsdb_idl_set_leader_only(idl, false);
    ovsdb_idl_add_table(idl, &intentrec_table_controller);
    for (size_t i = 0; i < INTENTREC_CONTROLLER_N_COLUMNS; i++) {
        ovsdb_idl_add_column(idl, &intentrec_controller_columns[i]);
    }
    cs->loop.idl = idl;
    cs->address = xstrdup(address);
    return cs;
}

void
controllers_destroy(struct controllers *cs)
{
    if (cs) {
        ovsdb_idl_loop_destroy(&cs->loop);
        free(cs->address);
        free(cs->hash);
        free(cs);
    }
}

void
controllers_set_remote(struct controllers *cs, const char *remote)
{
    ovsdb_idl_set_remote(cs->loop.idl, remote, true);
}

/* Returns true if another controller has renewed 'row' within 'ms'.  Clocks
 * are compared, which differ little. */
static bool
is_peer(const struct controllers *cs, const struct intentrec_controller *row,
        int64_t ms)
{
    return (strcmp(row->address, cs->address)
            && llabs(time_wall_msec() - row->at) < ms);
}

static void
write_row(struct controllers *cs, struct ovsdb_idl_txn *txn,
          const struct intentrec_controller *row, const struct policy *policy)
{
    if (!row) {
        row = intentrec_controller_insert(txn);
        intentrec_controller_set_address(row, cs->address);
    }
    intentrec_controller_set_policy(row, policy->name);
    intentrec_controller_set_hash(row, policy->hash);
    intentrec_controller_set_at(row, time_wall_msec());
    free(cs->hash);
    cs->hash = xstrdup(policy->hash);
    cs->next = time_msec() + RENEW_MS;
}

void
controllers_run(struct controllers *cs, const struct policy *policy)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_loop_run(&cs->loop);
    const struct intentrec_controller *row, *own = NULL;

    if (!ovsdb_idl_has_ever_connected(cs->loop.idl)) {
        return;
    }
    INTENTREC_CONTROLLER_FOR_EACH_SAFE(row, cs->loop.idl)
    {
        if (!strcmp(row->address, cs->address)) {
            own = row;
        } else if (txn && !is_peer(cs, row, DELETE_MS)) {
            intentrec_controller_delete(row);
        }
    }
    if (txn
        && (time_msec() >= cs->next || !own
            || strcmp(cs->hash, policy->hash))) {
        write_row(cs, txn, own, policy);
    }
}

void
controllers_wait(struct controllers *cs)
{
    ovsdb_idl_loop_commit_and_wait(&cs->loop);
    /* Otherwise the connection or the reply comes first. */
    if (ovsdb_idl_is_connected(cs->loop.idl) && !cs->loop.committing_txn) {
        poll_timer_wait_until(cs->next);
    }
}

void
controllers_alarms(const struct controllers *cs, struct json *alarms)
{
    struct alarm_names names = { .n = 0 };
    const struct intentrec_controller *row;

    INTENTREC_CONTROLLER_FOR_EACH(row, cs->loop.idl)
    {
        if (is_peer(cs, row, STALE_MS) && cs->hash
            && strcmp(row->hash, cs->hash)) {
            alarm_name(&names, "%s (%s, %s)", row->address, row->policy,
                       row->hash);
        }
    }
    alarm_about(alarms, ALARM_POLICIES_DIFFER, &names,
                "another policy than this controller's has ",
                ": the order changes as soon as it leads");
}
