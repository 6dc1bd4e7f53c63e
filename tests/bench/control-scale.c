/* SPDX-License-Identifier: Apache-2.0 */

/* Measures a controller with many agents, which run in this process.
 *
 *     control-scale INTENT HOSTS TELEMETRY AGENTS SEARCHES CHANGES IDLE_S
 *                   EVENTS JOBS ON KILL TLS PID...
 *
 * The agents, of hosts "h0", "h1" and so on, read their order, send telemetry
 * and write their reported row with the code of the real agent, but have no
 * shim and no process of their own; they report each order as applied at once.
 * INTENT and HOSTS may be lists with commas; without HOSTS, "", the agents
 * have telemetry only.  TLS has the keys of "stagecoach pki", or is "".
 * SEARCHES of eight jobs, each on six hosts, run; with CHANGES, 1, bytes and
 * iterations of all change every second.  Nothing else happens in IDLE_S
 * seconds, after a quarter of that to settle.  In each of EVENTS rounds a new
 * search announces JOBS on ON hosts together, and then their stage.  At the
 * end process KILL, unless 0, is killed.  The processor time of the PIDs
 * counts.
 *
 * Prints a JSON object: "connect_ms" and "announce_ms" until all agents are
 * connected and all searches are announced; "idle_cpu", processor seconds a
 * second of each process; "parse_us", the time to parse a report, of
 * "report_bytes"; "event_ms" of each round, from the announcement of the stage
 * until each of its hosts has its order; "event_cpu", processor seconds of a
 * round, less those of an idle controller; "messages", new orders that agents
 * have got during the rounds, and "concerned", those of them that change
 * something for a host; "lost", hosts that had no order for some time after
 * the kill. */

#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/host-rows.h"
#include "agent/telemetry.h"
#include "base/compare.h"
#include "controller/intent/intent-edit.h"
#include "hash.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "smap.h"
#include "stream-ssl.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"
#include "wire/hosts-idl.h"
#include "wire/intent-idl.h"
#include "wire/json-put.h"

#define STEP_MS 60000 /* A step that takes longer has failed. */
#define CONNECT_MS 300000
#define PAUSE_MS 300 /* Between two rounds, and before its stage. */
#define MAX_PIDS 16
#define SEARCH_JOBS 8
#define SEARCH_HOSTS 6
#define N_PARSED 1000
#define BATCH 100 /* Searches that are announced at once. */

/* Maximum number of agents that connect at the same time.  The backlog of a
 * server has 64 entries; a client that finds it full on a unix socket is
 * rejected, and tries again after 8 s. */
#define MAX_CONNECTING 32

/* A turn runs this part of the agents, beside those that are awaited, and then
 * sleeps: the results include that. */
#define PART 50
#define NAP_US 4000

/* Bytes that a worker of a job sends in an iteration. */
#define MODEL_BYTES 1000000

struct fake_agent {
    char host[16]; /* "h" and its number. */
    struct ovsdb_idl_loop loop;
    bool has_rows; /* The loop has a database. */
    struct wanted wanted;
    struct report report;
    struct lease lease;
    struct telemetry *telemetry;
    struct svec jobs;         /* Announced here, "COJOB/JOB". */
    bool changes;             /* Their bytes and iterations change. */
    long long began;          /* Time of iteration 0, as time_msec(). */
    int64_t reported;         /* Version in the last telemetry. */
    long long next_telemetry; /* Time of the next telemetry, as
                               * time_msec(). */

    /* Since the caller has cleared them. */
    int messages;   /* New versions of the order. */
    int concerned;  /* Of these, with another level, DSCP, weight
                     * or order of the host's jobs. */
    bool was_fair;  /* There was no valid order. */
    uint32_t order; /* Hash of the last order. */
};

#define CAPACITY_BPS 100000000000

static bool
on_lease(const struct telemetry_lease *lease, void *a_)
{
    struct fake_agent *a = a_;
    long long now = time_msec();

    report_set_window(&a->report, lease->report_ms, now);
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
    struct fake_agent *a = a_;

    return wanted_push(&a->wanted, json, &a->lease, time_msec());
}

