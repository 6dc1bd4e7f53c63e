/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/ovsdb-qos.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/southbound/drivers/driver.h"
#include "controller/southbound/topology/queue-plan.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "smap.h"
#include "timeval.h"
#include "util.h"
#include "uuid.h"
#include "vswitch-idl.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(ovsdb_qos);

#define PROBE_MSEC 5000         /* Probe interval; not for Unix sockets. */
#define RETRY_MSEC 1000         /* Delay after a failed transaction. */

/* Keys of external_ids. */
#define OURS "stagecoach"       /* Name of a QoS or Queue row of ours. */
#define BEFORE "stagecoach-qos-before"  /* UUID of a port's previous QoS. */
#define GENERATION "stagecoach-generation"      /* Generation of the leader. */
#define NOTHING "none"          /* Value of BEFORE without a previous QoS. */


struct rows_count {
    size_t n_applied;           /* Rows that were as desired. */
    size_t n_changes;           /* Columns changed and rows deleted. */
};

/* Context of write_rows(). */
struct rows {
    struct ovsdb_idl *idl;
    struct ovsdb_idl_txn *txn;
    const struct ovsrec_bridge *br;
    const struct queue_plan *plan;
    struct rows_count *count;
};

/* Returns the number of rows of 'plan': each port, its QoS and its queues. */
static size_t
count_wanted_rows(const struct queue_plan *plan)
{
    return plan->n_ports * (2 + queue_plan_n_queues(plan));
}

static const struct ovsrec_bridge *
find_bridge(struct ovsdb_idl *idl, uint64_t datapath)
{
    const struct ovsrec_bridge *br;

    OVSREC_BRIDGE_FOR_EACH (br, idl) {
        if (br->datapath_id
            && strtoull(br->datapath_id, NULL, 16) == datapath) {
            return br;
        }
    }
    return NULL;
}

/* Returns the generation of the last leader that changed 'br', 0 if none. */
static uint64_t
get_generation(const struct ovsrec_bridge *br)
{
    return smap_get_ullong(&br->external_ids, GENERATION, 0);
}

/* Returns the name of a row of ours, "DATAPATH:PORT:QUEUE", or "DATAPATH:PORT"
 * for the QoS of the port if 'queue' is -1. */
static char *
row_name(const struct rows *r, uint32_t port, int64_t queue)
{
    uint64_t datapath = strtoull(r->br->datapath_id, NULL, 16);

    return (queue < 0
            ? xasprintf("%016"PRIx64":%"PRIu32, datapath, port)
            : xasprintf("%016"PRIx64":%"PRIu32":%"PRId64, datapath, port,
                        queue));
}

/* Returns true if a row with these external_ids is ours and of this bridge. */
static bool
is_ours(const struct rows *r, const struct smap *external_ids)
{
    const char *name = smap_get(external_ids, OURS);

    return (name && strlen(name) > 16 && name[16] == ':'
            && !strncmp(name, r->br->datapath_id, 16));
}

static const struct ovsrec_qos *
find_qos(const struct rows *r, const char *name)
{
    const struct ovsrec_qos *qos;

    OVSREC_QOS_FOR_EACH (qos, r->idl) {
        if (!strcmp(smap_get_def(&qos->external_ids, OURS, ""), name)) {
            return qos;
        }
    }
    return NULL;
}

static const struct ovsrec_queue *
find_queue(const struct rows *r, const char *name)
{
    const struct ovsrec_queue *queue;

    OVSREC_QUEUE_FOR_EACH (queue, r->idl) {
        if (!strcmp(smap_get_def(&queue->external_ids, OURS, ""), name)) {
            return queue;
        }
    }
    return NULL;
}

