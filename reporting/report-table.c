/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/report.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define COLUMN(MEMBER) offsetof(struct report_policy, MEMBER)

const struct report_column report_columns[] = {
    { "mean SCT", 9, 2, " s", 1, COLUMN(mean_sct_s) },
    { "p95 SCT", 9, 2, " s", 1, COLUMN(p95_sct_s) },
    { "makespan", 9, 2, " s", 1, COLUMN(makespan_s) },
    { "accuracy", 8, 3, "", 1, COLUMN(accuracy) },
    { "ratio", 6, 3, "", 1, COLUMN(ratio) },
    { "bound", 9, 2, " s", 1, COLUMN(bound_mean_s) },
    { "coverage", 8, 1, " %", 100, COLUMN(coverage) },
    { "CPU", 6, 0, " %", 100, COLUMN(cpu_busy) },
    { "iteration", 9, 3, " s", 1, COLUMN(iteration_s) },
    { "time-outs", 9, 0, "", 1, COLUMN(tcp_timeouts) },
    { "queue", 8, 0, " kB", 1e-3, COLUMN(queue_p99_bytes) },
};
const size_t report_n_columns = sizeof report_columns / sizeof *report_columns;

const char report_legend[] =
    "(seconds; SCT: stage completion time, makespan: time until the last "
    "search ended,\n iteration: mean time of an iteration, time-outs: TCP "
    "retransmission timeouts,\n queue: 99th percentile at the ports of the "
    "switch)\n";

/* Returns the value of 'column' in its unit, NAN if it is unknown. */
double
report_column_value(const struct report_column *column,
                    const struct report_policy *p)
{
    return column->scale
           * *(const double *) ((const char *) p + column->offset);
}

static void
put_row(const struct report_policy *p, int width, FILE *stream)
{
    fprintf(stream, "%-*s", width, p->name);
    for (size_t i = 0; i < report_n_columns; i++) {
        const struct report_column *c = &report_columns[i];
        const char *unit = c->scale != 1 ? c->unit : "";
        double value = report_column_value(c, p);

        if (isnan(value)) {
            fprintf(stream, "  %*s", c->width, "-");
        } else {
            fprintf(stream, "  %*.*f%s", c->width - (int) strlen(unit),
                    c->decimals, value, unit);
        }
    }
    putc('\n', stream);
}

void
report_put_gain(const char *policy, const char *baseline,
                struct interval ratio, FILE *stream)
{
    double sooner = 100 * (1 - ratio.mean);
    bool plain = !strcmp(baseline, "plain");

    if (isnan(ratio.mean)) {
        return;
    }
    fputs("searches finish their rounds ", stream);
    if (fabs(sooner) < 0.5) {
        fputs("neither sooner nor later", stream);
    } else {
        fprintf(stream, "%.0f %% %s", fabs(sooner),
                sooner > 0 ? "sooner" : "later");
    }
    fprintf(stream, "%s%s than %s%s", policy ? " under " : "",
            policy ? policy : "", plain ? "without Stagecoach" : "under ",
            plain ? "" : baseline);
    if (!isnan(ratio.low)) {
        fprintf(stream,
                " (mean of %zu runs, 95 %% interval %.0f to %.0f %% "
                "sooner)",
                ratio.n, 100 * (1 - ratio.high), 100 * (1 - ratio.low));
    }
    putc('\n', stream);
}

void
report_put_figure(const struct report_figure *figure, double value,
                  FILE *stream)
{
    if (isnan(value)) {
        fprintf(stream, " %*s", figure->width, "-");
    } else {
        fprintf(stream, " %*.*f", figure->width, figure->decimals, value);
    }
}

void
report_put_headline(const struct report *r, FILE *stream)
{
    const struct report_policy *c = r->candidate;

    if (c) {
        report_put_gain(r->n_policies > 2 ? c->name : NULL, r->baseline->name,
                        interval_of(&c->ratio, 1), stream);
    }
}

static bool
have_same_queues(const struct report *r)
{
    for (size_t i = 1; i < r->n_policies; i++) {
        const char *a = r->policies[0]->queues;
        const char *b = r->policies[i]->queues;

        if (a != b && (!a || !b || strcmp(a, b))) {
            return false;
        }
    }
    return true;
}