static void
agent_init(struct fake_agent *a, int number, const char *hosts,
           const char *telemetry, bool changes)
{
    struct ovsdb_idl *idl;

    snprintf(a->host, sizeof a->host, "h%d", number);
    a->has_rows = *hosts;
    idl = (*hosts ? ovsdb_idl_create(hosts, &hostsrec_idl_class, false, true)
                  : ovsdb_idl_create_unconnected(&hostsrec_idl_class, false));
    a->loop = (struct ovsdb_idl_loop) OVSDB_IDL_LOOP_INITIALIZER(idl);
    ovsdb_idl_set_leader_only(idl, false);
    wanted_init(&a->wanted, idl, a->host);
    report_init(&a->report, idl, a->host, time_msec());
    lease_init(&a->lease);
    a->telemetry = telemetry_create(telemetry, on_lease, on_keys, a);
    telemetry_take_orders(a->telemetry, on_order);
    svec_init(&a->jobs);
    a->changes = changes;
    a->began = time_msec();
    a->next_telemetry = a->began + random_range(TELEMETRY_REPEAT_MS);
}

static void
agent_add_job(struct fake_agent *a, const char *cojob, const char *job)
{
    svec_add_nocopy(&a->jobs, xasprintf("%s/%s", cojob, job));
}

static const char *
state_name(const struct fake_agent *a)
{
    return lease_until(&a->lease) > time_msec() ? "ordered" : "fair";
}

static struct json *
compose_job(const struct fake_agent *a, const char *name)
{
    int64_t iteration = (time_msec() - a->began) / 1000;
    struct json *json = json_object_create();

    json_object_put_string(json, "job", name);
    json_put_boolean(json, "registered", true);
    json_put_integer(json, "iteration", iteration);
    json_put_integer(json, "stage", 0);
    json_object_put_string(json, "metric", "loss");
    json_put_real(json, "value", 1.0 / (iteration + 3));
    json_put_integer(json, "tx_bytes", iteration * MODEL_BYTES);
    json_put_integer(json, "rx_bytes", iteration * MODEL_BYTES);
    json_put_real(json, "period_s", 1.0000371);
    json_put_integer(json, "burst_bytes", MODEL_BYTES);
    json_put_real(json, "duty", 0.130417);
    return json;
}

/* Returns a report that has the first 'n' jobs. */
static struct json *
compose(const struct fake_agent *a, size_t n)
{
    struct json *json = json_object_create();
    struct json *ports = json_object_create();
    struct json *port = json_object_create();
    struct json *array = json_array_create_empty();

    json_put_integer(json, "version", 1);
    json_object_put_string(json, "host", a->host);
    json_put_integer(json, "time", time_wall_msec());
    json_object_put_string(json, "state", state_name(a));
    json_put_integer(json, "applied", a->wanted.version);
    json_put_integer(json, "applied_generation", a->wanted.generation);
    json_put_integer(port, "tx_bytes", 1);
    json_put_integer(port, "rx_bytes", 1);
    json_put_integer(port, "capacity_bps", CAPACITY_BPS);
    json_object_put(ports, "uplink", port);
    json_object_put(json, "ports", ports);
    json_put_integer(json, "ip_bytes", 1);
    json_put_integer(json, "default_bytes", 0);
    for (size_t i = 0; i < n; i++) {
        json_array_add(array, compose_job(a, a->jobs.names[i]));
    }
    json_object_put(json, "jobs", array);
    return json;
}

static char *
agent_report(const struct fake_agent *a)
{
    struct json *json = compose(a, a->jobs.n);
    char *text = json_to_string(json, JSSF_SORT);

    json_destroy(json);
    return text;
}

/* Returns a hash of what a host does by its order, in which the sequence of
 * its jobs counts, not their ranks. */
