/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach lab run: runs a scenario under each policy in turn and compares
 * them, once, or at several placements.
 *
 * An interrupt removes the cluster; the runs that have ended are compared.
 *
 * With --placements each run of a policy at a placement is written to a folder
 * of its own, DIR/placement-SEED/POLICY, when it ends.  The same command
 * continues an interrupted one: it reads these results and runs what is
 * missing.  A digest of the scenario, the seed and the policy in each result
 * prevents that results of different experiments are mixed. */

#include <config.h>

#include "cli/lab/lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/directory.h"
#include "base/interrupt.h"
#include "base/json-check.h"
#include "cli/command.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/console.h"
#include "lab/cluster/plan.h"
#include "lab/run/run.h"
#include "reporting/placements.h"
#include "reporting/report.h"
#include "scenario/scenario.h"
#include "sha1.h"
#include "sim/workload/workload-bound.h"
#include "sim/workload/workload-training.h"
#include "sim/workload/workload.h"
#include "trainer/search/spec.h"
#include "util.h"

static void
describe(struct report *r, const struct lab_setting *setting)
{
    const struct scenario *s = setting->scenario;
    char *fabric = scenario_fabric_to_string(s);
    char *actuators = scenario_actuators_to_string(s);
    char *text =
        xasprintf("%d hosts, %g Mbit/s, MTU %d, %s%s%s", s->n_hosts,
                  s->rate_bps / 1e6, s->mtu, fabric,
                  setting->plan->blind ? ", links unknown" : "", actuators);

    report_set(&r->setting, text);
    report_set(&r->description, s->description);
    free(text);
    free(actuators);
    free(fabric);
}

/* Returns true if each job of 'scenario' is one of a search, and exchanges
 * before it computes again. */
static bool
is_rigid(const struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->n_searches; i++) {
        const char *sync = scenario->searches[i].spec->sync;

        if (sync && strcmp(sync, "bsp")) {
            return false;
        }
    }
    return scenario->n_searches && !scenario->n_cojobs;
}

/* Bounds the stages of 'scenario', which have all ended under 'p'.  Which jobs
 * a search keeps is up to their training. */
static void
find_bound(const struct scenario *scenario, struct report_policy *p)
{
    if (is_rigid(scenario)) {
        struct workload *w = workload_training_create(scenario);
        struct workload_bound bound = workload_bound(w, 1, false);

        if (bound.mean > 0) {
            p->bound_mean_s = bound.mean;
            p->bound_strict_mean_s = bound.strict;
            report_set(&p->bound_kind, order_bound_names[bound.kind]);
        }
        workload_destroy(w);
    }
}

/* Runs the scenario under each policy in turn.  Returns NULL or the message of
 * the last run that failed, and stores the number of the others.  An interrupt
 * ends all runs. */
static char *
compare(struct cluster *cluster, const struct lab_setting *setting,
        const struct lab_options *o, struct report *r, size_t *n_done)
{
    char *error = NULL;

    for (size_t i = 0; i < setting->n_policies && !interrupt_signal(); i++) {
        const struct lab_policy *policy = &setting->policies[i];
        struct report_policy *p = report_add_policy(r, policy->name);
        char *log_dir = o->keep ? xasprintf("%s/logs/%s", o->out, p->name)
                                : NULL;
        char *run_error;

        lab_setting_choose(setting, policy);
        run_error = policy_run(cluster, setting->plan, setting->scenario,
                               policy->file, log_dir, p);
        if (run_error) {
            say("%s: %s", p->name, run_error);
            free(error);
            error = run_error;
        } else {
            find_bound(setting->scenario, p);
            ++*n_done;
        }
        free(log_dir);
    }
    return error;
}

/* Prints the table or the JSON, and writes the files. */
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
            printf("report: %s/report.html, %s/report.json\n", o->out, o->out);
        }
    }
    return error;
}

