/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "tests/bench/fanout-agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/telemetry.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "random.h"
#include "smap.h"
#include "timeval.h"
#include "util.h"
#include "wire/hosts-idl.h"

#define CAPACITY_BPS 1000000000

static bool
on_lease(const struct telemetry_lease *lease, void *a_)
{
    struct fanout_agent *a = a_;
    long long now = time_msec();

    report_set_window(&a->report, lease->report_ms, now);
    if (lease->counters_ms) {
        a->period_ms = TELEMETRY_REPEAT_MS; /* Its counters never change. */
    }
    return lease_notify(&a->lease, lease->generation, lease->lease_ms, now);
}

/* The agent has no shim, so that it gets none. */
static bool
on_keys(const struct json *keys, void *a)
{
    return false;
}

static char *
on_order(const struct json *json, void *a_)
{
    struct fanout_agent *a = a_;

    return wanted_push(&a->wanted, json, &a->lease, time_msec());
}

void
fanout_agent_init(struct fanout_agent *a, int number, const char *hosts,
                  const char *telemetry, int period_ms)
{
    struct ovsdb_idl *idl;

    snprintf(a->host, sizeof a->host, "h%d", number);
    idl = ovsdb_idl_create(hosts, &hostsrec_idl_class, false, true);
    a->loop = (struct ovsdb_idl_loop) OVSDB_IDL_LOOP_INITIALIZER(idl);
    ovsdb_idl_set_leader_only(idl, false);
    wanted_init(&a->wanted, idl, a->host);
    report_init(&a->report, idl, a->host, time_msec());
    lease_init(&a->lease);
    a->telemetry = telemetry_create(telemetry, on_lease, on_keys, a);
    telemetry_take_orders(a->telemetry, on_order);
    a->period_ms = period_ms;
    a->next_telemetry = time_msec() + random_range(period_ms);
}

static const char *
state_name(const struct fanout_agent *a)
{
    return lease_until(&a->lease) > time_msec() ? "ordered" : "fair";
}

/* Sends the telemetry of an agent with one job. */
static void
send_telemetry(struct fanout_agent *a)
{
    char *text = xasprintf(
        "{\"version\":1,\"host\":\"%s\",\"time\":%lld,\"state\":\"%s\","
        "\"applied\":%" PRId64 ",\"applied_generation\":%" PRId64
        ",\"ports\":{\"uplink\":{\"tx_bytes\":1,"
        "\"rx_bytes\":1,\"capacity_bps\":%d}},\"ip_bytes\":1,"
        "\"default_bytes\":0,\"jobs\":[{\"job\":\"base/j\",\"tx_bytes\":1,"
        "\"rx_bytes\":1,\"iteration\":1,\"stage\":0}]}",
        a->host, time_wall_msec(), state_name(a), a->wanted.version,
        a->wanted.generation, CAPACITY_BPS);

    telemetry_send(a->telemetry, json_from_string(text));
    free(text);
}

void
fanout_agent_run(struct fanout_agent *a)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_loop_run(&a->loop);
    long long now = time_msec();
    struct smap health = SMAP_INITIALIZER(&health);
    struct report_facts facts = {
        .capacity_bps = CAPACITY_BPS,
        .health = &health,
    };

    telemetry_run(a->telemetry);
    wanted_run(&a->wanted, a->loop.idl, &a->lease, now);
    if (now >= a->next_telemetry || a->told != a->wanted.version) {
        a->next_telemetry = now + a->period_ms;
        a->told = a->wanted.version;
        send_telemetry(a);
    }
    facts.state = state_name(a);
    facts.applied = a->wanted.version;
    smap_add(&health, "shim", "connected");
    smap_add(&health, "telemetry",
             telemetry_is_connected(a->telemetry) ? "connected" : "away");
    report_run(&a->report, a->loop.idl, txn, &facts, now);
    smap_destroy(&health);
    ovsdb_idl_loop_commit_and_wait(&a->loop);
}

void
fanout_agent_wait(struct fanout_agent *a)
{
    telemetry_wait(a->telemetry);
    report_wait(&a->report);
    poll_timer_wait_until(a->next_telemetry);
}

bool
fanout_agent_is_connected(const struct fanout_agent *a)
{
    return (ovsdb_idl_has_ever_connected(a->loop.idl)
            && telemetry_is_connected(a->telemetry));
}

bool
fanout_agent_has_first(const struct fanout_agent *a, const char *job)
{
    const struct shash_node *node;
    struct shim_slot row, other;

    if (!wanted_get(&a->wanted, job, &row)) {
        return false;
    }
    SHASH_FOR_EACH (node, &a->wanted.jobs) {
        if (wanted_get(&a->wanted, node->name, &other)
            && other.rank < row.rank) {
            return false;
        }
    }
    return true;
}
