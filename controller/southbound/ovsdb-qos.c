/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/ovsdb-qos.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/southbound/driver.h"
#include "controller/southbound/ovsdb-qos-rows.h"
#include "controller/southbound/queue-plan.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "util.h"
#include "vswitch-idl.h"

VLOG_DEFINE_THIS_MODULE(ovsdb_qos);

#define PROBE_MSEC 5000         /* Unix sockets are not probed. */
#define RETRY_MSEC 1000         /* After a transaction that failed. */

struct ovsdb_qos {
    struct driver up;
    char *remote;
    uint64_t datapath;
    struct ovsdb_idl *idl;      /* NULL until something is wanted. */
    struct ovsdb_idl_txn *txn;  /* Under way, or NULL. */
    uint64_t generation;
    struct queue_plan *wanted;
    unsigned int seqno;         /* Of the database when it was looked at. */
    bool stale;                 /* Look again, whatever 'seqno' is. */
    long long int next;         /* Not before this. */
    enum driver_state state;
    char *reason;               /* Of DRIVER_REFUSED, or of what is missing. */
    struct qos_rows_count count;
};

static struct ovsdb_qos *
ovsdb_qos_cast(const struct driver *driver)
{
    return CONTAINER_OF(CONST_CAST(struct driver *, driver),
                        struct ovsdb_qos, up);
}

/* What was sent of a transaction may still be carried out. */
static void
ovsdb_qos_leave(struct driver *driver)
{
    struct ovsdb_qos *oq = ovsdb_qos_cast(driver);

    if (oq->txn) {
        ovsdb_idl_txn_destroy(oq->txn);
    }
    ovsdb_idl_destroy(oq->idl);
    free(oq->reason);
    oq->txn = NULL;
    oq->idl = NULL;
    oq->reason = NULL;
    oq->state = DRIVER_AWAY;
}

static void
ovsdb_qos_destroy(struct driver *driver)
{
    struct ovsdb_qos *oq = ovsdb_qos_cast(driver);

    ovsdb_qos_leave(driver);
    queue_plan_destroy(oq->wanted);
    free(oq->remote);
    free(oq);
}

static struct ovsdb_idl *
open_database(const char *remote)
{
    struct ovsdb_idl *idl = ovsdb_idl_create_unconnected(&ovsrec_idl_class,
                                                         false);
    const struct ovsdb_idl_column *columns[] = {
        &ovsrec_bridge_col_datapath_id, &ovsrec_bridge_col_external_ids,
        &ovsrec_bridge_col_ports, &ovsrec_port_col_interfaces,
        &ovsrec_port_col_qos, &ovsrec_port_col_external_ids,
        &ovsrec_interface_col_ofport, &ovsrec_qos_col_type,
        &ovsrec_qos_col_queues, &ovsrec_qos_col_other_config,
        &ovsrec_qos_col_external_ids, &ovsrec_queue_col_other_config,
        &ovsrec_queue_col_external_ids,
    };

    for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
        ovsdb_idl_add_column(idl, columns[i]);
    }
    ovsdb_idl_set_leader_only(idl, false);
    ovsdb_idl_set_probe_interval(idl, PROBE_MSEC);
    ovsdb_idl_set_remote(idl, remote, true);
    return idl;
}

static void
ovsdb_qos_want(struct driver *driver, const struct driver_want *want)
{
    struct ovsdb_qos *oq = ovsdb_qos_cast(driver);

    if (!oq->idl) {
        oq->idl = open_database(oq->remote);
        oq->stale = true;
    }
    if (!oq->wanted || oq->generation != want->generation
        || !queue_plan_equal(oq->wanted, want->queues)) {
        queue_plan_destroy(oq->wanted);
        oq->wanted = queue_plan_clone(want->queues);
        oq->generation = want->generation;
        oq->stale = true;
    }
}

/* Something other than before is the case.  Takes 'reason' over, which may be
 * null. */
static void
set_state(struct ovsdb_qos *oq, enum driver_state state, char *reason)
{
    if (reason && (!oq->reason || strcmp(reason, oq->reason))) {
        VLOG_WARN("%s: %s", oq->remote, reason);
    }
    free(oq->reason);
    oq->reason = reason;
    oq->state = state;
}

