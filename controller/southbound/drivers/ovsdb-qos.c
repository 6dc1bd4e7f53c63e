/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/ovsdb-qos.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/southbound/drivers/driver.h"
#include "controller/southbound/topology/topology.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "policies/policy.h"
#include "smap.h"
#include "sset.h"
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

#define DEFAULT_QUEUE 7
#define MIN_RATE_BPS 12000      /* Minimum rate of an HTB queue. */

/* Burst of a policer: this time at its rate, at least MIN_BURST_BYTES. */
#define BURST_SECONDS 0.01
#define MIN_BURST_BYTES 20000

static void
add_port(struct queue_plan *plan, int sw, const struct topology_port *at,
         int64_t rate_bps)
{
    if (at->sw == sw) {
        plan->ports[plan->n_ports++] =
            (struct queue_plan_port){ .port = at->port, .rate_bps = rate_bps };
    }
}

struct queue_plan *
queue_plan_create(const struct policy *policy, const struct topology *t,
                  int sw)
{
    struct queue_plan *plan = xzalloc(sizeof *plan);

    plan->kind = t->switches[sw].queues;
    plan->n_levels = policy->n_levels;
    plan->min_share = policy->min_share;
    plan->ports = xcalloc(2 * t->n_links + t->n_hosts + 1,
                          sizeof *plan->ports);
    if (plan->kind != QUEUES_NONE) {
        for (size_t i = 0; i < 2 * t->n_links; i++) {
            const struct topology_link *link = &t->links[i / 2];

            add_port(plan, sw, &link->ends[i % 2], link->capacity);
        }
        for (size_t i = 0; i < t->n_hosts; i++) {
            add_port(plan, sw, &t->hosts[i].at, t->hosts[i].capacity);
        }
    }
    return plan;
}

void
queue_plan_destroy(struct queue_plan *plan)
{
    if (plan) {
        free(plan->ports);
        free(plan);
    }
}

bool
queue_plan_equal(const struct queue_plan *a, const struct queue_plan *b)
{
    if (a->kind != b->kind || a->n_levels != b->n_levels
        || a->min_share != b->min_share || a->n_ports != b->n_ports) {
        return false;
    }
    for (size_t i = 0; i < a->n_ports; i++) {
        if (a->ports[i].port != b->ports[i].port
            || a->ports[i].rate_bps != b->ports[i].rate_bps) {
            return false;
        }
    }
    return true;
}

size_t
queue_plan_n_queues(const struct queue_plan *plan)
{
    return plan->kind == QUEUES_HTB ? plan->n_levels + 2 : 0;
}

/* Returns the id of queue 'i'. */
static int64_t
queue_plan_number(const struct queue_plan *plan, size_t i)
{
    return i <= (size_t) plan->n_levels ? i : DEFAULT_QUEUE;
}

void
queue_plan_port_config(const struct queue_plan *plan,
                       const struct queue_plan_port *port, struct smap *config)
{
    if (plan->kind == QUEUES_HTB) {
        smap_add_format(config, "max-rate", "%"PRId64, port->rate_bps);
    } else if (plan->kind == QUEUES_POLICER) {
        int64_t bytes = port->rate_bps / 8;
        int64_t burst = bytes * BURST_SECONDS;

        smap_add_format(config, "cir", "%"PRId64, bytes);
        smap_add_format(config, "cbs", "%"PRId64,
                        MAX(burst, MIN_BURST_BYTES));
    }
}

void
queue_plan_queue_config(const struct queue_plan *plan,
                        const struct queue_plan_port *port, size_t i,
                        struct smap *config)
{
    int64_t min_rate = port->rate_bps * plan->min_share;

    smap_add_format(config, "min-rate", "%"PRId64,
                    MIN(MAX(min_rate, MIN_RATE_BPS), port->rate_bps));
    smap_add_format(config, "max-rate", "%"PRId64, port->rate_bps);
    smap_add_format(config, "priority", "%"PRId64,
                    queue_plan_number(plan, i));
}

struct ovsdb_qos {
    struct driver up;
    char *remote;
    uint64_t datapath;
    struct ovsdb_idl *idl;      /* NULL until the first want(). */
    struct ovsdb_idl_txn *txn;  /* In progress, or NULL. */
    uint64_t generation;        /* Leader's generation. */
    uint64_t newest;            /* The bridge's, if that is newer; else 0. */
    struct queue_plan *wanted;  /* Desired queues. */
    unsigned int seqno;         /* Sequence number of 'idl' at the last
                                 * reconcile(). */
    bool stale;                 /* reconcile() is due whatever 'seqno' is. */
    long long int next;         /* time_msec() before which it must wait. */
    enum driver_state state;
    char *reason;               /* For DRIVER_REFUSED or a missing port. */

    /* Of the last reconcile(). */
    const struct ovsrec_bridge *br;     /* Valid only until its end. */
    size_t n_applied;           /* Rows that were as desired. */
    size_t n_changes;           /* Columns changed and rows deleted. */
    struct sset names;          /* Of the rows that were written or as
                                 * desired. */
};

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
row_name(const struct ovsdb_qos *oq, uint32_t port, int64_t queue)
{
    return (queue < 0
            ? xasprintf("%016"PRIx64":%"PRIu32, oq->datapath, port)
            : xasprintf("%016"PRIx64":%"PRIu32":%"PRId64, oq->datapath, port,
                        queue));
}