/* Returns the port of 'br' with OpenFlow port number 'number', or NULL. */
static const struct ovsrec_port *
find_port(const struct ovsrec_bridge *br, uint32_t number)
{
    for (size_t i = 0; i < br->n_ports; i++) {
        const struct ovsrec_port *port = br->ports[i];

        for (size_t j = 0; j < port->n_interfaces; j++) {
            if (port->interfaces[j]->n_ofport
                && port->interfaces[j]->ofport[0] == number) {
                return port;
            }
        }
    }
    return NULL;
}

/* Counts a row in which 'n_changes' columns were changed. */
static void
count_row(struct rows *r, size_t n_changes)
{
    r->count->n_applied += !n_changes;
    r->count->n_changes += n_changes;
}

/* Creates or updates queue 'i' of 'port'. */
static const struct ovsrec_queue *
write_queue(struct rows *r, const struct queue_plan_port *port, size_t i)
{
    char *name = row_name(r, port->port, queue_plan_number(r->plan, i));
    const struct ovsrec_queue *queue = find_queue(r, name);
    struct smap config = SMAP_INITIALIZER(&config);
    size_t n = 0;

    if (!queue) {
        struct smap ids = SMAP_CONST1(&ids, OURS, name);

        queue = ovsrec_queue_insert(r->txn);
        ovsrec_queue_set_external_ids(queue, &ids);
        n++;
    }
    queue_plan_queue_config(r->plan, port, i, &config);
    if (!smap_equal(&queue->other_config, &config)) {
        ovsrec_queue_set_other_config(queue, &config);
        n++;
    }
    count_row(r, n);
    smap_destroy(&config);
    free(name);
    return queue;
}

static bool
has_queues(const struct ovsrec_qos *qos, const int64_t *numbers,
           struct ovsrec_queue **queues, size_t n)
{
    if (qos->n_queues != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (qos->key_queues[i] != numbers[i]
            || qos->value_queues[i] != queues[i]) {
            return false;
        }
    }
    return true;
}

/* Creates or updates the QoS of 'port' and its queues. */
static const struct ovsrec_qos *
write_qos(struct rows *r, const struct queue_plan_port *port)
{
    const char *type = queue_kind_names[r->plan->kind];
    size_t n_queues = queue_plan_n_queues(r->plan), n = 0;
    int64_t *numbers = xcalloc(n_queues + 1, sizeof *numbers);
    struct ovsrec_queue **queues = xcalloc(n_queues + 1, sizeof *queues);
    char *name = row_name(r, port->port, -1);
    const struct ovsrec_qos *qos = find_qos(r, name);
    struct smap config = SMAP_INITIALIZER(&config);

    for (size_t i = 0; i < n_queues; i++) {
        numbers[i] = queue_plan_number(r->plan, i);
        queues[i] = CONST_CAST(struct ovsrec_queue *,
                               write_queue(r, port, i));
    }
    if (!qos) {
        struct smap ids = SMAP_CONST1(&ids, OURS, name);

        qos = ovsrec_qos_insert(r->txn);
        ovsrec_qos_set_external_ids(qos, &ids);
        n++;
    }
    queue_plan_port_config(r->plan, port, &config);
    if (strcmp(qos->type, type)) {
        ovsrec_qos_set_type(qos, type);
        n++;
    }
    if (!smap_equal(&qos->other_config, &config)) {
        ovsrec_qos_set_other_config(qos, &config);
        n++;
    }
    if (!has_queues(qos, numbers, queues, n_queues)) {
        ovsrec_qos_set_queues(qos, numbers, queues, n_queues);
        n++;
    }
    count_row(r, n);
    smap_destroy(&config);
    free(name);
    free(queues);
    free(numbers);
    return qos;
}

/* Assigns 'qos' to 'port' and saves the UUID of the port's previous QoS. */
static void
write_port(struct rows *r, const struct ovsrec_port *port,
           const struct ovsrec_qos *qos)
{
    bool others = port->qos && !is_ours(r, &port->qos->external_ids);

    if (port->qos != qos) {
        if (others || !smap_get(&port->external_ids, BEFORE)) {
            char *before = (others
                            ? xasprintf(UUID_FMT, UUID_ARGS(
                                            &port->qos->header_.uuid))
                            : xstrdup(NOTHING));

            ovsrec_port_update_external_ids_setkey(port, BEFORE, before);
            free(before);
        }
        ovsrec_port_set_qos(port, qos);
        count_row(r, 1);
    } else {
        count_row(r, 0);
    }
}

