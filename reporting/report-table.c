/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/report.h"

#include <math.h>
#include <string.h>

/* Formats 'value' for a column of 'width' with 'decimals', or a dash. */
static void
put_number(FILE *stream, int width, int decimals, double value,
           const char *unit)
{
    if (isnan(value)) {
        fprintf(stream, "  %*s", width, "-");
    } else {
        fprintf(stream, "  %*.*f%s", width - (int) strlen(unit), decimals,
                value, unit);
    }
}

static void
put_row(const struct report_policy *p, int width, FILE *stream)
{
    fprintf(stream, "%-*s", width, p->name);
    put_number(stream, 9, 2, p->mean_sct_s, "");
    put_number(stream, 9, 2, p->p95_sct_s, "");
    put_number(stream, 9, 2, p->makespan_s, "");
    put_number(stream, 8, 3, p->accuracy, "");
    put_number(stream, 6, 3, p->ratio, "");
    put_number(stream, 9, 2, p->bound_mean_s, "");
    put_number(stream, 8, 1, 100 * p->coverage, "%");
    put_number(stream, 6, 0, 100 * p->cpu_busy, "%");
    put_number(stream, 9, 3, p->iteration_s, "");
    put_number(stream, 9, 0, p->tcp_timeouts < 0 ? NAN : p->tcp_timeouts, "");
    putc('\n', stream);
}

static void
put_remarks(const struct report_policy *p, FILE *stream)
{
    if (p->failure) {
        fprintf(stream, "%s: did not complete: %s\n", p->name, p->failure);
    }
    if (p->ha.faults) {
        fprintf(stream, "%s: %u faults, after %u of which the order came "
                "back, within %.1f s; %u changes by a second master, two for "
                "%.1f s at most, %u flows flushed, %u stages lost\n", p->name,
                p->ha.faults, p->ha.back, p->ha.order_back_s,
                p->ha.double_masters, p->ha.overlap_s, p->ha.flows_flushed, p->ha.stages_lost);
    }
    if (p->restarts) {
        fprintf(stream, "%s: daemons were started again %u times\n",
                p->name, p->restarts);
    }
    if (p->stalls) {
        fprintf(stream, "%s: jobs stood still %u times\n", p->name,
                p->stalls);
    }
    if (p->cpu_busy > 0.85) {
        fprintf(stream, "%s: the processors were %.0f %% busy, so this run "
                "speaks of them and not of the network\n", p->name,
                100 * p->cpu_busy);
    }
}

static void
put_conclusion(const struct report *r, FILE *stream)
{
    const struct report_policy *c = r->candidate;

    if (c && !isnan(c->ratio)) {
        fprintf(stream, "\nmean SCT: %s / %s = %.3f\n", c->name,
                r->baseline->name, c->ratio);
    }
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        if (!isnan(p->bound_mean_s) && p->bound_mean_s > 0
            && !isnan(p->mean_sct_s)) {
            fprintf(stream, "certificate: no order of the stages of \"%s\" "
                    "has a mean SCT below %.2f s (measured / bound = %.2f)\n",
                    p->name, p->bound_mean_s,
                    p->mean_sct_s / p->bound_mean_s);
        }
    }
}

void
report_put_table(const struct report *r, FILE *stream)
{
    int width = 6;

    for (size_t i = 0; i < r->n_policies; i++) {
        int length = strlen(r->policies[i]->name);

        width = length > width ? length : width;
    }
    fprintf(stream, "%-*s  %9s  %9s  %9s  %8s  %6s  %9s  %8s  %6s  %9s  %9s\n",
            width, "policy", "mean SCT", "p95 SCT", "makespan", "accuracy",
            "ratio", "bound", "coverage", "CPU", "iteration", "time-outs");
    for (size_t i = 0; i < r->n_policies; i++) {
        put_row(r->policies[i], width, stream);
    }
    fputs("(seconds; SCT is a stage's completion time, makespan the time to "
          "the searches' end,\n iteration a job's mean time for one, "
          "time-outs TCP's for retransmission)\n", stream);
    for (size_t i = 0; i < r->n_policies; i++) {
        put_remarks(r->policies[i], stream);
    }
    put_conclusion(r, stream);
}
