/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach lab: runs a cluster on this machine. "up" leaves a process in the
 * background that holds the lock of the lab and keeps the cluster running;
 * "down" and "exec" find it by that lock. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json-check.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/lab/lab.h"
#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/console.h"
#include "lab/cluster/fabric.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "policies/policy.h"
#include "scenario/random-placements.h"
#include "scenario/scenario.h"
#include "util.h"

static char *
add_policy(const char *text, void *policies)
{
    svec_add(policies, text);
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct lab_options, MEMBER)

static const struct option_row rows[] = {
    { "policy", OPTION_CUSTOM, AT(policies), .value = "P", .repeated = true,
      .parse = add_policy,
      .help = "name or file of a policy that replaces those of the "
              "scenario" },
    { "out", OPTION_TEXT, AT(out), .value = "DIR", .deflt = "report",
      .help = "run: folder of report.json and report.html, and of the "
              "results of --placements" },
    { "seed", OPTION_INTEGER, AT(seed), 0, RANDOM_PLACEMENTS_MAX_SEED, "S",
      .shown = "that of the scenario",
      .help = "seed of the scenario's random searches or placements" },
    { "placements", OPTION_INTEGER, AT(n_placements), 1, LAB_MAX_PLACEMENTS,
      "N", .shown = "one run, without an interval",
      .help = "run: repeat with N seeds, from that of the scenario on; print "
              "means with 95 % intervals" },
    { "congestion", OPTION_TEXT, AT(congestion), .value = "NAME",
      .shown = "that of the kernel",
      .help = "TCP congestion control of the hosts, such as cubic" },
    { "actuator", OPTION_CHOICE, AT(actuator), .value = "shim|bpf|observe",
      .shown = "that of the scenario",
      .help = "what orders the traffic of a host: a shim, the kernel, or "
              "nothing, while its agent counts" },
    { "keep", OPTION_FLAG, AT(keep),
      .help = "run: keep all logs in DIR/logs" },
    { "ha", OPTION_FLAG, AT(ha),
      .help = "start three members of each database and two controllers; run: "
              "kill the leaders in turn" },
    { "blind", OPTION_FLAG, AT(blind),
      .help = "hide the capacity of the links between leaves and spines from "
              "the controller, for comparison" },
    FORMAT_ROW(struct lab_options, json),
    { "name", OPTION_TEXT, AT(name), .value = "NAME", .deflt = "lab",
      .help = "name of the lab, 1 to 8 letters and digits; labs with "
              "different names can run at once" },
    { "rundir", OPTION_TEXT, AT(rundir), .value = "DIR",
      .shown = "/run/stagecoach", .help = "parent of the run directory" },
    { "bin", OPTION_TEXT, AT(bin_dir), .value = "DIR",
      .help = "folder that is searched for programs first" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach lab",
    .rows = rows,
    .max_operands = -1,
    .usage =
        "usage: stagecoach lab run SCENARIO.json [OPTION...]\n"
        "       stagecoach lab up [SCENARIO.json] [OPTION...]\n"
        "       stagecoach lab down [OPTION...]\n"
        "       stagecoach lab exec HOST [OPTION...] -- COMMAND [ARG...]\n"
        "\n"
        "Runs a cluster of network namespaces on this machine: hosts with an "
        "agent\n"
        "each and usually a shim, switches with shaped ports, databases, a "
        "controller.\n"
        "\"run\" runs the scenario's searches under each policy and compares "
        "the\n"
        "policies; \"up\" starts a cluster that runs until \"down\"; "
        "\"exec\"\n"
        "runs a command on one of its hosts.  All need root.\n",
    .footer = "Exit status: 0 done, 1 invalid or failed, 2 usage, "
              "128 + N ended by signal N.\n"
};

/* Reads the policy 'name'.  'where' begins the message about a wrong name. */
static char *
choose_policy(const char *where, const char *name, struct lab_policy *chosen)
{
    char *error = policy_find(name, &chosen->file);
    struct policy *policy;

    if (error) {
        char *message = xasprintf("%s: %s", where, error);

        free(error);
        return message;
    }
    error = policy_from_file(chosen->file, &policy);
    if (error) {
        return error;
    }
    chosen->name = xstrdup(policy->name);
    chosen->plain = policy->order.kind == ORDER_PLAIN;
    chosen->orders = !order_is_equal(policy->order.kind);
    if (chosen->plain) {
        /* The controller has no host, so its policy has no effect. */
        free(chosen->file);
        error = policy_find("fair", &chosen->file);
    } else {
        error = policy_check_served(chosen->file, policy);
    }
    policy_destroy(policy);
    return error;
}

static char *
choose_policies(const struct lab_options *o, const char *file,
                struct lab_setting *setting)
{
    const struct scenario *s = setting->scenario;
    size_t n = o->policies.n ? o->policies.n : s->n_policies;
    char *error = NULL;

    setting->policies = xcalloc(n, sizeof *setting->policies);
    setting->n_policies = n;
    for (size_t i = 0; !error && i < n; i++) {
        char *where = o->policies.n ? xstrdup("--policy")
                      : xasprintf("%s: /policies/%"PRIuSIZE, file, i);

        error = choose_policy(where, o->policies.n ? o->policies.names[i]
                              : s->policies[i], &setting->policies[i]);
        free(where);
    }
    return error;
}

static char *
need_root(void)
{
    /* PATH may lack these folders after su. */
    char *path = xasprintf("%s:/usr/sbin:/sbin",
                           getenv("PATH") ? getenv("PATH") : "/usr/bin");

    setenv("PATH", path, 1);
    free(path);
    return geteuid() ? xstrdup("stagecoach lab: root is required to create "
                               "network namespaces") : NULL;
}

static char *
lab_plan_create(const struct lab_options *o, struct plan **planp)
{
    char *rundir = o->rundir ? xasprintf("%s/lab-%s", o->rundir, o->name)
                             : NULL;
    char *error = plan_create(o->name, rundir, o->bin_dir, planp);

    free(rundir);
    return error ? error : need_root();
}

/* Returns NULL if the kernel has what --congestion names. */
static char *
check_congestion(const char *name)
{
    char *all, *found, *copy, *save = NULL;
    char *error = json_read_file("/proc/sys/net/ipv4/"
                                 "tcp_available_congestion_control",
                                 &all);

    if (error) {
        return error;
    }
    all[strcspn(all, "\n")] = '\0';
    copy = xstrdup(all);
    found = strtok_r(copy, " ", &save);
    while (found && strcmp(found, name)) {
        found = strtok_r(NULL, " ", &save);
    }
    error = found ? NULL
                  : xasprintf("--congestion: this kernel has no \"%s\"; "
                              "expected one of %s",
                              name, all);
    free(copy);
    free(all);
    return error;
}

/* Replaces the actuator of the scenario, which is in 'file'. */
static char *
set_actuator(struct scenario *s, enum host_actuator actuator, const char *file)
{
    for (int i = 0; i < s->n_hosts; i++) {
        s->actuators[i] = actuator;
    }
    if (actuator != ACTUATOR_SHIM && s->cc == SCENARIO_CC_ON) {
        return xasprintf("--actuator: %s has no shims, which \"cc\": true of "
                         "%s needs; expected shim",
                         actuator == ACTUATOR_BPF ? "bpf" : "observe", file);
    }
    return NULL;
}

char *
lab_setting_init(struct lab_setting *setting, const struct lab_options *o,
                 const char *file)
{
    char *error;

    *setting = (struct lab_setting) { .scenario = NULL };
    error = scenario_from_file(file, o->seed != LAB_NO_SEED ? &o->seed : NULL,
                               &setting->scenario);
    if (!error && o->blind && setting->scenario->fabric != FABRIC_LEAF_SPINE) {
        error =
            xasprintf("--blind: %s has no links between switches; expected a "
                      "fabric with \"leaf_spine\"",
                      file);
    }
    if (!error && o->congestion) {
        error = check_congestion(o->congestion);
    }
    if (!error && o->actuator != LAB_NO_ACTUATOR) {
        error = set_actuator(setting->scenario, o->actuator, file);
    }
    error = error ? error : choose_policies(o, file, setting);
    error = error ? error : lab_plan_create(o, &setting->plan);
    if (!error) {
        plan_set_scenario(setting->plan, setting->scenario);
        setting->plan->ha = o->ha;
        setting->plan->blind = o->blind;
        setting->plan->congestion = o->congestion;
    }
    return error;
}

void
lab_setting_uninit(struct lab_setting *setting)
{
    for (size_t i = 0; i < setting->n_policies; i++) {
        free(setting->policies[i].name);
        free(setting->policies[i].file);
    }
    free(setting->policies);
    plan_destroy(setting->plan);
    scenario_destroy(setting->scenario);
}

void
lab_setting_choose(const struct lab_setting *setting,
                   const struct lab_policy *policy)
{
    const struct scenario *s = setting->scenario;

    setting->plan->plain = policy->plain;
    setting->plan->cc = (s->cc == SCENARIO_CC_ON
                         || (s->cc == SCENARIO_CC_ORDERED && policy->orders
                             && scenario_n_actuators(s, ACTUATOR_SHIM)));
}

int
lab_fail(char *error)
{
    say_status_end();
    command_fail(NULL, error);
    return interrupt_signal() ? 128 + interrupt_signal() : EXIT_NO;
}

/* Timeout of "lab down" and "lab up". */
#define UP_DOWN_MS 60000

/* The background process of "lab up": writes a zero byte to 'ready_fd' when
 * the cluster is up, or a message on failure, and then keeps the cluster
 * running. */
static void OVS_NO_RETURN
keep_up(const struct plan *plan, const char *policy_file, int ready_fd)
{
    struct cluster *cluster;
    char *error;

    setsid();
    interrupt_init();
    error = cluster_lock(plan, &cluster);
    if (!error) {
        error = cluster_up(cluster, policy_file);
    }
    if (!error && write(ready_fd, "", 1) != 1) {
        error = xstrdup("lab: the command was interrupted");
    }
    if (!error) {
        char *log = plan_log(plan, "lab");
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        dup2(null, STDIN_FILENO);
        dup2(fd < 0 ? null : fd, STDOUT_FILENO);
        dup2(fd < 0 ? null : fd, STDERR_FILENO);
        free(log);
    } else {
        ignore(write(ready_fd, error, strlen(error)));
    }
    close(ready_fd);
    while (!error && !interrupt_signal()) {
        error = cluster_run(cluster);
        cluster_wait(cluster);
        interrupt_wait();
        poll_block();
    }
    if (cluster) {
        free(cluster_down(cluster));
        cluster_unlock(cluster);
    }
    free(error);
    exit(EXIT_OK);
}

static int
lab_up_wait(int fd)
{
    char text[4096];
    size_t used = 0;
    ssize_t n;

    while (used < sizeof text - 1
           && (n = read(fd, text + used, sizeof text - 1 - used)) > 0) {
        used += n;
        if (!text[0]) {
            return EXIT_OK;
        }
    }
    text[used] = '\0';
    fprintf(stderr, "%s\n", used ? text : "lab: terminated during startup");
    return EXIT_NO;
}

static int
lab_up(const struct lab_options *o)
{
    char *file = o->args[0] ? xstrdup(o->args[0])
                            : data_file_find("lab/scenarios/smoke.json");
    struct lab_setting setting = { .scenario = NULL };
    int fds[2];
    int status;
    char *error = file ? lab_setting_init(&setting, o, file)
                       : xstrdup("smoke.json: not installed");

    if (!error && pipe2(fds, O_CLOEXEC)) {
        error = xstrdup(ovs_strerror(errno));
    }
    if (error) {
        status = lab_fail(error);
    } else {
        const struct lab_policy *policy
            = &setting.policies[setting.n_policies - 1];
        pid_t pid;

        lab_setting_choose(&setting, policy);
        pid = fork();
        if (!pid) {
            close(fds[0]);
            keep_up(setting.plan, policy->file, fds[1]);
        }
        close(fds[1]);
        status = pid < 0 ? EXIT_NO : lab_up_wait(fds[0]);
        close(fds[0]);
        if (status == EXIT_OK) {
            printf("%d hosts are up, h0 is 10.77.0.1; policy %s; sockets and "
                   "logs are in %s\n", setting.scenario->n_hosts, policy->name,
                   setting.plan->rundir);
        }
    }
    lab_setting_uninit(&setting);
    free(file);
    return status;
}

/* Stops a running lab, or removes the leftovers of a killed one. */
static int
lab_down(const struct lab_options *o)
{
    struct cluster *cluster;
    struct plan *plan;
    char *error = lab_plan_create(o, &plan);
    pid_t pid;

    if (error) {
        plan_destroy(plan);
        return lab_fail(error);
    }
    interrupt_init();
    pid = cluster_holder(plan, NULL);
    if (pid) {
        kill(pid, SIGTERM);
        for (int ms = 0; ms < UP_DOWN_MS && !interrupt_signal()
                         && cluster_holder(plan, NULL); ms += 50) {
            interrupt_sleep(50);
        }
    }
    error = cluster_lock(plan, &cluster);
    if (!error) {
        cluster_unlock(cluster);
    }
    plan_destroy(plan);
    return error ? lab_fail(error) : EXIT_OK;
}

/* Executes the command on 'host'.  Returns only with a message. */
static char *
exec_on_host(const struct plan *plan, const char *rundir, int host,
             char *argv[])
{
    const struct plan_host *h = &plan->hosts[host];
    char *dir = xasprintf("%s/hosts/h%d", rundir, host);
    int error;

    setenv("STAGECOACH_RUNDIR", dir, 1);
    setenv("STAGECOACH_CGROUP", h->cgroup, 1);
    error = cgroup_tree_join(h->cgroup);
    error = error ? error : netns_enter(h->ns);
    if (!error) {
        execvp(argv[0], argv);
        error = errno;
    }
    return xasprintf("%s: %s", argv[0], ovs_strerror(error));
}

static int
lab_exec(const struct lab_options *o)
{
    struct plan *plan = NULL;
    char *rundir = NULL;
    char *error;
    int host = -1, end = 0;

    if (!o->args[0] || !o->args[1]) {
        fputs("stagecoach lab exec: HOST -- COMMAND is needed\n", stderr);
        return EXIT_USAGE;
    }
    error = lab_plan_create(o, &plan);
    if (!error && !cluster_holder(plan, &rundir)) {
        error = xasprintf("no lab \"%s\" is up", o->name);
    }
    if (!error) {
        char *dir = xasprintf("%s/hosts/%s", rundir, o->args[0]);

        if (sscanf(o->args[0], "h%d%n", &host, &end) != 1 || host < 0
            || host >= SCENARIO_MAX_HOSTS || o->args[0][end]
            || access(dir, X_OK)) {
            error = xasprintf("HOST: there is no \"%s\" in this lab",
                              o->args[0]);
        }
        free(dir);
    }
    error = error ? error : exec_on_host(plan, rundir, host, o->args + 1);
    fprintf(stderr, "stagecoach lab exec: %s\n", error);
    free(error);
    free(rundir);
    plan_destroy(plan);
    return EXIT_NO;
}

int
cmd_lab(int argc, char *argv[])
{
    static const struct {
        const char *name;
        int (*run)(const struct lab_options *);
    } commands[] = {
        { "run", lab_run },
        { "up", lab_up },
        { "down", lab_down },
        { "exec", lab_exec },
    };
    struct lab_options o = { .seed = LAB_NO_SEED,
                             .actuator = LAB_NO_ACTUATOR };
    int first, status;

    if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        option_table_help(&table, argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_OK;
    }
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    svec_init(&o.policies);
    status = option_table_command(&table, argc - 1, argv + 1, &o, &first);
    if (status < 0) {
        size_t i = 0;

        o.args = argv + 1 + first;
        status = EXIT_USAGE;
        while (i < ARRAY_SIZE(commands) && strcmp(commands[i].name, argv[1])) {
            i++;
        }
        if (i < ARRAY_SIZE(commands)) {
            status = commands[i].run(&o);
        } else {
            fprintf(stderr,
                    "stagecoach lab: \"%s\" is not one of \"run\", "
                    "\"up\", \"down\", \"exec\"\n",
                    argv[1]);
        }
    }
    svec_destroy(&o.policies);
    return status;
}
