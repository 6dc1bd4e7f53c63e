/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/cojob-watch.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "reporting/report.h"
#include "controller/ovsdb/rpc-call.h"
#include "lab/cluster/plan.h"
#include "scenario/scenario.h"
#include "util.h"

#define ASK_MS 300              /* For an agent to answer. */

/* One job on one host. */
struct job_there {
    double tx_bytes;            /* Sent in its slot. */
    long long told, counted;    /* Iterations, -1 if not known. */
};

struct cojob_watch {
    const struct plan *plan;
    const struct scenario_cojob *cojob;
    uint64_t hosts;             /* Bit i: a process runs on host i. */
    struct job_there *there;    /* n_jobs rows of n_hosts. */
    double *untagged_before;    /* By host: IP bytes of no job, */
    double *untagged;           /* and as asked last. */
};

struct cojob_watch *
cojob_watch_create(const struct plan *plan,
                   const struct scenario_cojob *cojob)
{
    struct cojob_watch *w = xzalloc(sizeof *w);
    size_t n = plan->n_hosts;

    w->plan = plan;
    w->cojob = cojob;
    w->there = xcalloc(cojob->n_jobs * n, sizeof *w->there);
    w->untagged_before = xcalloc(n, sizeof *w->untagged_before);
    w->untagged = xcalloc(n, sizeof *w->untagged);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const struct scenario_job *job = &cojob->jobs[i];

        for (size_t j = 0; j < n; j++) {
            w->there[i * n + j].told = w->there[i * n + j].counted = -1;
        }
        for (size_t j = 0; j < job->n_hosts; j++) {
            w->hosts |= UINT64_C(1) << job->hosts[j];
        }
    }
    return w;
}

void
cojob_watch_destroy(struct cojob_watch *w)
{
    if (w) {
        free(w->there);
        free(w->untagged_before);
        free(w->untagged);
        free(w);
    }
}

/* Returns the answer of host 'host', or NULL: an agent may be starting
 * again. */
static cJSON *
ask(const struct cojob_watch *w, int host, const char *command)
{
    char *dir = plan_host_dir(w->plan, host);
    char *ctl = xasprintf("%s/agent.ctl", dir);
    char *reply;
    int errnum;
    char *error = rpc_unixctl(ctl, command, 0, NULL, ASK_MS, &reply,
                              &errnum);
    cJSON *json = error ? NULL : cJSON_Parse(reply);

    free(error);
    free(reply);
    free(ctl);
    free(dir);
    return json;
}

/* Stores number 'member' of 'object' in '*valuep' if there is one. */
static bool
get_number(const cJSON *object, const char *member, double *valuep)
{
    const cJSON *item = cJSON_GetObjectItem(object, member);

    if (!cJSON_IsNumber(item)) {
        return false;
    }
    *valuep = item->valuedouble;
    return true;
}

static void
take_job(struct cojob_watch *w, size_t i, int host, const cJSON *json)
{
    struct job_there *there = &w->there[i * w->plan->n_hosts + host];
    double n;

    get_number(json, "tx_bytes", &there->tx_bytes);
    if (get_number(json, "iteration", &n)) {
        there->told = n;
    }
    if (get_number(json, "counted", &n)) {
        there->counted = n;
    }
}

static void
take_jobs(struct cojob_watch *w, int host, const cJSON *jobs)
{
    const cJSON *json;

    cJSON_ArrayForEach (json, jobs) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(json,
                                                                    "job"));

        for (size_t i = 0; name && i < w->cojob->n_jobs; i++) {
            char *full = xasprintf("%s/%s", w->cojob->name,
                                   w->cojob->jobs[i].name);

            if (!strcmp(full, name)) {
                take_job(w, i, host, json);
            }
            free(full);
        }
    }
}

static void
ask_status(struct cojob_watch *w, double untagged[])
{
    for (int host = 0; host < w->plan->n_hosts; host++) {
        if (w->hosts & (UINT64_C(1) << host)) {
            cJSON *status = ask(w, host, "agent/status");

            get_number(status, "default_bytes", &untagged[host]);
            cJSON_Delete(status);
        }
    }
}

void
cojob_watch_begin(struct cojob_watch *w)
{
    ask_status(w, w->untagged_before);
}

void
cojob_watch_run(struct cojob_watch *w)
{
    ask_status(w, w->untagged);
    for (int host = 0; host < w->plan->n_hosts; host++) {
        if (w->hosts & (UINT64_C(1) << host)) {
            cJSON *reply = ask(w, host, "agent/jobs");

            take_jobs(w, host, cJSON_GetObjectItem(reply, "jobs"));
            cJSON_Delete(reply);
        }
    }
}

/* As the controller has it: the most that was told, else the least that was
 * counted. */
long long
cojob_watch_iteration(const struct cojob_watch *w, size_t job)
{
    long long told = -1, counted = -1;

    for (int host = 0; host < w->plan->n_hosts; host++) {
        const struct job_there *there = &w->there[job * w->plan->n_hosts
                                                  + host];

        told = MAX(told, there->told);
        if (there->counted >= 0
            && (counted < 0 || there->counted < counted)) {
            counted = there->counted;
        }
    }
    return told >= 0 ? told : counted;
}

/* What its hosts sent untagged meanwhile is taken for the cojob's, since
 * nothing tells whose it was: the coverage is at least what this says. */
void
cojob_watch_report(const struct cojob_watch *w, struct report_policy *policy)
{
    double tagged = 0, untagged = 0;

    for (size_t i = 0; i < w->cojob->n_jobs * w->plan->n_hosts; i++) {
        tagged += w->there[i].tx_bytes;
    }
    for (int host = 0; host < w->plan->n_hosts; host++) {
        untagged += MAX(0, w->untagged[host] - w->untagged_before[host]);
    }
    report_cojob(policy, w->cojob->name, tagged, untagged);
}
