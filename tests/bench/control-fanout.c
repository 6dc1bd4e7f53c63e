/* SPDX-License-Identifier: Apache-2.0 */

/* Many agents in one process, to see how long a stage's beginning takes to
 * reach the last of them.
 *
 *     control-fanout INTENT HOSTS TELEMETRY AGENTS ROUNDS HZ
 *
 * Each agent has what a real one has: an IDL that sees its own rows only, and
 * a telemetry connection on which it reports HZ times a second.  HOSTS may be
 * a list with commas.  In each round a job that has a worker on every host
 * gets a stage; the round ends when every agent's row has the job.  It prints
 * the rounds' milliseconds, a line each.
 *
 * What real agents write to Host_Reported is not there: it is not on the way
 * from a stage to its order. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/hosts-idl.h"
#include "controller/intent-client.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "timeval.h"
#include "trainer/search/announce.h"
#include "util.h"

#define ROUND_MS 10000          /* A round that takes longer has failed. */
#define CONNECT_MS 60000
#define PAUSE_MS 300            /* Between two rounds. */
#define TIMEOUT_MS 5000

struct agent {
    char host[16];
    struct ovsdb_idl *idl;
    unsigned int seqno;         /* Of 'idl', at the last look. */
    struct jsonrpc_session *telemetry;
    long long next_report;
    bool has_job;               /* That of this round. */
};

struct world {
    struct agent *agents;
    int n, period_ms;
    int n_have;                 /* Agents with 'has_job'. */
    char job[40];               /* "COJOB/JOB" that is waited for. */
};

static void
agent_init(struct agent *a, int i, const char *hosts, const char *telemetry)
{
    struct ovsdb_idl_condition condition
        = OVSDB_IDL_CONDITION_INIT(&condition);

    snprintf(a->host, sizeof a->host, "h%d", i);
    a->idl = ovsdb_idl_create(hosts, &hostsrec_idl_class, false, true);
    ovsdb_idl_set_leader_only(a->idl, false);
    ovsdb_idl_add_table(a->idl, &hostsrec_table_host_wanted);
    for (size_t j = 0; j < HOSTSREC_HOST_WANTED_N_COLUMNS; j++) {
        ovsdb_idl_add_column(a->idl, &hostsrec_host_wanted_columns[j]);
    }
    hostsrec_host_wanted_add_clause_host(&condition, OVSDB_F_EQ, a->host);
    ovsdb_idl_set_condition(a->idl, &hostsrec_table_host_wanted, &condition);
    ovsdb_idl_condition_destroy(&condition);
    a->telemetry = jsonrpc_session_open(telemetry, true);
    jsonrpc_session_set_max_backoff(a->telemetry, 1000);
}

static struct jsonrpc_msg *
make_report(const struct agent *a, const char *job)
{
    char *text = xasprintf(
        "{\"version\":1,\"host\":\"%s\",\"time\":%lld,\"state\":\"ordered\","
        "\"applied\":0,\"ports\":{\"uplink\":{\"tx_bytes\":1,\"rx_bytes\":1,"
        "\"capacity_bps\":1000000000}},\"ip_bytes\":1,\"default_bytes\":0,"
        "\"jobs\":[{\"job\":\"%s\",\"tx_bytes\":1,\"rx_bytes\":1,"
        "\"iteration\":1,\"stage\":0}]}",
        a->host, time_wall_msec(), job);
    struct json *json = json_from_string(text);

    free(text);
    return jsonrpc_create_notify("telemetry", json_array_create_1(json));
}

static bool
row_has(const struct hostsrec_host_wanted *row, const char *job)
{
    for (size_t i = 0; i < row->n_level; i++) {
        if (!strcmp(row->key_level[i], job)) {
            return true;
        }
    }
    return false;
}

static void
agent_look(struct world *w, struct agent *a)
{
    const struct hostsrec_host_wanted *row;
    bool has = false;

    HOSTSREC_HOST_WANTED_FOR_EACH (row, a->idl) {
        has = has || (w->job[0] && row_has(row, w->job));
    }
    w->n_have += has - a->has_job;
    a->has_job = has;
}