/* Returns true if a row with these external_ids is ours and of this bridge. */
static bool
is_ours(const struct ovsdb_qos *oq, const struct smap *external_ids)
{
    const char *name = smap_get(external_ids, OURS);

    return (name && strlen(name) > 16 && name[16] == ':'
            && !strncmp(name, oq->br->datapath_id, 16));
}

static const struct ovsrec_qos *
find_qos(const struct ovsdb_qos *oq, const char *name)
{
    const struct ovsrec_qos *qos;

    OVSREC_QOS_FOR_EACH (qos, oq->idl) {
        if (!strcmp(smap_get_def(&qos->external_ids, OURS, ""), name)) {
            return qos;
        }
    }
    return NULL;
}

static const struct ovsrec_queue *
find_queue(const struct ovsdb_qos *oq, const char *name)
{
    const struct ovsrec_queue *queue;

    OVSREC_QUEUE_FOR_EACH (queue, oq->idl) {
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
count_row(struct ovsdb_qos *oq, size_t n_changes)
{
    oq->n_applied += !n_changes;
    oq->n_changes += n_changes;
}

static const struct ovsrec_queue *
write_queue(struct ovsdb_qos *oq, const struct queue_plan_port *port, size_t i)
{
    char *name = row_name(oq, port->port, queue_plan_number(oq->wanted, i));
    const struct ovsrec_queue *queue = find_queue(oq, name);
    struct smap config = SMAP_INITIALIZER(&config);
    size_t n = 0;

    if (!queue) {
        struct smap ids = SMAP_CONST1(&ids, OURS, name);

        queue = ovsrec_queue_insert(oq->txn);
        ovsrec_queue_set_external_ids(queue, &ids);
        n++;
    }
    queue_plan_queue_config(oq->wanted, port, i, &config);
    if (!smap_equal(&queue->other_config, &config)) {
        ovsrec_queue_set_other_config(queue, &config);
        n++;
    }
    count_row(oq, n);
    sset_add_and_free(&oq->names, name);
    smap_destroy(&config);
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

static const struct ovsrec_qos *
write_qos(struct ovsdb_qos *oq, const struct queue_plan_port *port)
{
    const char *type = queue_kind_names[oq->wanted->kind];
    size_t n_queues = queue_plan_n_queues(oq->wanted), n = 0;
    int64_t *numbers = xcalloc(n_queues + 1, sizeof *numbers);
    struct ovsrec_queue **queues = xcalloc(n_queues + 1, sizeof *queues);
    char *name = row_name(oq, port->port, -1);
    const struct ovsrec_qos *qos = find_qos(oq, name);
    struct smap config = SMAP_INITIALIZER(&config);

    for (size_t i = 0; i < n_queues; i++) {
        numbers[i] = queue_plan_number(oq->wanted, i);
        queues[i] = CONST_CAST(struct ovsrec_queue *,
                               write_queue(oq, port, i));
    }
    if (!qos) {
        struct smap ids = SMAP_CONST1(&ids, OURS, name);

        qos = ovsrec_qos_insert(oq->txn);
        ovsrec_qos_set_external_ids(qos, &ids);
        n++;
    }
    queue_plan_port_config(oq->wanted, port, &config);
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
    count_row(oq, n);
    sset_add_and_free(&oq->names, name);
    smap_destroy(&config);
    free(queues);
    free(numbers);
    return qos;
}

/* Assigns 'qos' to 'port' and saves the UUID of the port's previous QoS. */
static void
write_port(struct ovsdb_qos *oq, const struct ovsrec_port *port,
           const struct ovsrec_qos *qos)
{
    bool others = port->qos && !is_ours(oq, &port->qos->external_ids);

    count_row(oq, port->qos != qos);
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
    }
}

static void
restore_port(struct ovsdb_qos *oq, const struct ovsrec_port *port)
{
    const char *before = smap_get(&port->external_ids, BEFORE);
    const struct ovsrec_qos *qos = NULL;
    struct uuid uuid;

    if (!before) {
        return;
    }
    if (!port->qos || is_ours(oq, &port->qos->external_ids)) {
        if (uuid_from_string(&uuid, before)) {
            qos = ovsrec_qos_get_for_uuid(oq->idl, &uuid);
        }
        ovsrec_port_set_qos(port, qos);
    }
    ovsrec_port_update_external_ids_delkey(port, BEFORE);
    oq->n_changes++;
}

static bool
is_planned(const struct ovsdb_qos *oq, const struct ovsrec_port *port)
{
    for (size_t i = 0; i < oq->wanted->n_ports; i++) {
        if (find_port(oq->br, oq->wanted->ports[i].port) == port) {
            return true;
        }
    }
    return false;
}

/* Returns true if a row of ours has not been written from the plan. */
static bool
is_unwanted(const struct ovsdb_qos *oq, const struct smap *external_ids)
{
    return (is_ours(oq, external_ids)
            && !sset_contains(&oq->names, smap_get(external_ids, OURS)));
}

/* Deletes our rows that are not in the plan, and restores their ports. */
static void
delete_unwanted_rows(struct ovsdb_qos *oq)
{
    const struct ovsrec_qos *qos;
    const struct ovsrec_queue *queue;

    for (size_t i = 0; i < oq->br->n_ports; i++) {
        if (!is_planned(oq, oq->br->ports[i])) {
            restore_port(oq, oq->br->ports[i]);
        }
    }
    OVSREC_QOS_FOR_EACH_SAFE (qos, oq->idl) {
        if (is_unwanted(oq, &qos->external_ids)) {
            ovsrec_qos_delete(qos);
            oq->n_changes++;
        }
    }
    OVSREC_QUEUE_FOR_EACH_SAFE (queue, oq->idl) {
        if (is_unwanted(oq, &queue->external_ids)) {
            ovsrec_queue_delete(queue);
            oq->n_changes++;
        }
    }
}

/* Stores the leader's generation in the bridge.  The transaction fails if
 * another leader changes it at the same time. */
static void
write_generation(struct ovsdb_qos *oq)
{
    ovsrec_bridge_verify_external_ids(oq->br);
    if (get_generation(oq->br) != oq->generation) {
        char *text = xasprintf("%"PRIu64, oq->generation);

        ovsrec_bridge_update_external_ids_setkey(oq->br, GENERATION, text);
        oq->n_changes++;
        free(text);
    }
}

/* Adds the differences between rows and desired queues to the transaction.
 * Returns NULL, or an error message about the first missing port, which the
 * caller frees. */
static char *
write_rows(struct ovsdb_qos *oq)
{
    const struct queue_plan *plan = oq->wanted;
    char *missing = NULL;

    sset_clear(&oq->names);
    for (size_t i = 0; i < plan->n_ports; i++) {
        const struct queue_plan_port *wanted = &plan->ports[i];
        const struct ovsrec_port *port = find_port(oq->br, wanted->port);
        const struct ovsrec_qos *qos = write_qos(oq, wanted);

        if (port) {
            write_port(oq, port, qos);
        } else if (!missing) {
            missing = xasprintf("the bridge has no port %"PRIu32,
                                wanted->port);
        }
    }
    delete_unwanted_rows(oq);
    write_generation(oq);
    return missing;
}

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
    sset_destroy(&oq->names);
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
ovsdb_qos_want(struct driver *driver, struct driver_want *want)
{
    struct ovsdb_qos *oq = ovsdb_qos_cast(driver);

    if (!oq->idl) {
        oq->idl = open_database(oq->remote);
        oq->stale = true;
    }
    if (!oq->wanted || oq->generation != want->generation
        || !queue_plan_equal(oq->wanted, want->queues)) {
        queue_plan_destroy(oq->wanted);
        oq->wanted = want->queues;
        want->queues = NULL;
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
    char *missing;

    oq->br = find_bridge(oq->idl, oq->datapath);
    oq->n_applied = oq->n_changes = 0;
    if (!oq->br) {
        set_state(oq, DRIVER_REFUSED,
                  xasprintf("no bridge has datapath id %016"PRIx64,
                            oq->datapath));
        return;
    }
    oq->newest = get_generation(oq->br);
    if (oq->newest > oq->generation) {
        set_state(oq, DRIVER_REFUSED,
                  xasprintf("the bridge was changed by a newer controller, of "
                            "generation %" PRIu64,
                            oq->newest));
        return;
    }
    oq->newest = 0;
    oq->txn = ovsdb_idl_txn_create(oq->idl);
    ovsdb_idl_txn_add_comment(oq->txn, "stagecoach: queues of %016"PRIx64
                              " by generation %"PRIu64, oq->datapath,
                              oq->generation);
    missing = write_rows(oq);
    if (!oq->n_changes) {
        ovsdb_idl_txn_destroy(oq->txn);
        oq->txn = NULL;
    } else {
        VLOG_INFO("%s: writing %"PRIuSIZE" changes of queues", oq->remote,
                  oq->n_changes);
    }
    set_state(oq, oq->txn || missing ? DRIVER_WRITING : DRIVER_IN_SYNC,
              missing);
}

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

static struct driver_status
ovsdb_qos_get_status(const struct driver *driver)
{
    const struct ovsdb_qos *oq = ovsdb_qos_cast(driver);
    const struct queue_plan *plan = oq->wanted;

    return (struct driver_status){
        .state = oq->state,
        .reason = oq->reason ? oq->reason : "",
        .newest = oq->newest,
        /* Each port, its QoS and its queues. */
        .n_wanted =
            (plan ? plan->n_ports * (2 + queue_plan_n_queues(plan)) : 0),
        .n_applied = oq->n_applied,
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
    json_object_put_string(json, "type",
                           plan ? queue_kind_names[plan->kind] : "");
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
    sset_init(&oq->names);
    return &oq->up;
}
