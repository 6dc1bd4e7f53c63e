/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/faults.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/console.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "lab/measure/switch-log.h"
#include "openvswitch/poll-loop.h"
#include "reporting/report.h"
#include "timeval.h"
#include "util.h"

#define POLL_MS 100             /* Interval of reading the state of the
                                 * controllers. */
#define PAUSE_MS 4000           /* Delay before the first fault and between
                                 * faults. */
#define TOOL_MS 5000
#define SETTLE_MS 15000         /* Time in which the last announcements must
                                 * reach the database. */

enum kind {
    FAULT_CONTROLLER = 1,
    FAULT_LEADERS = 2,
    FAULT_ALL = FAULT_CONTROLLER | FAULT_LEADERS,
    FAULT_STOP = 4,             /* Stop the controller with SIGSTOP until
                                 * another one is active, and then continue
                                 * it. */
};

static const struct {
    enum kind kind;
    const char *what;
} faults_in_turn[] = {
    { FAULT_CONTROLLER, "the active controller" },
    { FAULT_LEADERS, "the databases' leaders" },
    { FAULT_ALL, "the active controller and the databases' leaders" },
    { FAULT_STOP | FAULT_LEADERS,
      "the databases' leaders and stopped the active controller" },
};

/* Effects of the faults. */
struct effects {
    unsigned int faults;         /* Number of faults. */
    unsigned int back;           /* Faults after which hosts got an order
                                  * again. */
    double order_back_s;         /* Longest time until then, seconds. */
    unsigned int switch_changes; /* Changes received by the switch. */
    unsigned int switch_refused; /* Role requests and changes that it
                                  * refused. */
    unsigned int double_masters; /* Changes that it accepted from a
                                  * connection that was not primary. */
    unsigned int same_leads;     /* Samples in which two controllers had the
                                  * same generation. */
    double overlap_s;            /* Longest time with two active controllers,
                                  * seconds. */
    unsigned int flows_flushed;  /* Flows that the switch lost. */
    unsigned int stages_lost;    /* Ended stages that are missing in the
                                  * database. */
};

struct faults {
    const struct plan *plan;
    const struct cluster *cluster;
    long long next_poll;
    long long next_fault;       /* time_msec() of the next fault. */
    long long began;            /* time_msec() of the current fault, 0 without
                                 * a fault. */
    int stopped;                /* Index of the stopped controller, or -1. */
    long long overlap;          /* time_msec() since when two controllers are
                                 * active, 0 if at most one is. */
    double generation;          /* Generation that the next active controller
                                 * must exceed. */
    long long first;            /* time_msec() of the first fault. */
    int n_flows;                /* Number of flows in the switch at the first
                                 * fault. */
    unsigned int n_test_flows;     /* Number of put_test_flow() calls that
                                 * succeeded. */
    struct effects ha;
};

struct faults *
faults_create(const struct plan *plan, const struct cluster *cluster)
{
    struct faults *f = xzalloc(sizeof *f);

    f->plan = plan;
    f->cluster = cluster;
    f->stopped = -1;
    f->next_fault = time_msec() + PAUSE_MS;
    if (plan_uses_ovs(plan)) {
        char *ctl = xasprintf("%s/ovs/vswitchd.ctl", plan->rundir);
        char *error = switch_log_begin(ctl);

        if (error) {
            say("%s", error);
        }
        free(error);
        free(ctl);
    }
    return f;
}

static bool
has_string(const cJSON *json, const char *member, const char *value)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(json, member));

    return s && !strcmp(s, value);
}

static bool
is_true(const cJSON *json, const char *member)
{
    return cJSON_IsTrue(cJSON_GetObjectItem(json, member));
}

static double
generation_of(const cJSON *status)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(status, "generation"));
}

/* Returns true if 'status' is of an active controller that is connected to
 * both databases and all agents and has a new generation. */
static bool
leads(const struct faults *f, const cJSON *status)
{
    return has_string(status, "state", "active")
           && is_true(status, "intent_connected")
           && is_true(status, "hosts_connected")
           && cJSON_GetNumberValue(cJSON_GetObjectItem(status, "agents"))
                  >= plan_n_agents(f->plan)
           && generation_of(status) > f->generation;
}

static cJSON *
ask_status(const struct faults *f, int controller)
{
    return cluster_ask_one(f->plan, controller, "controller/status", NULL);
}

/* Returns true if every host has applied the order of controller 'i'. */
static bool
hosts_follow(const struct faults *f, int i)
{
    cJSON *reply = cluster_ask_one(f->plan, i, "controller/hosts", NULL);
    const cJSON *host;
    int n = 0;

    cJSON_ArrayForEach (host, cJSON_GetObjectItem(reply, "hosts")) {
        n += (is_true(host, "connected")
              && has_string(host, "state", "ordered"));
    }
    cJSON_Delete(reply);
    return n >= plan_n_agents(f->plan);
}

/* Records the 'generations' of the active controllers.  Two may be active for
 * a moment, until one learns that it no longer leads, but never with the same
 * generation. */
