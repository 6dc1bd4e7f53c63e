/* SPDX-License-Identifier: Apache-2.0 */

/* Measures how long the order of a new stage takes to reach many agents, which
 * run in one process.
 *
 *     control-fanout INTENT HOSTS TELEMETRY AGENTS ROUNDS HZ
 *
 * The agents are those of fanout-agent.h; each sends telemetry HZ times a
 * second, or what is new, as the controller wants.  INTENT and HOSTS may be
 * lists with commas.  In each round a new cojob announces a job with a worker
 * on every host and then its stage, which is ordered before the existing
 * stage.  The round lasts from the announcement of the stage until the row of
 * every agent has the new order.  Prints the milliseconds to connect all
 * agents, and then those of each round, one number per line. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/intent/intent-client.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "tests/bench/fanout-agent.h"
#include "timeval.h"
#include "util.h"
#include "wire/announce.h"

#define ROUND_MS 10000          /* A round that takes longer has failed. */
#define CONNECT_MS 60000
#define SETTLE_MS 3000          /* Time for the controller to settle after
                                 * all agents have connected. */
#define PAUSE_MS 300            /* Between two rounds. */
#define TIMEOUT_MS 5000

/* Maximum number of agents that connect at the same time.  The backlog of a
 * server has 64 entries; a client that finds it full on a unix socket is
 * rejected, and tries again after 8 s. */
#define MAX_CONNECTING 32

/* One thread runs all agents and polls each when it wakes up.  It does not
 * wake up for each message, so this sleep is included in the results. */
#define NAP_US 5000

struct world {
    struct fanout_agent *agents;
    int n, n_started;
    int period_ms;
    const char *hosts, *telemetry;
    char job[40];               /* Awaited job, "COJOB/JOB". */
};

static int
count_connected(const struct world *w)
{
    int n = 0;

    for (int i = 0; i < w->n_started; i++) {
        n += fanout_agent_is_connected(&w->agents[i]);
    }
    return n;
}

static void
start_agents(struct world *w)
{
    int n = w->n_started < w->n ? count_connected(w) : w->n;

    while (w->n_started < w->n && w->n_started - n < MAX_CONNECTING) {
        fanout_agent_init(&w->agents[w->n_started], w->n_started, w->hosts,
                          w->telemetry, w->period_ms);
        w->n_started++;
    }
}

static void
turn(struct world *w)
{
    start_agents(w);
    for (int i = 0; i < w->n_started; i++) {
        fanout_agent_run(&w->agents[i]);
        fanout_agent_wait(&w->agents[i]);
    }
    poll_block();
    usleep(NAP_US);
}

static bool
all_have(const struct world *w)
{
    for (int i = 0; i < w->n; i++) {
        if (!fanout_agent_has_first(&w->agents[i], w->job)) {
            return false;
        }
    }
    return true;
}

static bool
all_connected(const struct world *w)
{
    return count_connected(w) == w->n;
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
write_edit(struct intent_client *ic, struct intent_edit edit)
{
    char *error = intent_client_write(ic, &edit, NULL);

    if (error) {
        ovs_fatal(0, "%s", error);
    }
}

/* Announces cojob 'name' with job "j" on every host. */
static void
begin_job(const struct world *w, struct intent_client *ic, const char *name)
{
    struct intent_worker *workers = xcalloc(w->n, sizeof *workers);

    for (int i = 0; i < w->n; i++) {
        workers[i] = (struct intent_worker) {
            .host = w->agents[i].host, .role = "worker", .index = i,
        };
    }
    write_edit(ic, (struct intent_edit) {
        .kind = INTENT_COJOB_BEGIN, .cojob = name, .weight = 1,
    });
    write_edit(ic, (struct intent_edit) {
        .kind = INTENT_JOB_BEGIN, .cojob = name, .job = "j",
        .workers = workers, .n = w->n, .model_bytes = 1000000,
    });
    free(workers);
}

/* Announces a stage of cojob 'name' and returns the milliseconds until all
 * agents have its job first. */
static long long
begin_stage(struct world *w, struct intent_client *ic, const char *name,
            int64_t iterations)
{
    static const char *const jobs[] = { "j" };
    long long began = time_msec();

    snprintf(w->job, sizeof w->job, "%s/j", name);
    write_edit(ic, (struct intent_edit){
                       .kind = INTENT_STAGE_BEGIN,
                       .cojob = name,
                       .rungs = &(struct search_rung){ iterations, 1 },
                       .n_rungs = 1,
                       .jobs = jobs,
                       .n = 1,
                   });
    if (!run_until(w, all_have, ROUND_MS)) {
        ovs_fatal(0, "stage of %s: not all agents have its order after %d ms",
                  name, ROUND_MS);
    }
    return time_msec() - began;
}

static void
run_round(struct world *w, struct intent_client *ic, int round)
{
    char name[16];

    snprintf(name, sizeof name, "r%d", round);
    begin_job(w, ic, name);
    printf("%lld\n", begin_stage(w, ic, name, 10));
    fflush(stdout);
    write_edit(ic, (struct intent_edit) {
        .kind = INTENT_COJOB_END, .cojob = name,
    });
    run_until(w, never, PAUSE_MS);
}

int
main(int argc, char *argv[])
{
    struct world w = { .n = 0 };
    struct intent_client *ic;
    long long began;

    set_program_name(argv[0]);
    if (argc != 7 || atoi(argv[4]) < 1 || atoi(argv[6]) < 1) {
        fputs("usage: control-fanout INTENT HOSTS TELEMETRY AGENTS ROUNDS "
              "HZ\n", stderr);
        return 2;
    }
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    alarm(600);                 /* For a hang only. */
    w.n = atoi(argv[4]);
    w.period_ms = 1000 / atoi(argv[6]);
    w.hosts = argv[2];
    w.telemetry = argv[3];
    w.agents = xcalloc(w.n, sizeof *w.agents);
    ic = intent_client_create(argv[1], TIMEOUT_MS);
    began = time_msec();
    if (!run_until(&w, all_connected, CONNECT_MS)) {
        ovs_fatal(0, "%d of %d agents are connected after %d ms",
                  count_connected(&w), w.n, CONNECT_MS);
    }
    printf("%lld\n", time_msec() - began);
    run_until(&w, never, SETTLE_MS);
    begin_job(&w, ic, "base");
    begin_stage(&w, ic, "base", 1000);
    for (int round = 0; round < atoi(argv[5]); round++) {
        run_round(&w, ic, round);
    }
    return 0;
}
