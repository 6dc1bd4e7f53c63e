/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes what a controller sends to an agent: notifications of leases and keys
 * on the telemetry stream, and rows of Host_Wanted from the hosts database.
 * Each line is one event:
 *
 *    m JSON     message on the telemetry stream, also an order
 *    u JSON     <table-updates2> of the hosts database
 *    t MS       so much time passes
 *
 * A malicious database or controller may send anything.  The lease must stay
 * within its limits, generations never go back, and the shim must be able to
 * use every row.  The connections are replaced: __wrap functions. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host-rows.h"
#include "agent/telemetry.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/vlog.h"
#include "ovsdb-cs.h"
#include "ovsdb-idl.h"
#include "tests/fuzz/must.h"
#include "util.h"
#include "wire/hosts-idl.h"
#include "wire/shim-protocol.h"

#define HOST "h0"

void __wrap_ovsdb_cs_run(struct ovsdb_cs *, struct ovs_list *events);
void __wrap_jsonrpc_session_run(struct jsonrpc_session *);
struct jsonrpc_msg *__wrap_jsonrpc_session_recv(struct jsonrpc_session *);

static struct json *next_updates;       /* Of the database, NULL: none. */
static struct jsonrpc_msg *next_message;        /* Of the stream. */

struct world {
    struct ovsdb_idl *idl;
    struct telemetry *telemetry;
    struct wanted wanted;
    struct peers peers;
    struct lease lease;
    int64_t generation, version; /* Of 'wanted' before. */
    long long now;
};

void
__wrap_ovsdb_cs_run(struct ovsdb_cs *cs OVS_UNUSED, struct ovs_list *events)
{
    ovs_list_init(events);
    if (next_updates) {
        struct ovsdb_cs_event *event = xzalloc(sizeof *event);

        event->type = OVSDB_CS_EVENT_TYPE_UPDATE;
        event->update.table_updates = next_updates;
        event->update.version = 2;
        next_updates = NULL;
        ovs_list_push_back(events, &event->list_node);
    }
}

void
__wrap_jsonrpc_session_run(struct jsonrpc_session *session OVS_UNUSED)
{
}

struct jsonrpc_msg *
__wrap_jsonrpc_session_recv(struct jsonrpc_session *session OVS_UNUSED)
{
    struct jsonrpc_msg *msg = next_message;

    next_message = NULL;
    return msg;
}

/* As agent.c does. */
static bool
on_lease(const struct telemetry_lease *lease, void *world_)
{
    struct world *world = world_;

    must(lease->generation >= 0 && lease->lease_ms >= 0
         && lease->report_ms >= 0);
    return lease_notify(&world->lease, lease->generation, lease->lease_ms,
                        world->now);
}

static bool
on_keys(const struct json *keys, void *world_)
{
    struct world *world = world_;
    bool good = peers_take_keys(&world->peers, keys);

    must(world->peers.n_keys <= PEERS_MAX_KEYS);
    must(!world->peers.n_keys
         || !protocol_check_body(SHIM_KEYS, world->peers.keys,
                                 world->peers.n_keys
                                     * sizeof *world->peers.keys));
    return good;
}

static char *
on_order(const struct json *json, void *world_)
{
    struct world *world = world_;

    return wanted_push(&world->wanted, json, &world->lease, world->now);
}

static void
check_lease(const struct world *world, const struct lease *before)
{
    const struct lease *lease = &world->lease;

    must(lease->newest >= before->newest);
    must(lease->row <= lease->newest && lease->held <= lease->newest);
    if (lease->until != before->until) {
        must(lease->until >= world->now + LEASE_MIN_MS
             && lease->until <= world->now + LEASE_MAX_MS);
        must(lease->held == lease->newest);
    }
    must(lease_until(lease) == 0 || lease_until(lease) == lease->until);
}

static void
check_slot(const struct shim_slot *slot)
{
    must(slot->level <= SHIM_LEVEL_DEFAULT && slot->dscp <= 63);
    must(slot->weight >= 1 && slot->weight <= 1000000000);
    must(memchr(slot->name, '\0', sizeof slot->name));
}

/* Checks the row for each job that it names. */
static void
check_wanted(const struct world *world)
{
    const struct shim_congestion *c = &world->wanted.all.congestion;
    const struct shash_node *node;
    struct shim_slot slot;

    must(world->wanted.all.min_share <= SHIM_MIN_SHARE_UNIT
         || world->wanted.all.min_share == SHIM_MIN_SHARE_DEFAULT);
    must(world->wanted.all.default_dscp <= 63);
    must(world->wanted.all.control.dscp >= 1
         && world->wanted.all.control.dscp <= 63);
    must(c->gamma >= SHIM_CONGESTION_UNIT / 2);
    SHASH_FOR_EACH (node, &world->wanted.jobs) {
        wanted_get(&world->wanted, node->name, &slot);
        check_slot(&slot);
    }
}

/* Takes the order that has come, if one has: versions of a generation grow. */
static void
run_wanted(struct world *world)
{
    struct wanted *w = &world->wanted;
    bool was_present = w->present;
    int64_t generation = world->generation, version = world->version;

    if (wanted_run(w, world->idl, &world->lease, world->now)) {
        must(w->present);
        must(world->lease.row == w->generation
             && world->lease.held == world->lease.row);
        must(!was_present || w->generation > generation
             || (w->generation == generation && w->version > version));
    }
    world->generation = w->generation;
    world->version = w->version;
    check_wanted(world);
}

static void
take_updates(struct world *world, struct json *json)
{
    next_updates = json;
    ovsdb_idl_run(world->idl);
    must(!next_updates);
}

static void
take_message(struct world *world, struct json *json)
{
    char *error = jsonrpc_msg_from_json(json, &next_message);

    must(!error == !!next_message);
    free(error);
    telemetry_run(world->telemetry);
    must(!next_message);
}

static void
take_line(struct world *world, const char *line)
{
    struct lease before = world->lease;
    struct json *json;

    if (line[0] == 't') {
        world->now += strtoul(line + 1, NULL, 10) % 1000000;
    }
    if ((line[0] != 'm' && line[0] != 'u') || line[1] != ' ') {
        return;
    }
    json = json_from_string(line + 2);
    if (line[0] == 'm') {
        take_message(world, json);
    } else {
        take_updates(world, json);
    }
    run_wanted(world);
    check_lease(world, &before);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size), *save = NULL;
    struct world world = { .now = 1000 };

    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    world.idl = ovsdb_idl_create("unix:/nonexistent", &hostsrec_idl_class,
                                 false, true);
    world.telemetry =
        telemetry_create("unix:/nonexistent", on_lease, on_keys, &world);
    telemetry_take_orders(world.telemetry, on_order);
    lease_init(&world.lease);
    wanted_init(&world.wanted, world.idl, HOST);
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        take_line(&world, line);
    }
    wanted_uninit(&world.wanted);
    peers_uninit(&world.peers);
    telemetry_destroy(world.telemetry);
    ovsdb_idl_destroy(world.idl);
    free(text);
    return 0;
}