static void
record_active(struct faults *f, const double generations[], size_t n)
{
    if (n == 2) {
        f->overlap = f->overlap ? f->overlap : time_msec();
        f->ha.same_leads += !(generations[0] < generations[1]
                              || generations[0] > generations[1]);
    }
    if (f->overlap) {
        f->ha.overlap_s = MAX(f->ha.overlap_s,
                              (time_msec() - f->overlap) / 1000.0);
    }
    if (n < 2) {
        f->overlap = 0;
    }
}

/* Reads the state of the controllers.  Returns the active one if all hosts
 * follow it, otherwise -1. */
static int
read_controllers(struct faults *f)
{
    double active[2];           /* Generations of the active controllers. */
    size_t n_active = 0;
    int leader = -1;

    for (int i = 0; i < plan_n_controllers(f->plan); i++) {
        cJSON *status = i == f->stopped ? NULL : ask_status(f, i);

        if (leads(f, status) && hosts_follow(f, i)) {
            leader = i;
        }
        if (n_active < ARRAY_SIZE(active)
            && has_string(status, "state", "active")) {
            active[n_active++] = generation_of(status);
        }
        cJSON_Delete(status);
    }
    record_active(f, active, n_active);
    return leader;
}

/* Returns the number of the switch's flows that select a queue.  If 'youngp'
 * is nonnull, stores the number of those that are younger than 'ms'. */
static int
count_flows(const struct faults *f, long long ms, int *youngp)
{
    const char *const argv[] = { "ovs-ofctl", "-O", "OpenFlow13",
                                 "dump-flows", f->plan->bridge, NULL };
    char *save = NULL;
    char *text = NULL;
    int n = 0, young = 0;

    free(tool_run(NULL, argv, NULL, TOOL_MS, &text));
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        const char *duration = strstr(line, "duration=");

        if (duration && strstr(line, "set_queue")) {
            n++;
            young += strtod(duration + 9, NULL) * 1000 < ms;
        }
    }
    free(text);
    if (youngp) {
        *youngp = young;
    }
    return n;
}

static void
signal_daemon(const struct faults *f, char *name, int signr)
{
    pid_t pid = cluster_pid(f->cluster, name);

    if (pid) {
        kill(pid, signr);
    }
    free(name);
}

/* Adds a flow with the controller's cookie that matches no traffic (source
 * 192.0.2.1), so that the primary controller has something to remove. */
static void
put_test_flow(struct faults *f)
{
    const char *const argv[] = {
        "ovs-ofctl", "-O", "OpenFlow13", "add-flow", f->plan->bridge,
        "cookie=0x7374616765000001,priority=1,ip,nw_src=192.0.2.1,"
        "actions=drop", NULL
    };

    if (plan_uses_ovs(f->plan)) {
        char *error = tool_run(NULL, argv, NULL, TOOL_MS, NULL);

        f->n_test_flows += !error;
        free(error);
    }
}

/* Continues a stopped controller, which still assumes that it is active. */
static void
resume(struct faults *f)
{
    if (f->stopped >= 0) {
        put_test_flow(f);
        signal_daemon(f, plan_controller_daemon(f->stopped), SIGCONT);
        f->stopped = -1;
    }
}

/* Returns the leader of 'db', or -1 if no member is leader. */
static int
find_leader(const struct plan *plan, const struct database *db)
{
    int leader = -1;

    for (int i = 0; leader < 0 && i < plan_n_members(plan); i++) {
        char *rundir = plan_member_rundir(plan, i);
        struct database_cluster dc;
        char *error = database_cluster_get(db, rundir, &dc);

        if (!error && !strcmp(dc.role, "leader")) {
            leader = i;
        }
        database_cluster_uninit(&dc);
        free(error);
        free(rundir);
    }
    return leader;
}

static void
begin_fault(struct faults *f, int controller)
{
    static const struct database *const dbs[] = { &database_intent,
                                                  &database_hosts };
    size_t which = f->ha.faults % ARRAY_SIZE(faults_in_turn);
    enum kind kind = faults_in_turn[which].kind;
    cJSON *status = ask_status(f, controller);

    f->generation = (kind & (FAULT_CONTROLLER | FAULT_STOP)
                     ? generation_of(status) : 0);
    cJSON_Delete(status);
    if (!f->ha.faults) {
        f->first = time_msec();
        f->n_flows = count_flows(f, 0, NULL);
    }
    put_test_flow(f);
    if (kind & FAULT_STOP) {
        signal_daemon(f, plan_controller_daemon(controller), SIGSTOP);
        f->stopped = controller;
    }
    for (size_t i = 0; kind & FAULT_LEADERS && i < ARRAY_SIZE(dbs); i++) {
        int leader = find_leader(f->plan, dbs[i]);

        if (leader >= 0) {
            signal_daemon(f, plan_member_daemon(dbs[i], leader), SIGKILL);
        }
    }
    if (kind & FAULT_CONTROLLER) {
        signal_daemon(f, plan_controller_daemon(controller), SIGKILL);
    }
    f->began = time_msec();
    f->ha.faults++;
    say("killed %s", faults_in_turn[which].what);
}