/* Runs one comparison. */
static int
run_once(const struct lab_options *o, const struct lab_setting *setting)
{
    struct cluster *cluster;
    struct report *r;
    char *error, *run_error;
    size_t n_done = 0;
    int status = EXIT_OK;

    interrupt_init();
    error = cluster_lock(setting->plan, &cluster);
    if (error) {
        return lab_fail(error);
    }
    r = report_create(setting->scenario->name, "lab");
    describe(r, setting);
    run_error = compare(cluster, setting, o, r, &n_done);
    cluster_unlock(cluster);
    if (n_done || !interrupt_signal()) {
        error = publish(r, o);
    }
    report_destroy(r);
    if (error) {
        status = lab_fail(error);
    } else if (interrupt_signal()) {
        status = interrupt_say(interrupt_signal(), n_done, setting->n_policies,
                               "run");
    } else if (run_error) {
        status = EXIT_NO;
    }
    free(run_error);
    return status;
}

/* A comparison at several placements. */
struct placements_run {
    const struct lab_options *o;
    const struct lab_setting *setting;
    const char *file;           /* Of the scenario. */
    struct scenario **scenarios;        /* One for each placement. */
    struct cluster *cluster;
    struct placements *results;
    size_t n_done;              /* Runs that have a result. */
    unsigned int n_failed;      /* Runs that failed. */
};

/* Stores a digest of everything that decides the result of 'policy' in
 * 'scenario', except the programs.  Returns NULL or a message. */
static char *
digest_inputs(const struct placements_run *pr, const struct scenario *scenario,
              const struct lab_policy *policy,
              char hex[SHA1_HEX_DIGEST_LEN + 1])
{
    char *texts[2] = { NULL, NULL };
    char *error = json_read_file(pr->file, &texts[0]);

    error = error ? error : json_read_file(policy->file, &texts[1]);
    if (!error) {
        const struct plan *plan = pr->setting->plan;
        char *actuators = scenario_actuators_to_string(pr->setting->scenario);
        char *all =
            xasprintf("%s\n%s\n%" PRId64 " %d%s%s %s", texts[0], texts[1],
                      scenario->seed, plan->ha, plan->blind ? " blind" : "",
                      actuators, plan->congestion ? plan->congestion : "");
        uint8_t digest[SHA1_DIGEST_SIZE];

        sha1_bytes(all, strlen(all), digest);
        sha1_to_hex(digest, hex);
        free(all);
        free(actuators);
    }
    free(texts[0]);
    free(texts[1]);
    return error;
}

/* Runs policy 'k' at placement 'i' and writes its report to 'dir'.  Returns
 * NULL, also if the run failed, or the message of an error after which
 * further runs are pointless. */
static char *
run_placed(struct placements_run *pr, size_t i, size_t k, const char *dir,
           const char *inputs)
{
    const struct scenario *scenario = pr->scenarios[i];
    const struct lab_policy *policy = &pr->setting->policies[k];
    struct report *r = report_create(scenario->name, "lab");
    struct report_policy *p = report_add_policy(r, policy->name);
    char *log_dir = pr->o->keep ? xasprintf("%s/logs", dir) : NULL;
    char *error = directory_create(dir);
    char *run_error;

    describe(r, pr->setting);
    report_set(&r->inputs, inputs);
    if (!error) {
        lab_setting_choose(pr->setting, policy);
        run_error = policy_run(pr->cluster, pr->setting->plan, scenario,
                               policy->file, log_dir, p);
        if (!run_error) {
            find_bound(scenario, p);
            report_put_remarks(p, stderr);
            pr->n_done++;
        } else if (!interrupt_signal()) {
            say("placement %"PRId64", %s: %s", scenario->seed, policy->name,
                run_error);
            pr->n_failed++;
        }
        if (!run_error || !interrupt_signal()) {
            report_finish(r);
            placements_set(pr->results, i, k, p);
            error = report_write(r, dir);
        }
        free(run_error);
    }
    free(log_dir);
    report_destroy(r);
    return error;
}

/* Runs policy 'k' at placement 'i' unless its result is there, or after an
 * interrupt. */
static char *
run_missing(struct placements_run *pr, size_t i, size_t k)
{
    const struct scenario *scenario = pr->scenarios[i];
    const struct lab_policy *policy = &pr->setting->policies[k];
    char *dir = xasprintf("%s/placement-%"PRId64"/%s", pr->o->out,
                          scenario->seed, policy->name);
    char *file = xasprintf("%s/report.json", dir);
    char inputs[SHA1_HEX_DIGEST_LEN + 1];
    bool done = false;
    char *error = digest_inputs(pr, scenario, policy, inputs);

    error = error ? error : placements_read(pr->results, i, k, file, inputs,
                                            &done);
    if (!error && (done || !interrupt_signal())) {
        say("placement %"PRId64" (%"PRIuSIZE" of %d), %s%s%s", scenario->seed,
            i + 1, pr->o->n_placements, policy->name,
            done ? ": already in " : "", done ? file : "");
    }
    if (!error && !done && !interrupt_signal()) {
        error = run_placed(pr, i, k, dir, inputs);
    }
    pr->n_done += done;
    free(file);
    free(dir);
    return error;
}