static uint32_t
hash_order(const struct wanted *wanted)
{
    size_t n = 0, max = shash_count(&wanted->jobs);
    uint64_t *jobs = xcalloc(max + 1, sizeof *jobs); /* Rank, hash. */
    const struct shash_node *node;
    uint32_t hash = 0;

    SHASH_FOR_EACH (node, &wanted->jobs) {
        struct shim_slot row;

        if (wanted_get(wanted, node->name, &row)) {
            jobs[n++] = (uint64_t) row.rank << 32
                        | hash_3words(hash_string(node->name, 0),
                                      row.level << 8 | row.dscp, row.weight);
        }
    }
    qsort(jobs, n, sizeof *jobs, compare_u64);
    for (size_t i = 0; i < n; i++) {
        hash = hash_add(hash, (uint32_t) jobs[i]);
    }
    free(jobs);
    return hash;
}

static void
note_order(struct fake_agent *a)
{
    uint32_t order = hash_order(&a->wanted);

    a->reported = a->wanted.version;
    a->messages++;
    a->concerned += order != a->order;
    a->order = order;
}

static void
agent_run(struct fake_agent *a)
{
    struct ovsdb_idl_txn *txn = ovsdb_idl_loop_run(&a->loop);
    long long now = time_msec();
    struct smap health = SMAP_INITIALIZER(&health);
    struct report_facts facts = {
        .capacity_bps = CAPACITY_BPS,
        .health = &health,
    };
    bool due = now >= a->next_telemetry;

    telemetry_run(a->telemetry);
    wanted_run(&a->wanted, a->loop.idl, &a->lease, now);
    if (due || a->reported != a->wanted.version) {
        if (a->reported != a->wanted.version) {
            note_order(a);
        }
        a->next_telemetry += due ? TELEMETRY_REPEAT_MS : 0;
        telemetry_send(a->telemetry,
                       compose(a, due && a->changes ? a->jobs.n : 0));
    }
    facts.state = state_name(a);
    facts.applied = a->wanted.version;
    a->was_fair |= *facts.state == 'f';
    smap_add(&health, "shim", "connected");
    smap_add(&health, "telemetry",
             telemetry_is_connected(a->telemetry) ? "connected" : "away");
    report_run(&a->report, a->loop.idl, txn, &facts, now);
    smap_destroy(&health);
    ovsdb_idl_loop_commit_and_wait(&a->loop);
}

static bool
agent_is_connected(const struct fake_agent *a)
{
    return ((!a->has_rows || ovsdb_idl_has_ever_connected(a->loop.idl))
            && telemetry_is_connected(a->telemetry));
}

static bool
agent_has(const struct fake_agent *a, const char *cojob, const char *job)
{
    char *name = xasprintf("%s/%s", cojob, job);
    struct shim_slot row;
    bool has = wanted_get(&a->wanted, name, &row);

    free(name);
    return has;
}

struct world {
    struct fake_agent *agents;
    int n, n_started, next;
    const char *hosts, *telemetry, *tls;
    struct ovsdb_idl *idl; /* Of the intent database. */
    struct intent_rows rows;
    int searches, changes, idle_s, events, jobs, on, kill;
    int pids[MAX_PIDS], n_pids;
    int first, step; /* The hosts of a round. */
    int n_awaited;   /* Of these, 0: none is awaited. */
    char cojob[16];
};

static int
host_of(const struct world *w, int first, int step, int i)
{
    return (first + (long long) i * step) % w->n;
}

static int
count_connected(const struct world *w)
{
    int n = 0;

    for (int i = 0; i < w->n_started; i++) {
        n += agent_is_connected(&w->agents[i]);
    }
    return n;
}

static void
run_agent(struct world *w, int i)
{
    struct fake_agent *a = &w->agents[i];

    if (w->tls && !agent_is_connected(a)) {
        char *identity =
            xasprintf("%s/agents/%s/identity.pem", w->tls, a->host);

        stream_ssl_set_key_and_cert(identity, identity);
        free(identity);
    }
    agent_run(a);
}

static void
turn(struct world *w)
{
    int n = w->n_started < w->n ? count_connected(w) : w->n;

    while (w->n_started < w->n && w->n_started - n < MAX_CONNECTING) {
        agent_init(&w->agents[w->n_started], w->n_started, w->hosts,
                   w->telemetry, w->changes);
        w->n_started++;
    }
    for (int i = 0; i < w->n_awaited; i++) {
        run_agent(w, host_of(w, w->first, w->step, i));
    }
    for (int i = 0; n < w->n && i < w->n_started; i++) {
        if (!agent_is_connected(&w->agents[i])) {
            run_agent(w, i);
        }
    }
    for (int i = 0; i <= w->n_started / PART; i++) {
        w->next = (w->next + 1) % w->n_started;
        run_agent(w, w->next);
    }
    ovsdb_idl_run(w->idl);
    poll_immediate_wake();
    poll_block();
    usleep(NAP_US);
}

