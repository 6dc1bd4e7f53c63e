/* SPDX-License-Identifier: Apache-2.0 */

/* What "stagecoach sim" prints. */

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/simulate/sim-run.h"
#include "policies/policy.h"
#include "sim/workload/workload.h"

static void
put_number(double x, int decimals)
{
    if (isnan(x)) {
        printf(" %9s", "-");
    } else {
        printf(" %9.*f", decimals, x);
    }
}

/* The stages' times, by which policies are compared. */
static void
put_stages(const struct sim_run *run)
{
    printf("%-16s %9s %9s %9s %9s %9s %9s %6s %6s %9s\n", "policy", "mean",
           "p50", "p95", "p99", "max", "bound", "gap", "ratio", "decisions");
    for (size_t i = 0; i < run->n_policies; i++) {
        const struct sim_result *r = &run->policies[i].result;

        printf("%-16s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %6.3f %6.3f %9zu\n",
               run->policies[i].policy->name, r->mean, r->p50, r->p95, r->p99,
               r->max, r->bound, r->gap, sim_run_ratio(run, i), r->decisions);
    }
}

/* What that mean cost whom. */
static void
put_others(const struct sim_run *run)
{
    printf("\n%-16s %9s %9s %9s %9s %9s %9s %9s %9s\n", "policy", "mean CCT",
           "mean JCT", "early", "early p95", "Jain", "slowest", "worst",
           "us p99");
    for (size_t i = 0; i < run->n_policies; i++) {
        const struct sim_run_policy *p = &run->policies[i];

        printf("%-16s", p->policy->name);
        put_number(p->results.cct.mean, 3);
        put_number(p->results.jct.mean, 3);
        put_number(p->results.early.mean, 3);
        put_number(p->results.early.p95, 3);
        put_number(p->results.jain, 3);
        put_number(p->results.rho_max, 2);
        put_number(p->results.worst, 3);
        put_number(p->result.decision_us_p99, 0);
        putchar('\n');
    }
}

void
sim_run_print_table(const struct sim_run *run)
{
    const struct workload *w = run->workload;

    printf("%s: %zu %s%s on %d hosts%s, completion times in seconds\n",
           run->what, w->n_stages, w->noun, w->n_stages == 1 ? "" : "s",
           w->fabric->n_hosts, run->offline ? ", all at once" : "");
    put_stages(run);
    put_others(run);
}

/* What is not known is null. */
static void
add_number(cJSON *o, const char *name, double x)
{
    if (isfinite(x)) {
        cJSON_AddNumberToObject(o, name, x);
    } else {
        cJSON_AddNullToObject(o, name);
    }
}

static void
add_times(cJSON *o, const char *name, const struct results_times *t)
{
    cJSON *times = cJSON_AddObjectToObject(o, name);

    add_number(times, "n", t->n);
    add_number(times, "mean", t->mean);
    add_number(times, "p50", t->p50);
    add_number(times, "p95", t->p95);
    add_number(times, "p99", t->p99);
    add_number(times, "max", t->max);
}

static void
add_fairness(cJSON *o, const struct results *r)
{
    cJSON *fairness = cJSON_AddObjectToObject(o, "fairness");

    add_number(fairness, "jain", r->jain);
    add_number(fairness, "rho_max", r->rho_max);
    add_number(o, "starvation", r->worst);
}

static cJSON *
policy_to_json(const struct sim_run *run, size_t i)
{
    const struct sim_run_policy *p = &run->policies[i];
    const struct sim_result *r = &p->result;
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", p->policy->name);
    add_number(o, "mean", r->mean);
    add_number(o, "p50", r->p50);
    add_number(o, "p95", r->p95);
    add_number(o, "p99", r->p99);
    add_number(o, "max", r->max);
    add_number(o, "bound", r->bound);
    add_number(o, "gap", r->gap);
    add_number(o, "ratio", sim_run_ratio(run, i));
    add_number(o, "decisions", r->decisions);
    add_number(o, "decision_us_p99", r->decision_us_p99);
    add_number(o, "decision_gap_first", r->decision_gap_first);
    add_number(o, "decision_gap_mean", r->decision_gap_mean);
    add_number(o, "gained", r->gained);
    add_times(o, "sct", &p->results.sct);
    add_times(o, "cct", &p->results.cct);
    add_times(o, "jct", &p->results.jct);
    add_times(o, "early", &p->results.early);
    add_fairness(o, &p->results);
    return o;
}

static void
add_stages(cJSON *array, const struct sim_run *run, size_t i)
{
    const struct sim_result *r = &run->policies[i].result;

    for (size_t j = 0; j < r->n_stages; j++) {
        const struct sim_stage *stage = &r->stages[j];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "policy", run->policies[i].policy->name);
        cJSON_AddStringToObject(o, "cojob",
                                run->workload->cojobs[stage->cojob].name);
        cJSON_AddNumberToObject(o, "rung", stage->rung);
        cJSON_AddNumberToObject(o, "start", stage->begin);
        cJSON_AddNumberToObject(o, "end", stage->end);
        cJSON_AddItemToArray(array, o);
    }
}

void
sim_run_print_json(const struct sim_run *run)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *policies, *stages;
    char *text;

    cJSON_AddStringToObject(top, "file", run->what);
    cJSON_AddStringToObject(top, "measured", run->workload->noun);
    cJSON_AddNumberToObject(top, "hosts", run->workload->fabric->n_hosts);
    cJSON_AddBoolToObject(top, "offline", run->offline);
    cJSON_AddStringToObject(top, "bound", run->lp ? "lp" : "certificate");
    policies = cJSON_AddArrayToObject(top, "policies");
    stages = cJSON_AddArrayToObject(top, "stages");
    for (size_t i = 0; i < run->n_policies; i++) {
        cJSON_AddItemToArray(policies, policy_to_json(run, i));
        add_stages(stages, run, i);
    }
    text = cJSON_Print(top);
    if (!text) {
        abort();
    }
    puts(text);
    cJSON_free(text);
    cJSON_Delete(top);
}