void
report_put_queues(const struct report *r, FILE *stream)
{
    bool same = have_same_queues(r);

    for (size_t i = 0; i < r->n_policies && (!i || !same); i++) {
        const struct report_policy *p = r->policies[i];

        if (p->queues) {
            fprintf(stream, "%s%squeues of the switch: %s\n",
                    same ? "" : p->name, same ? "" : ": ", p->queues);
        }
    }
    if (r->n_policies && r->policies[0]->tcp_congestion_control) {
        fprintf(stream, "congestion control of TCP: %s\n",
                r->policies[0]->tcp_congestion_control);
    }
}

void
report_put_remarks(const struct report_policy *p, FILE *stream)
{
    if (p->failure) {
        fprintf(stream, "%s: did not complete: %s\n", p->name, p->failure);
    }
    if (p->remark) {
        fprintf(stream, "%s: %s\n", p->name, p->remark);
    }
    if (p->restarts) {
        fprintf(stream, "%s: daemons were restarted %u times\n",
                p->name, p->restarts);
    }
    if (p->stalls) {
        fprintf(stream, "%s: jobs stalled %u times\n", p->name, p->stalls);
    }
    if (p->cpu_busy > 0.85) {
        fprintf(stream, "%s: the CPUs were %.0f %% busy, so the times depend "
                "on the CPUs more than on the network\n", p->name,
                100 * p->cpu_busy);
    }
}

void
report_put_conclusion(const struct report *r, FILE *stream)
{
    const struct report_policy *c = r->candidate;

    if (c && !isnan(c->ratio)) {
        fprintf(stream, "%s / %s: mean SCT %.3f, p95 SCT %.3f", c->name,
                r->baseline->name, c->ratio,
                c->p95_sct_s / r->baseline->p95_sct_s);
        if (!isnan(c->makespan_s / r->baseline->makespan_s)) {
            fprintf(stream, ", makespan %.3f",
                    c->makespan_s / r->baseline->makespan_s);
        }
        putc('\n', stream);
    }
    for (size_t i = 0; c && i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];
        const double *ratios = p->searches_vs_baseline;

        if (p != r->baseline && !isnan(ratios[REPORT_SEARCH_MEAN])) {
            fprintf(stream,
                    "time of each search, %s / %s: mean %.3f, worst "
                    "%.3f, %.0f %% of them more than 5 %% later\n",
                    p->name, r->baseline->name, ratios[REPORT_SEARCH_MEAN],
                    ratios[REPORT_SEARCH_WORST],
                    100 * ratios[REPORT_SEARCH_LATER]);
        }
    }
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        if (!isnan(p->exchange_s)) {
            fprintf(stream,
                    "under %s, workers waited in exchanges for %.0f s "
                    "in all\n",
                    p->name, p->exchange_s);
        }
    }
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        if (!isnan(p->bound_strict_mean_s) && !isnan(p->mean_sct_s)) {
            fprintf(stream,
                    "\"%s\": distance to the bound of these stages "
                    "%.2f (fluid form: %.2f s), %.2f (strict form: %.2f s); "
                    "bound: %s\n",
                    p->name, p->mean_sct_s / p->bound_mean_s, p->bound_mean_s,
                    p->mean_sct_s / p->bound_strict_mean_s,
                    p->bound_strict_mean_s, p->bound_kind);
        } else if (!isnan(p->bound_mean_s) && p->bound_mean_s > 0
                   && !isnan(p->mean_sct_s)) {
            fprintf(stream, "certificate: no order of the stages of \"%s\" "
                    "has a mean SCT below %.2f s (measured / bound = %.2f; "
                    "bound: %s)\n", p->name, p->bound_mean_s,
                    p->mean_sct_s / p->bound_mean_s,
                    p->bound_kind ? p->bound_kind : "-");
        }
    }
}

void
report_put_table(const struct report *r, FILE *stream)
{
    int width = 6;

    report_put_headline(r, stream);
    if (r->candidate) {
        putc('\n', stream);
    }
    for (size_t i = 0; i < r->n_policies; i++) {
        int length = strlen(r->policies[i]->name);

        width = length > width ? length : width;
    }
    fprintf(stream, "%-*s", width, "policy");
    for (size_t i = 0; i < report_n_columns; i++) {
        fprintf(stream, "  %*s", report_columns[i].width,
                report_columns[i].title);
    }
    putc('\n', stream);
    for (size_t i = 0; i < r->n_policies; i++) {
        put_row(r->policies[i], width, stream);
    }
    fputs(r->legend, stream);
    report_put_queues(r, stream);
    for (size_t i = 0; i < r->n_policies; i++) {
        report_put_remarks(r->policies[i], stream);
    }
    if (r->candidate) {
        putc('\n', stream);
    }
    report_put_conclusion(r, stream);
}
