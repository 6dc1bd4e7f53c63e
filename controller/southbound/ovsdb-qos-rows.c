/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/ovsdb-qos-rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/southbound/queue-plan.h"
#include "ovsdb-idl.h"
#include "smap.h"
#include "util.h"
#include "uuid.h"
#include "vswitch-idl.h"

#define OURS "stagecoach"
#define BEFORE "stagecoach-qos-before"
#define GENERATION "stagecoach-generation"
#define NOTHING "none"

struct rows {
    struct ovsdb_idl *idl;
    struct ovsdb_idl_txn *txn;
    const struct ovsrec_bridge *br;
    const struct queue_plan *plan;
    struct qos_rows_count *count;
};

size_t
qos_rows_n_wanted(const struct queue_plan *plan)
{
    return plan->n_ports * (2 + queue_plan_n_queues(plan));
}

const struct ovsrec_bridge *
qos_rows_find_bridge(struct ovsdb_idl *idl, uint64_t datapath)
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

uint64_t
qos_rows_generation(const struct ovsrec_bridge *br)
{
    return smap_get_ullong(&br->external_ids, GENERATION, 0);
}

/* The name by which a row of 'port' is ours; 'queue' is -1 for its QoS. */
static char *
row_name(const struct rows *r, uint32_t port, int64_t queue)
{
    uint64_t datapath = strtoull(r->br->datapath_id, NULL, 16);

    return (queue < 0
            ? xasprintf("%016"PRIx64":%"PRIu32, datapath, port)
            : xasprintf("%016"PRIx64":%"PRIu32":%"PRId64, datapath, port,
                        queue));
}

/* Is a row with these external_ids ours, and of this bridge? */
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

/* The bridge's port with number 'number', or NULL. */
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

/* One row was looked at, and 'n_changes' made in it. */
static void
account(struct rows *r, size_t n_changes)
{
    r->count->n_applied += !n_changes;
    r->count->n_changes += n_changes;
}

/* Makes the 'i'th queue of 'port' as it should be. */
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
    account(r, n);
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

/* Makes the QoS of 'port', and its queues, as they should be. */
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
    account(r, n);
    smap_destroy(&config);
    free(name);
    free(queues);
    free(numbers);
    return qos;
}

/* Gives 'port' the queues of 'qos', and notes what it had. */
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
        account(r, 1);
    } else {
        account(r, 0);
    }
}

/* Gives 'port' back what it had before us. */
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

/* Is a row that is called 'name' of the plan? */
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

/* Takes away what is ours and nobody wants any more. */
static void
clean_up(struct rows *r)
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

/* Says who has been here.  Others' saying so at the same time makes the
 * transaction fail. */
static void
write_generation(struct rows *r, uint64_t generation)
{
    ovsrec_bridge_verify_external_ids(r->br);
    if (qos_rows_generation(r->br) != generation) {
        char *text = xasprintf("%"PRIu64, generation);

        ovsrec_bridge_update_external_ids_setkey(r->br, GENERATION, text);
        r->count->n_changes++;
        free(text);
    }
}

char *
qos_rows_write(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn,
               const struct ovsrec_bridge *br, const struct queue_plan *plan,
               uint64_t generation, struct qos_rows_count *count)
{
    struct rows r = {
        .idl = idl, .txn = txn, .br = br, .plan = plan, .count = count,
    };
    char *missing = NULL;

    clean_up(&r);
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