/* Prints what is known, as tables or as JSON, and writes it. */
static char *
publish_placements(const struct placements_run *pr)
{
    char *error = placements_write(pr->results, pr->o->out);

    if (pr->o->json) {
        placements_put_json(pr->results, stdout);
    } else {
        placements_put_summary(pr->results, stdout);
        if (!error) {
            printf("results: %s/placements.json, placements.html and "
                   "placement-SEED/POLICY\n",
                   pr->o->out);
        }
    }
    return error;
}

/* Runs all placements.  The cluster is locked. */
static char *
run_all(struct placements_run *pr)
{
    char *error = NULL;

    for (int i = 0; !error && i < pr->o->n_placements; i++) {
        for (size_t k = 0; !error && k < pr->setting->n_policies; k++) {
            error = run_missing(pr, i, k);
        }
        if (!error && !pr->o->json && !interrupt_signal()) {
            placements_put_one(pr->results, i, stdout);
            fflush(stdout);
        }
    }
    if (!error && (pr->n_done || !interrupt_signal())) {
        error = publish_placements(pr);
    }
    if (!error && pr->n_failed) {
        error = xasprintf("%u of %"PRIuSIZE" runs failed; the same command "
                          "runs them again", pr->n_failed,
                          pr->o->n_placements * pr->setting->n_policies);
    }
    return error;
}

/* Reads the scenario with each seed, so that errors come before the first
 * run. */
static char *
read_scenarios(struct placements_run *pr)
{
    int64_t first = pr->setting->scenario->seed;
    char *error = NULL;

    if (!pr->setting->scenario->random) {
        return xasprintf("%s: /random_searches: required member is missing, "
                         "--placements repeats it or \"random_placements\" "
                         "with other seeds",
                         pr->file);
    }
    pr->scenarios = xcalloc(pr->o->n_placements, sizeof *pr->scenarios);
    for (int i = 0; !error && i < pr->o->n_placements; i++) {
        int64_t seed = first + i;

        error = scenario_from_file(pr->file, &seed, &pr->scenarios[i]);
        if (error) {
            char *message = xasprintf("with seed %"PRId64": %s", seed, error);

            free(error);
            error = message;
        }
    }
    return error;
}

static struct placements *
create_results(const struct placements_run *pr)
{
    const struct lab_setting *setting = pr->setting;
    const char **names = xcalloc(setting->n_policies, sizeof *names);
    struct placements *results;

    for (size_t k = 0; k < setting->n_policies; k++) {
        names[k] = setting->policies[k].name;
    }
    results = placements_create(setting->scenario->name, "placement", names,
                                setting->n_policies, setting->scenario->seed,
                                pr->o->n_placements);
    free(names);
    return results;
}

static int
run_placements(const struct lab_options *o, const struct lab_setting *setting,
               const char *file)
{
    struct placements_run pr = { .o = o, .setting = setting, .file = file };
    char *error = read_scenarios(&pr);

    interrupt_init();
    error = error ? error : cluster_lock(setting->plan, &pr.cluster);
    if (!error) {
        pr.results = create_results(&pr);
        error = run_all(&pr);
        cluster_unlock(pr.cluster);
    }
    for (int i = 0; pr.scenarios && i < o->n_placements; i++) {
        scenario_destroy(pr.scenarios[i]);
    }
    free(pr.scenarios);
    placements_destroy(pr.results);
    if (error || !interrupt_signal()) {
        return error ? lab_fail(error) : EXIT_OK;
    }
    say("the same command continues with what is missing in %s", o->out);
    return interrupt_say(interrupt_signal(), pr.n_done,
                         o->n_placements * setting->n_policies, "run");
}

int
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
    if (error) {
        status = lab_fail(error);
    } else if (o->n_placements) {
        status = run_placements(o, &setting, o->args[0]);
    } else {
        status = run_once(o, &setting);
    }
    lab_setting_uninit(&setting);
    return status;
}