/* Restores the previous QoS of 'port'. */
static void
restore_port(struct rows *r, const struct ovsrec_port *port)
{
    const char *before = smap_get(&port->external_ids, BEFORE);
    const struct ovsrec_qos *qos = NULL;
    struct uuid uuid;

    if (!before) {
        return;
    }
    if (!port->qos || is_ours(r, &port->qos->external_ids)) {
        if (uuid_from_string(&uuid, before)) {
            qos = ovsrec_qos_get_for_uuid(r->idl, &uuid);
        }
        ovsrec_port_set_qos(port, qos);
    }
    ovsrec_port_update_external_ids_delkey(port, BEFORE);
    r->count->n_changes++;
}

static bool
is_planned(const struct rows *r, const struct ovsrec_port *port)
{
    for (size_t i = 0; i < r->plan->n_ports; i++) {
        if (find_port(r->br, r->plan->ports[i].port) == port) {
            return true;
        }
    }
    return false;
}

/* Returns true if the row 'name' is in the plan. */
static bool
is_wanted(const struct rows *r, const char *name)
{
    uint32_t port;
    int64_t queue = -1;

    if (!ovs_scan(name + 17, "%"SCNu32":%"SCNd64, &port, &queue)
        && !ovs_scan(name + 17, "%"SCNu32, &port)) {
        return false;
    }
    for (size_t i = 0; i < r->plan->n_ports; i++) {
        if (r->plan->ports[i].port != port) {
            continue;
        } else if (queue < 0) {
            return true;
        }
        for (size_t j = 0; j < queue_plan_n_queues(r->plan); j++) {
            if (queue_plan_number(r->plan, j) == queue) {
                return true;
            }
        }
    }
    return false;
}

/* Deletes our rows that are not in the plan, and restores their ports. */
static void
delete_unwanted_rows(struct rows *r)
{
    const struct ovsrec_qos *qos;
    const struct ovsrec_queue *queue;

    for (size_t i = 0; i < r->br->n_ports; i++) {
        if (!is_planned(r, r->br->ports[i])) {
            restore_port(r, r->br->ports[i]);
        }
    }
    OVSREC_QOS_FOR_EACH_SAFE (qos, r->idl) {
        if (is_ours(r, &qos->external_ids)
            && !is_wanted(r, smap_get(&qos->external_ids, OURS))) {
            ovsrec_qos_delete(qos);
            r->count->n_changes++;
        }
    }
    OVSREC_QUEUE_FOR_EACH_SAFE (queue, r->idl) {
        if (is_ours(r, &queue->external_ids)
            && !is_wanted(r, smap_get(&queue->external_ids, OURS))) {
            ovsrec_queue_delete(queue);
            r->count->n_changes++;
        }
    }
}

/* Stores the leader's generation in the bridge.  The transaction fails if
 * another leader changes it at the same time. */
static void
write_generation(struct rows *r, uint64_t generation)
{
    ovsrec_bridge_verify_external_ids(r->br);
    if (get_generation(r->br) != generation) {
        char *text = xasprintf("%"PRIu64, generation);

        ovsrec_bridge_update_external_ids_setkey(r->br, GENERATION, text);
        r->count->n_changes++;
        free(text);
    }
}

/* Adds the differences between rows and 'plan' to 'txn'.  Returns NULL, or an
 * error message about the first missing port, which the caller frees. */