static void
end_fault(struct faults *f, int controller)
{
    double seconds = (time_msec() - f->began) / 1000.0;

    f->ha.order_back_s = MAX(f->ha.order_back_s, seconds);
    f->ha.back++;
    resume(f);
    f->began = 0;
    f->generation = 0;
    f->next_fault = time_msec() + PAUSE_MS;
    say("hosts have an order again after %.1f s, by controller %d", seconds,
        controller);
}

void
faults_run(struct faults *f)
{
    int leader;

    if (time_msec() < f->next_poll) {
        return;
    }
    leader = read_controllers(f);
    if (f->began && leader >= 0) {
        end_fault(f, leader);
    } else if (!f->began && leader >= 0 && time_msec() >= f->next_fault) {
        begin_fault(f, leader);
    }
    f->next_poll = time_msec() + POLL_MS;
}

void
faults_wait(const struct faults *f)
{
    poll_timer_wait_until(f->next_poll);
}

/* Returns the number of ended stages in the database. */
static size_t
count_ended(const struct faults *f)
{
    int leader = find_leader(f->plan, &database_intent);
    char *rundir = plan_member_rundir(f->plan, MAX(leader, 0));
    char *remote = database_remote(&database_intent, rundir);
    const char *const argv[] = { "ovsdb-client", "--format=csv",
                                 "--no-headings", "dump", remote,
                                 database_intent.schema, "Stage", "state",
                                 "_uuid", NULL };
    char *text = NULL;
    size_t n = 0;

    /* With the id, equal rows are not merged. */
    free(tool_run(NULL, argv, NULL, TOOL_MS, &text));
    for (const char *p = text; p && (p = strstr(p, "done")); p++) {
        n++;
    }
    free(text);
    free(remote);
    free(rundir);
    return n;
}

/* Waits until the database has the end of all stages, and counts those that
 * are missing. */
static void
count_lost(struct faults *f, size_t n_stages)
{
    long long deadline = time_msec() + SETTLE_MS;
    size_t n = 0;

    while ((n = count_ended(f)) < n_stages && time_msec() < deadline
           && !interrupt_signal()) {
        interrupt_sleep(POLL_MS);
    }
    f->ha.stages_lost = n_stages > n ? n_stages - n : 0;
}

/* Reads from the log of the switch which controllers changed it. */
static void
read_switch(struct faults *f)
{
    char *file = plan_log(f->plan, "ovs-vswitchd");
    struct switch_log_counts counts;
    char *error = switch_log_read(file, &counts);

    if (error) {
        say("%s", error);
        free(error);
    } else {
        f->ha.switch_changes = counts.changes - MIN(counts.changes,
                                                    f->n_test_flows);
        f->ha.switch_refused = counts.refused;
        f->ha.double_masters = (counts.backwards + counts.foreign
                                - MIN(counts.foreign, f->n_test_flows));
    }
    free(file);
}

static void
put_effects(const struct effects *ha, struct report_policy *policy)
{
    cJSON *json;

    if (!ha->faults) {
        return;
    }
    policy->details = cJSON_CreateObject();
    json = cJSON_AddObjectToObject(policy->details, "ha");
    cJSON_AddNumberToObject(json, "faults", ha->faults);
    cJSON_AddNumberToObject(json, "back", ha->back);
    cJSON_AddNumberToObject(json, "order_back_s", ha->order_back_s);
    cJSON_AddNumberToObject(json, "double_masters", ha->double_masters);
    cJSON_AddNumberToObject(json, "same_leads", ha->same_leads);
    cJSON_AddNumberToObject(json, "overlap_s", ha->overlap_s);
    cJSON_AddNumberToObject(json, "switch_changes", ha->switch_changes);
    cJSON_AddNumberToObject(json, "switch_refused", ha->switch_refused);
    cJSON_AddNumberToObject(json, "flows_flushed", ha->flows_flushed);
    cJSON_AddNumberToObject(json, "stages_lost", ha->stages_lost);
    policy->remark = xasprintf(
        "%u faults, order restored after %u of them, within %.1f s; %u "
        "changes by a second master, two masters for at most %.1f s, %u flows "
        "flushed, %u stages lost",
        ha->faults, ha->back, ha->order_back_s, ha->double_masters,
        ha->overlap_s, ha->flows_flushed, ha->stages_lost);
}

void
faults_finish(struct faults *f, struct report_policy *policy)
{
    resume(f);
    if (plan_uses_ovs(f->plan)) {
        read_switch(f);
    }
    if (f->ha.faults && plan_uses_ovs(f->plan)) {
        int young;
        int n = count_flows(f, time_msec() - f->first, &young);

        f->ha.flows_flushed = young + MAX(f->n_flows - n, 0);
    }
    count_lost(f, policy->n_stages);
    put_effects(&f->ha, policy);
}