/* Compares rows with what is wanted, and begins to write what differs. */
static void
reconcile(struct ovsdb_qos *oq)
{
    const struct ovsrec_bridge *br = qos_rows_find_bridge(oq->idl,
                                                          oq->datapath);
    uint64_t newer = br ? qos_rows_generation(br) : 0;
    char *missing;

    memset(&oq->count, 0, sizeof oq->count);
    if (!br) {
        set_state(oq, DRIVER_REFUSED,
                  xasprintf("no bridge has datapath id %016"PRIx64,
                            oq->datapath));
        return;
    } else if (newer > oq->generation) {
        set_state(oq, DRIVER_REFUSED,
                  xasprintf("a controller of generation %"PRIu64" has been "
                            "here, which is newer", newer));
        return;
    }
    oq->txn = ovsdb_idl_txn_create(oq->idl);
    ovsdb_idl_txn_add_comment(oq->txn, "stagecoach: queues of %016"PRIx64
                              " by generation %"PRIu64, oq->datapath,
                              oq->generation);
    missing = qos_rows_write(oq->idl, oq->txn, br, oq->wanted,
                             oq->generation, &oq->count);
    if (!oq->count.n_changes) {
        ovsdb_idl_txn_destroy(oq->txn);
        oq->txn = NULL;
    } else {
        VLOG_INFO("%s: %"PRIuSIZE" changes of queues", oq->remote,
                  oq->count.n_changes);
    }
    set_state(oq, oq->txn || missing ? DRIVER_WRITING : DRIVER_IN_SYNC,
              missing);
}

/* Goes on with what is being written. */
static void
run_txn(struct ovsdb_qos *oq)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(oq->txn);

    if (status == TXN_INCOMPLETE) {
        return;
    }
    if (status != TXN_SUCCESS && status != TXN_UNCHANGED) {
        VLOG_WARN_RL(&rl, "%s: trying again (%s)", oq->remote,
                     ovsdb_idl_txn_get_error(oq->txn));
        oq->next = time_msec() + RETRY_MSEC;
    }
    ovsdb_idl_txn_destroy(oq->txn);
    oq->txn = NULL;
    oq->stale = true;
}

static void
ovsdb_qos_run(struct driver *driver)
{
    struct ovsdb_qos *oq = ovsdb_qos_cast(driver);

    if (!oq->idl) {
        return;
    }
    ovsdb_idl_run(oq->idl);
    if (oq->txn) {
        run_txn(oq);
    }
    if (!ovsdb_idl_has_ever_connected(oq->idl)
        || !ovsdb_idl_is_connected(oq->idl)) {
        set_state(oq, DRIVER_AWAY, NULL);
        oq->stale = true;
    } else if (!oq->txn && time_msec() >= oq->next
               && (oq->stale || ovsdb_idl_get_seqno(oq->idl) != oq->seqno)) {
        oq->stale = false;
        oq->seqno = ovsdb_idl_get_seqno(oq->idl);
        reconcile(oq);
        if (oq->txn) {
            run_txn(oq);
        }
    }
}

static void
ovsdb_qos_wait(struct driver *driver)
{
    struct ovsdb_qos *oq = ovsdb_qos_cast(driver);

    if (!oq->idl) {
        return;
    }
    ovsdb_idl_wait(oq->idl);
    if (oq->txn) {
        ovsdb_idl_txn_wait(oq->txn);
    } else if (oq->stale && oq->state != DRIVER_AWAY) {
        poll_timer_wait_until(oq->next);
    }
}

static void
ovsdb_qos_get_status(const struct driver *driver,
                     struct driver_status *status)
{
    const struct ovsdb_qos *oq = ovsdb_qos_cast(driver);

    *status = (struct driver_status) {
        .state = oq->state,
        .n_wanted = oq->wanted ? qos_rows_n_wanted(oq->wanted) : 0,
        .n_applied = oq->count.n_applied,
    };
}

static struct json *
ovsdb_qos_to_json(const struct driver *driver)
{
    const struct ovsdb_qos *oq = ovsdb_qos_cast(driver);
    const struct queue_plan *plan = oq->wanted;
    struct json *json = json_object_create();
    struct json *ports = json_array_create_empty();

    for (size_t i = 0; plan && i < plan->n_ports; i++) {
        struct json *port = json_object_create();

        json_object_put(port, "port",
                        json_integer_create(plan->ports[i].port));
        json_object_put(port, "rate_bps",
                        json_integer_create(plan->ports[i].rate_bps));
        json_object_put(port, "queues",
                        json_integer_create(queue_plan_n_queues(plan)));
        json_array_add(ports, port);
    }
    json_object_put_string(json, "switch", oq->remote);
    json_object_put_format(json, "datapath", "%016"PRIx64, oq->datapath);
    json_object_put_string(json, "type", plan
                           ? queue_kind_names[plan->kind] : "");
    json_object_put_string(json, "reason", oq->reason ? oq->reason : "");
    json_object_put(json, "ports", ports);
    return json;
}

static const struct driver_class ovsdb_qos_class = {
    .name = "ovsdb-qos",
    .destroy = ovsdb_qos_destroy,
    .want = ovsdb_qos_want,
    .leave = ovsdb_qos_leave,
    .run = ovsdb_qos_run,
    .wait = ovsdb_qos_wait,
    .get_status = ovsdb_qos_get_status,
    .to_json = ovsdb_qos_to_json,
};

struct driver *
ovsdb_qos_create(const char *remote, uint64_t datapath)
{
    struct ovsdb_qos *oq = xzalloc(sizeof *oq);

    oq->up.class = &ovsdb_qos_class;
    oq->remote = xstrdup(remote);
    oq->datapath = datapath;
    return &oq->up;
}
