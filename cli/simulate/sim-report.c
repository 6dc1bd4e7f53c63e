/* SPDX-License-Identifier: Apache-2.0 */

/* Fills a report with what was simulated, for its page. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporting/report.h"
#include "cli/simulate/sim-run.h"
#include "policies/policy.h"
#include "order/problem/memory.h"
#include "sim/workload/workload.h"

#define MAX_PORTS 64            /* Of the heat map. */

static void
add_stages(const struct sim_run *run, const struct sim_result *result,
           struct report_policy *rp)
{
    const struct workload *w = run->workload;

    for (size_t i = 0; i < w->n_cojobs; i++) {
        report_search_begin(rp, w->cojobs[i].name, w->cojobs[i].arrival);
    }
    for (size_t i = 0; i < result->n_stages; i++) {
        const struct sim_stage *stage = &result->stages[i];
        const struct workload_cojob *cojob = &w->cojobs[stage->cojob];

        report_stage_begin(rp, cojob->name, stage->rung, stage->begin,
                           cojob->rungs[stage->rung].n_jobs);
        rp->stages[rp->n_stages - 1].end = stage->end;
        if (stage->rung == cojob->n_rungs - 1) {
            report_search_end(rp, cojob->name, stage->end, NULL);
        }
    }
}

static char *
port_name(const struct sim_fabric *fabric, int port)
{
    const char *direction = port % 2 ? "rx" : "tx";
    bool host = port < 2 * fabric->n_hosts;
    char *name;

    if (asprintf(&name, "%s%d:%s", host ? "h" : "s",
                 port / 2 - (host ? 0 : fabric->n_hosts), direction) < 0) {
        abort();
    }
    return name;
}

/* Stores the ports that carried most, at most MAX_PORTS of them, by their
 * numbers.  Returns how many there are. */
static size_t
choose_ports(const struct port_use *use, int ports[MAX_PORTS])
{
    double *bytes = order_alloc(use->n_ports, sizeof *bytes);
    size_t n = 0;

    for (int slot = 0; slot < PORT_USE_SLOTS; slot++) {
        for (int p = 0; p < use->n_ports; p++) {
            bytes[p] += port_use_bytes(use, slot, p);
        }
    }
    for (int p = 0; p < use->n_ports; p++) {
        int more = 0;

        for (int q = 0; q < use->n_ports; q++) {
            more += bytes[q] > bytes[p] || (bytes[q] == bytes[p] && q < p);
        }
        if (more < MAX_PORTS) {
            ports[n++] = p;
        }
    }
    free(bytes);
    return n;
}

/* 'ports' are the same for every policy. */
static void
add_use(const struct sim_run *run, const struct port_use *use,
        const int *ports, size_t n_ports, struct report_policy *rp)
{
    const struct sim_fabric *fabric = run->workload->fabric;
    char *names[MAX_PORTS];

    for (size_t i = 0; i < n_ports; i++) {
        names[i] = port_name(fabric, ports[i]);
    }
    report_set_ports(rp, (const char *const *) names, n_ports);
    for (int slot = 0; slot * use->width < use->now; slot++) {
        float row[MAX_PORTS];

        for (size_t i = 0; i < n_ports; i++) {
            row[i] = port_use_bytes(use, slot, ports[i]) / use->width
                     / fabric->capacity[ports[i]];
        }
        report_links(rp, (slot + 0.5) * use->width, row);
    }
    for (size_t i = 0; i < n_ports; i++) {
        free(names[i]);
    }
}

static void
add_policy(const struct sim_run *run, const struct sim_run_policy *p,
           const int *ports, size_t n_ports, struct report *report)
{
    struct report_policy *rp = report_add_policy(report, p->policy->name);

    rp->bound_mean_s = p->result.bound;
    rp->gap_mean = p->result.decision_gap_mean;
    rp->decisions = p->result.decisions;
    add_stages(run, &p->result, rp);
    add_use(run, &p->use, ports, n_ports, rp);
}

static char *
write_page(const struct report *report, const char *file)
{
    FILE *stream = fopen(file, "we");
    char *error = NULL;
    bool failed = !stream;

    if (stream) {
        report_put_html(report, stream);
        failed = ferror(stream);
        failed = fclose(stream) || failed;
    }
    if (failed && asprintf(&error, "%s: %s", file, strerror(errno)) < 0) {
        abort();
    }
    return error;
}

char *
sim_run_write_html(const struct sim_run *run)
{
    const struct workload *w = run->workload;
    struct report *report = report_create(run->what, "sim");
    int ports[MAX_PORTS];
    size_t n_ports = choose_ports(&run->policies[0].use, ports);
    char setting[128];
    char *error;

    snprintf(setting, sizeof setting, "simulated: %zu %s%s on %d hosts%s",
             w->n_stages, w->noun, w->n_stages == 1 ? "" : "s",
             w->fabric->n_hosts, run->offline ? ", all at once" : "");
    report_set(&report->setting, setting);
    for (size_t i = 0; i < run->n_policies; i++) {
        add_policy(run, &run->policies[i], ports, n_ports, report);
    }
    report_finish(report);
    error = write_page(report, run->html);
    report_destroy(report);
    return error;
}