/* Lets the agents run for 'ms'. */
static void
run_for(struct world *w, long long ms)
{
    long long deadline = time_msec() + ms;

    while (time_msec() < deadline) {
        turn(w);
    }
}

/* Writes 'n' edits in one transaction. */
static void
write_edits(struct world *w, const struct intent_edit edits[], size_t n)
{
    long long deadline = time_msec() + STEP_MS;
    enum ovsdb_idl_txn_status status;

    do {
        struct ovsdb_idl_txn *txn;

        turn(w);
        txn = ovsdb_idl_txn_create(w->idl);
        for (size_t i = 0; i < n; i++) {
            bool changed;
            char *error =
                intent_edit_apply(&edits[i], &w->rows, txn, &changed);

            if (error) {
                ovs_fatal(0, "%s", error);
            }
        }
        while ((status = ovsdb_idl_txn_commit(txn)) == TXN_INCOMPLETE
               && time_msec() < deadline) {
            turn(w);
        }
        ovsdb_idl_txn_destroy(txn);
    } while (status == TXN_TRY_AGAIN && time_msec() < deadline);
    if (status != TXN_SUCCESS) {
        ovs_fatal(0, "announcement: %s",
                  ovsdb_idl_txn_status_to_string(status));
    }
}

static const char *const job_names[SEARCH_JOBS] = { "j0", "j1", "j2", "j3",
                                                    "j4", "j5", "j6", "j7" };

/* Adds the job 'job' of 'cojob' on 'n' hosts, which it remembers if it
 * lasts. */
static struct intent_edit
make_job(struct world *w, const char *cojob, int job, int first, int step,
         int n, bool lasts)
{
    struct intent_worker *workers = xcalloc(n, sizeof *workers);

    for (int i = 0; i < n; i++) {
        struct fake_agent *a = &w->agents[host_of(w, first, step, i)];

        workers[i] = (struct intent_worker){ .host = a->host,
                                             .role = "worker",
                                             .index = i };
        if (lasts) {
            agent_add_job(a, cojob, job_names[job]);
        }
    }
    return (struct intent_edit){ .kind = INTENT_JOB_BEGIN,
                                 .cojob = cojob,
                                 .job = job_names[job],
                                 .workers = workers,
                                 .n = n,
                                 .model_bytes = MODEL_BYTES };
}

static struct intent_edit
make_stage(const char *cojob, int jobs)
{
    static const struct search_rung rung = { 1000000, 1 };

    return (struct intent_edit){ .kind = INTENT_STAGE_BEGIN,
                                 .cojob = cojob,
                                 .rungs = &rung,
                                 .n_rungs = 1,
                                 .jobs = job_names,
                                 .n = jobs };
}

/* Returns a step in which 'n' hosts have no common one. */
static int
random_step(const struct world *w, int n)
{
    return 1 + random_range(MAX(1, w->n / MAX(n, 1)));
}

/* Announces searches 'from' to 'to'. */
static void
announce(struct world *w, int from, int to)
{
    struct intent_edit cojobs[BATCH] = { 0 }, stages[BATCH] = { 0 };
    struct intent_edit jobs[BATCH * SEARCH_JOBS] = { 0 };
    int n = to - from, on = MIN(SEARCH_HOSTS, w->n);

    for (int i = 0; i < n; i++) {
        char *name = xasprintf("s%d", from + i);

        cojobs[i] = (struct intent_edit){ .kind = INTENT_COJOB_BEGIN,
                                          .cojob = name,
                                          .weight = 1 };
        for (int j = 0; j < SEARCH_JOBS; j++) {
            jobs[i * SEARCH_JOBS + j] = make_job(
                w, name, j, random_range(w->n), random_step(w, on), on, true);
        }
        stages[i] = make_stage(name, SEARCH_JOBS);
    }
    write_edits(w, cojobs, n);
    write_edits(w, jobs, n * SEARCH_JOBS);
    write_edits(w, stages, n);
    for (int i = 0; i < n * SEARCH_JOBS; i++) {
        free(CONST_CAST(struct intent_worker *, jobs[i].workers));
    }
    for (int i = 0; i < n; i++) {
        free(CONST_CAST(char *, cojobs[i].cojob));
    }
}