static void
agent_run(struct world *w, struct agent *a)
{
    struct jsonrpc_msg *msg;

    ovsdb_idl_run(a->idl);
    if (ovsdb_idl_get_seqno(a->idl) != a->seqno) {
        a->seqno = ovsdb_idl_get_seqno(a->idl);
        agent_look(w, a);
    }
    jsonrpc_session_run(a->telemetry);
    while ((msg = jsonrpc_session_recv(a->telemetry))) {
        jsonrpc_msg_destroy(msg);
    }
    if (time_msec() >= a->next_report) {
        a->next_report = time_msec() + w->period_ms;
        if (jsonrpc_session_is_connected(a->telemetry)) {
            jsonrpc_session_send(a->telemetry, make_report(a, "base/j"));
        }
    }
}

static void
turn(struct world *w)
{
    for (int i = 0; i < w->n; i++) {
        struct agent *a = &w->agents[i];

        agent_run(w, a);
        ovsdb_idl_wait(a->idl);
        jsonrpc_session_wait(a->telemetry);
        jsonrpc_session_recv_wait(a->telemetry);
        poll_timer_wait_until(a->next_report);
    }
    poll_block();
}

static bool
all_have(const struct world *w)
{
    return w->n_have == w->n;
}

static bool
all_connected(const struct world *w)
{
    for (int i = 0; i < w->n; i++) {
        if (!ovsdb_idl_has_ever_connected(w->agents[i].idl)
            || !jsonrpc_session_is_connected(w->agents[i].telemetry)) {
            return false;
        }
    }
    return true;
}

/* Lets the agents run until 'done' or 'timeout_ms'. */
static bool
run_until(struct world *w, bool (*done)(const struct world *), int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;

    while (!done(w) && time_msec() < deadline) {
        turn(w);
    }
    return done(w);
}

static bool
never(const struct world *w OVS_UNUSED)
{
    return false;
}

static void
check(char *error)
{
    if (error) {
        ovs_fatal(0, "%s", error);
    }
}

/* Announces cojob 'name' with job "j" on every host. */
static void
begin(const struct world *w, struct intent_client *ic, const char *name)
{
    struct announce_worker *workers = xcalloc(w->n, sizeof *workers);
    static const char *const jobs[] = { "j" };

    for (int i = 0; i < w->n; i++) {
        workers[i] = (struct announce_worker) {
            .host = w->agents[i].host, .role = "worker", .index = i,
        };
    }
    check(intent_client_cojob_begin(ic, name, 1));
    check(intent_client_job_begin(ic, name, "j", workers, w->n, 1000000));
    check(intent_client_stage_begin(ic, name, 0, 100, jobs, 1));
    free(workers);
}

static void
run_round(struct world *w, struct intent_client *ic, int round)
{
    char name[16];
    long long began;

    snprintf(name, sizeof name, "r%d", round);
    snprintf(w->job, sizeof w->job, "%s/j", name);
    began = time_msec();
    begin(w, ic, name);
    if (!run_until(w, all_have, ROUND_MS)) {
        ovs_fatal(0, "round %d: %d of %d agents have the order after %d ms",
                  round, w->n_have, w->n, ROUND_MS);
    }
    printf("%lld\n", time_msec() - began);
    fflush(stdout);
    check(intent_client_cojob_end(ic, name));
    w->job[0] = '\0';
    run_until(w, never, PAUSE_MS);
}

int
main(int argc, char *argv[])
{
    struct world w = { .n = 0 };
    struct intent_client *ic;

    set_program_name(argv[0]);
    if (argc != 7 || atoi(argv[4]) < 1 || atoi(argv[6]) < 1) {
        fputs("usage: control-fanout INTENT HOSTS TELEMETRY AGENTS ROUNDS "
              "HZ\n", stderr);
        return 2;
    }
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    alarm(150);                 /* Never left behind. */
    w.n = atoi(argv[4]);
    w.period_ms = 1000 / atoi(argv[6]);
    w.agents = xcalloc(w.n, sizeof *w.agents);
    for (int i = 0; i < w.n; i++) {
        agent_init(&w.agents[i], i, argv[2], argv[3]);
        w.agents[i].next_report = time_msec() + i * w.period_ms / w.n;
    }
    ic = intent_client_create(argv[1], TIMEOUT_MS);
    if (!run_until(&w, all_connected, CONNECT_MS)) {
        ovs_fatal(0, "agents are not connected after %d ms", CONNECT_MS);
    }
    strcpy(w.job, "base/j");
    begin(&w, ic, "base");
    if (!run_until(&w, all_have, ROUND_MS)) {
        ovs_fatal(0, "the first order does not reach all agents");
    }
    for (int round = 0; round < atoi(argv[5]); round++) {
        run_round(&w, ic, round);
    }
    return 0;
}