static char *
write_rows(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
           const struct ovsrec_bridge *br, const struct queue_plan *plan,
           uint64_t generation, struct rows_count *count)
{
    struct rows r = {
        .idl = idl, .txn = txn, .br = br, .plan = plan, .count = count,
    };
    char *missing = NULL;

    delete_unwanted_rows(&r);
    for (size_t i = 0; i < plan->n_ports; i++) {
        const struct ovsrec_port *port = find_port(br, plan->ports[i].port);
        const struct ovsrec_qos *qos = write_qos(&r, &plan->ports[i]);

        if (port) {
            write_port(&r, port, qos);
        } else if (!missing) {
            missing = xasprintf("the bridge has no port %"PRIu32,
                                plan->ports[i].port);
        }
    }
    write_generation(&r, generation);
    return missing;
}

struct ovsdb_qos {
    struct driver up;
    char *remote;
    uint64_t datapath;
    struct ovsdb_idl *idl;      /* NULL until the first want(). */
    struct ovsdb_idl_txn *txn;  /* In progress, or NULL. */
    uint64_t generation;        /* Leader's generation. */
    struct queue_plan *wanted;  /* Desired queues. */
    unsigned int seqno;         /* Sequence number of 'idl' at the last
                                 * reconcile(). */
    bool stale;                 /* reconcile() is due whatever 'seqno' is. */
    long long int next;         /* time_msec() before which it must wait. */
    enum driver_state state;
    char *reason;               /* For DRIVER_REFUSED or a missing port. */
    struct rows_count count;    /* Result of the last reconcile(). */
};

static struct ovsdb_qos *
ovsdb_qos_cast(const struct driver *driver)
{
    return CONTAINER_OF(CONST_CAST(struct driver *, driver),
                        struct ovsdb_qos, up);
}

/* A transaction that was sent may still be executed. */
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
    oq->state = DRIVER_DISCONNECTED;
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

/* Sets the state and takes ownership of 'reason', which may be null.  Logs a
 * new reason. */
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

/* Compares the rows with the desired queues and starts a transaction if they
 * differ. */
static void
reconcile(struct ovsdb_qos *oq)
{
    const struct ovsrec_bridge *br = find_bridge(oq->idl, oq->datapath);
    uint64_t newer = br ? get_generation(br) : 0;
    char *missing;

    memset(&oq->count, 0, sizeof oq->count);
    if (!br) {
        set_state(oq, DRIVER_REFUSED,
                  xasprintf("no bridge has datapath id %016"PRIx64,
                            oq->datapath));
        return;
    } else if (newer > oq->generation) {
        set_state(oq, DRIVER_REFUSED,
                  xasprintf("the bridge was changed by a newer controller, of "
                            "generation %"PRIu64, newer));
        return;
    }
    oq->txn = ovsdb_idl_txn_create(oq->idl);
    ovsdb_idl_txn_add_comment(oq->txn, "stagecoach: queues of %016"PRIx64
                              " by generation %"PRIu64, oq->datapath,
                              oq->generation);
    missing = write_rows(oq->idl, oq->txn, br, oq->wanted, oq->generation,
                         &oq->count);
    if (!oq->count.n_changes) {
        ovsdb_idl_txn_destroy(oq->txn);
        oq->txn = NULL;
    } else {
        VLOG_INFO("%s: writing %"PRIuSIZE" changes of queues", oq->remote,
                  oq->count.n_changes);
    }
    set_state(oq, oq->txn || missing ? DRIVER_WRITING : DRIVER_IN_SYNC,
              missing);
}

/* Continues the transaction in progress. */
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
        set_state(oq, DRIVER_DISCONNECTED, NULL);
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
    } else if (oq->stale && oq->state != DRIVER_DISCONNECTED) {
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
        .n_wanted = oq->wanted ? count_wanted_rows(oq->wanted) : 0,
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

        json_put_integer(port, "port", plan->ports[i].port);
        json_put_integer(port, "rate_bps", plan->ports[i].rate_bps);
        json_put_integer(port, "queues", queue_plan_n_queues(plan));
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