static bool
all_have(const struct world *w)
{
    for (int i = 0; i < w->n_awaited; i++) {
        if (!agent_has(&w->agents[host_of(w, w->first, w->step, i)], w->cojob,
                       job_names[i / (w->on / w->jobs)])) {
            return false;
        }
    }
    return true;
}

/* Returns the milliseconds of a round. */
static long long
run_round(struct world *w, int round)
{
    int each = w->on / w->jobs;
    struct intent_edit edits[SEARCH_JOBS];
    long long began;

    snprintf(w->cojob, sizeof w->cojob, "r%d", round);
    w->step = random_step(w, w->on);
    w->first = random_range(w->n);
    write_edits(w,
                &(struct intent_edit){ .kind = INTENT_COJOB_BEGIN,
                                       .cojob = w->cojob,
                                       .weight = 1 },
                1);
    for (int j = 0; j < w->jobs; j++) {
        edits[j] =
            make_job(w, w->cojob, j, host_of(w, w->first, w->step, j * each),
                     w->step, each, false);
    }
    write_edits(w, edits, w->jobs);
    for (int j = 0; j < w->jobs; j++) {
        free(CONST_CAST(struct intent_worker *, edits[j].workers));
    }
    run_for(w, PAUSE_MS + random_range(PAUSE_MS));
    w->n_awaited = w->on;
    began = time_msec();
    edits[0] = make_stage(w->cojob, w->jobs);
    write_edits(w, edits, 1);
    while (!all_have(w)) {
        if (time_msec() > began + STEP_MS) {
            ovs_fatal(0, "%s: not all hosts have its order after %d ms",
                      w->cojob, STEP_MS);
        }
        turn(w);
    }
    began = time_msec() - began;
    w->n_awaited = 0;
    edits[0] =
        (struct intent_edit){ .kind = INTENT_COJOB_END, .cojob = w->cojob };
    write_edits(w, edits, 1);
    run_for(w, PAUSE_MS);
    return began;
}

/* Stores the processor seconds of each process so far, returns their sum. */
static double
read_cpu(const struct world *w, double cpu[MAX_PIDS])
{
    double sum = 0;

    for (int i = 0; i < w->n_pids; i++) {
        struct timespec time;
        clockid_t clock;

        if (clock_getcpuclockid(w->pids[i], &clock)
            || clock_gettime(clock, &time)) {
            ovs_fatal(0, "process %d is not there", w->pids[i]);
        }
        cpu[i] = time.tv_sec + time.tv_nsec / 1e9;
        sum += cpu[i];
    }
    return sum;
}

