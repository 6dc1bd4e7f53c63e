/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

/* stagecoach lab: its commands, and the one that compares policies. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/lab/lab-options.h"
#include "cli/lab/lab-up.h"
#include "reporting/report.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/interrupt.h"
#include "lab/cluster/plan.h"
#include "lab/run/policy-run.h"
#include "lab/cluster/say.h"
#include "scenario/scenario.h"
#include "openvswitch/vlog.h"
#include "util.h"

static const char usage_text[] =
    "usage: stagecoach lab run SCENARIO.json [OPTION...]\n"
    "       stagecoach lab up [SCENARIO.json] [OPTION...]\n"
    "       stagecoach lab down [OPTION...]\n"
    "       stagecoach lab exec HOST [OPTION...] -- COMMAND [ARG...]\n"
    "\n"
    "A cluster of network namespaces on this machine: hosts with a shim and\n"
    "an agent each, a switch with shaped ports, databases, a controller.\n"
    "\"run\" runs the scenario's searches under each policy and compares\n"
    "them; \"up\" leaves the cluster running until \"down\"; \"exec\" runs\n"
    "a command on one of its hosts.  All need root.\n"
    "\n"
    "  --policy P     a policy (name or file) and not the scenario's; run:\n"
    "                 may be repeated\n"
    "  --out DIR      where run writes report.json and report.html\n"
    "                 (default: report)\n"
    "  --keep         run: keep all logs in DIR/logs\n"
    "  --ha           three members of each database and two controllers;\n"
    "                 run: kill those that lead, in turn\n"
    "  --format F     run: \"table\" (default) or \"json\" on standard\n"
    "                 output\n"
    "  --name NAME    1 to 8 letters and digits, so that labs may run side\n"
    "                 by side (default: lab)\n"
    "  --rundir DIR   run directories are made in DIR (default:\n"
    "                 /run/stagecoach)\n"
    "  --bin DIR      look for the programs in DIR first\n"
    "\n"
    "Exit status: 0 done, 1 invalid or failed, 2 usage, 130 interrupted.\n";

static void
describe(struct report *r, const struct lab_setting *setting)
{
    const struct scenario *s = setting->scenario;
    char *text = xasprintf("%d hosts, %g Mbit/s, MTU %d, %s", s->n_hosts,
                           s->rate_bps / 1e6, s->mtu,
                           fabric_names[setting->plan->fabric]);

    report_set(&r->setting, text);
    report_set(&r->description, s->description);
    free(text);
}

/* Runs the scenario under each policy in turn.  Returns NULL or the message of
 * the last run that failed; an interrupt ends all. */
static char *
compare(struct cluster *cluster, const struct lab_setting *setting,
        const struct lab_options *o, struct report *r)
{
    char *error = NULL;

    for (size_t i = 0; i < setting->n_policies && !interrupt_signal(); i++) {
        const struct lab_policy *policy = &setting->policies[i];
        struct report_policy *p = report_add_policy(r, policy->name);
        char *log_dir = o->keep ? xasprintf("%s/logs/%s", o->out, p->name)
                                : NULL;
        char *run_error;

        run_error = policy_run(cluster, setting->plan, setting->scenario,
                               policy->file, log_dir, p);
        if (run_error) {
            say("%s: %s", p->name, run_error);
            free(error);
            error = run_error;
        }
        free(log_dir);
    }
    return error;
}

/* The table or the JSON, and the files. */
static char *
publish(struct report *r, const struct lab_options *o)
{
    char *error;

    report_finish(r);
    error = report_write(r, o->out);
    if (o->json) {
        report_put_json(r, stdout);
    } else {
        report_put_table(r, stdout);
        if (!error) {
            printf("report: %s/report.html, %s/report.json\n", o->out,
                   o->out);
        }
    }
    return error;
}

/* After everything was found valid. */
static int
run_valid(const struct lab_options *o, const struct lab_setting *setting)
{
    struct cluster *cluster;
    struct report *r;
    char *error, *run_error;
    int status;

    interrupt_init();
    error = cluster_lock(setting->plan, &cluster);
    if (error) {
        return lab_fail(error);
    }
    r = report_create(setting->scenario->name, "lab");
    describe(r, setting);
    run_error = compare(cluster, setting, o, r);
    cluster_unlock(cluster);
    if (!interrupt_signal()) {
        error = publish(r, o);
    }
    report_destroy(r);
    if (interrupt_signal()) {
        status = lab_fail(xstrdup("lab: interrupted, nothing is left behind"));
        free(error);
    } else if (error) {
        status = lab_fail(error);
    } else {
        status = run_error ? EXIT_NO : EXIT_OK;
    }
    free(run_error);
    return status;
}

static int
lab_run(const struct lab_options *o)
{
    struct lab_setting setting;
    char *error;
    int status;

    if (!o->args[0] || o->args[1]) {
        fputs("stagecoach lab run: one SCENARIO.json is needed\n", stderr);
        return EXIT_USAGE;
    }
    error = lab_setting_init(&setting, o, o->args[0]);
    status = error ? lab_fail(error) : run_valid(o, &setting);
    lab_setting_uninit(&setting);
    return status;
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
    struct lab_options o;
    int status = EXIT_USAGE;
    char *error;

    if (argc < 2) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(usage_text, stdout);
            return EXIT_OK;
        }
    }
    vlog_set_levels(NULL, VLF_ANY_DESTINATION, VLL_OFF);
    error = lab_options_parse(argc - 1, argv + 1, &o);
    if (error) {
        fprintf(stderr, "stagecoach lab: %s\n", error);
        free(error);
    } else {
        size_t i = 0;

        while (i < ARRAY_SIZE(commands)
               && strcmp(commands[i].name, argv[1])) {
            i++;
        }
        if (i < ARRAY_SIZE(commands)) {
            status = commands[i].run(&o);
        } else {
            fprintf(stderr, "stagecoach lab: \"%s\" is not one of \"run\", "
                    "\"up\", \"down\", \"exec\"\n", argv[1]);
        }
    }
    lab_options_uninit(&o);
    return status;
}