/* Measures with the report of the first host with SEARCH_JOBS jobs. */
static void
print_parse(struct world *w)
{
    struct timespec began, ended;
    char *text;
    int i = 0;

    while (i < w->n - 1 && w->agents[i].jobs.n != SEARCH_JOBS) {
        i++;
    }
    text = agent_report(&w->agents[i]);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    for (i = 0; i < N_PARSED; i++) {
        json_destroy(json_from_string(text));
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    printf(", \"report_bytes\": %zu, \"parse_us\": %.2f", strlen(text),
           ((ended.tv_sec - began.tv_sec) * 1e6
            + (ended.tv_nsec - began.tv_nsec) / 1e3)
               / N_PARSED);
    free(text);
}

/* Returns the processor seconds in each second of 'idle_s'. */
static double
measure_idle(struct world *w)
{
    double before[MAX_PIDS], after[MAX_PIDS], sum, seconds;
    long long began = time_msec();

    sum = -read_cpu(w, before);
    run_for(w, w->idle_s * 1000LL);
    sum += read_cpu(w, after);
    seconds = MAX(1, time_msec() - began) / 1000.0;
    printf(", \"idle_cpu\": [");
    for (int i = 0; i < w->n_pids; i++) {
        printf("%s%.4f", i ? ", " : "", (after[i] - before[i]) / seconds);
    }
    printf("]");
    return sum / seconds;
}

static void
measure_events(struct world *w, double idle)
{
    long long began = time_msec(), messages = 0, concerned = 0;
    double each[MAX_PIDS], cpu = read_cpu(w, each);

    for (int i = 0; i < w->n; i++) {
        w->agents[i].messages = w->agents[i].concerned = 0;
    }
    printf(", \"event_ms\": [");
    for (int i = 0; i < w->events; i++) {
        printf("%s%lld", i ? ", " : "", run_round(w, i));
    }
    cpu = read_cpu(w, each) - cpu - idle * (time_msec() - began) / 1000;
    for (int i = 0; i < w->n; i++) {
        messages += w->agents[i].messages;
        concerned += w->agents[i].concerned;
    }
    printf("], \"event_cpu\": %.4f, \"messages\": %lld, \"concerned\": %lld",
           cpu / w->events, messages, concerned);
}

static void
measure_kill(struct world *w)
{
    int n = 0;

    for (int i = 0; i < w->n; i++) {
        w->agents[i].was_fair = false;
    }
    kill(w->kill, SIGKILL);
    run_for(w, w->idle_s * 1000LL);
    for (int i = 0; i < w->n; i++) {
        n += w->agents[i].was_fair;
    }
    printf(", \"lost\": %d", n);
}

static void
connect_all(struct world *w)
{
    long long began = time_msec();

    while (count_connected(w) < w->n) {
        if (time_msec() > began + CONNECT_MS) {
            ovs_fatal(0, "%d of %d agents are connected after %d ms",
                      count_connected(w), w->n, CONNECT_MS);
        }
        turn(w);
    }
    printf("{\"connect_ms\": %lld", time_msec() - began);
}

int
main(int argc, char *argv[])
{
    struct world w;
    long long began;
    double idle;

    set_program_name(argv[0]);
    signal(SIGPIPE, SIG_IGN);
    if (argc < 14 || argc > 13 + MAX_PIDS) {
        fputs("usage: control-scale INTENT HOSTS TELEMETRY AGENTS SEARCHES "
              "CHANGES IDLE_S EVENTS JOBS ON KILL TLS PID...\n",
              stderr);
        return 2;
    }
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    w = (struct world){ .hosts = argv[2],
                        .telemetry = argv[3],
                        .n = atoi(argv[4]),
                        .searches = atoi(argv[5]),
                        .changes = atoi(argv[6]),
                        .idle_s = atoi(argv[7]),
                        .events = atoi(argv[8]),
                        .jobs = atoi(argv[9]),
                        .on = atoi(argv[10]),
                        .kill = atoi(argv[11]),
                        .tls = *argv[12] ? argv[12] : NULL,
                        .n_pids = argc - 13 };
    for (int i = 0; i < w.n_pids; i++) {
        w.pids[i] = atoi(argv[13 + i]);
    }
    if (w.tls) {
        char *ca = xasprintf("%s/agents/h0/ca.pem", w.tls);

        stream_ssl_set_ca_cert_file(ca, false);
        free(ca);
    }
    random_set_seed(1);
    w.agents = xcalloc(w.n, sizeof *w.agents);
    w.idl = ovsdb_idl_create(argv[1], &intentrec_idl_class, false, true);
    w.rows = intent_edit_follow(w.idl);
    connect_all(&w);
    began = time_msec();
    for (int i = 0; i < w.searches; i += BATCH) {
        announce(&w, i, MIN(i + BATCH, w.searches));
    }
    printf(", \"announce_ms\": %lld", time_msec() - began);
    print_parse(&w);
    run_for(&w, w.idle_s * 250);
    idle = measure_idle(&w);
    fflush(stdout);
    if (w.events) {
        measure_events(&w, idle);
    }
    if (w.kill) {
        measure_kill(&w);
    }
    puts("}");
    return 0;
}
