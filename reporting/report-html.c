/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/report.h"

#include <math.h>
#include <stdbool.h>
#include <time.h>

#include "reporting/report-svg.h"

/* Colours follow the reader's light or dark setting; the eight hues of "c0" to
 * "c7" stay apart for colour-blind readers (after Okabe and Ito). */
static const char style[] =
    ":root{--bg:#fff;--fg:#1b1f24;--soft:#667;--line:#d5d9df;--heat:#0072b2;"
    "--c0:#0072b2;--c1:#d98200;--c2:#009e73;--c3:#b8558f;--c4:#3f9fd8;"
    "--c5:#c04f00;--c6:#8a7f00;--c7:#555}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e8ea;"
    "--soft:#9aa3ad;--line:#353b43;--heat:#56b4e9;--c0:#56b4e9;--c1:#f0ad3c;"
    "--c2:#2fc79a;--c3:#d98fbd;--c4:#8fcdf3;--c5:#f07f3c;--c6:#f0e442;"
    "--c7:#bbb}}\n"
    "body{margin:0 auto;padding:1rem;max-width:60rem;background:var(--bg);"
    "color:var(--fg);font:16px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2rem 0 "
    ".3rem}p{margin:.3rem 0}.soft{color:var(--soft)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.93rem}"
    "th,td{text-align:right;padding:.25rem .5rem;border-bottom:1px solid "
    "var(--line);font-variant-numeric:tabular-nums}"
    "th:first-child,td:first-child{text-align:left}\n"
    "svg{display:block;width:100%;min-width:34rem;height:auto}"
    "svg text{fill:var(--fg);font:12px system-ui,sans-serif}"
    "svg .s{fill:var(--soft)}svg .g{stroke:var(--line)}"
    "svg .p{fill:none;stroke-width:1.5}figure{margin:.5rem 0}"
    "figcaption{color:var(--soft);font-size:.9rem}\n"
    ".bad{border-left:4px solid var(--c5);padding-left:.6rem}\n";

static void
put_cell(FILE *stream, double value, int decimals, const char *unit)
{
    if (isnan(value)) {
        fputs("<td>–</td>", stream);
    } else {
        fprintf(stream, "<td>%.*f%s</td>", decimals, value, unit);
    }
}

static void
put_table(const struct report *r, FILE *stream)
{
    fputs("<div class=\"wide\"><table><thead><tr><th>policy</th>"
          "<th>mean SCT, s</th><th>p95 SCT, s</th><th>makespan, s</th>"
          "<th>accuracy</th><th>ratio</th><th>bound, s</th><th>coverage</th>"
          "<th>CPU</th><th>iteration, s</th><th>time-outs</th></tr></thead>"
          "<tbody>\n", stream);
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        fputs("<tr><td>", stream);
        svg_put_text(stream, p->name);
        fputs("</td>", stream);
        put_cell(stream, p->mean_sct_s, 2, "");
        put_cell(stream, p->p95_sct_s, 2, "");
        put_cell(stream, p->makespan_s, 2, "");
        put_cell(stream, p->accuracy, 3, "");
        put_cell(stream, p->ratio, 3, "");
        put_cell(stream, p->bound_mean_s, 2, "");
        put_cell(stream, 100 * p->coverage, 1, " %");
        put_cell(stream, 100 * p->cpu_busy, 0, " %");
        put_cell(stream, p->iteration_s, 3, "");
        put_cell(stream, p->tcp_timeouts < 0 ? NAN : p->tcp_timeouts, 0, "");
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div>\n", stream);
}

static void
put_remark(FILE *stream, const struct report_policy *p, const char *text)
{
    fputs("<p class=\"bad\"><b>", stream);
    svg_put_text(stream, p->name);
    fputs("</b>: ", stream);
    svg_put_text(stream, text);
    fputs("</p>\n", stream);
}

static void
put_remarks(const struct report_policy *p, FILE *stream)
{
    char text[128];

    if (p->failure) {
        put_remark(stream, p, p->failure);
    }
    if (p->cpu_busy > 0.85) {
        put_remark(stream, p, "the processors were more than 85 % busy, so "
                   "this run speaks of them and not of the network");
    }
    if (p->restarts || p->stalls) {
        snprintf(text, sizeof text, "%u daemons were started again, jobs "
                 "stood still %u times", p->restarts, p->stalls);
        put_remark(stream, p, text);
    }
}

static void
put_head(const struct report *r, FILE *stream)
{
    time_t when = r->when;
    struct tm tm;
    char date[64];

    gmtime_r(&when, &tm);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &tm);

    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\"><title>Stagecoach: ", stream);
    svg_put_text(stream, r->title);
    fprintf(stream, "</title><style>%s</style></head><body>\n<h1>", style);
    svg_put_text(stream, r->title);
    fputs("</h1>\n<p class=\"soft\">", stream);
    svg_put_text(stream, r->setting ? r->setting : r->kind);
    fprintf(stream, " – %s</p>\n", date);
    if (r->description) {
        fputs("<p>", stream);
        svg_put_text(stream, r->description);
        fputs("</p>\n", stream);
    }
}

static void
put_figure(const struct report *r, FILE *stream, const char *title,
           const char *caption,
           void (*put)(const struct report *, FILE *))
{
    fprintf(stream, "<h2>%s</h2>\n<figure><div class=\"wide\">\n", title);
    put(r, stream);
    fprintf(stream, "</div><figcaption>%s</figcaption></figure>\n", caption);
}

/* Says that pictures do not show all, if they do not. */
static void
put_limit(const struct report *r, FILE *stream)
{
    for (size_t i = 0; i < r->n_policies; i++) {
        if (r->policies[i]->n_stages > REPORT_MAX_ROWS) {
            fprintf(stream, "<p class=\"soft\">Pictures with a row for each "
                    "stage or search show the first %d.</p>\n",
                    REPORT_MAX_ROWS);
            return;
        }
    }
}

static bool
has_loss(const struct report *r)
{
    bool has = false;

    for (size_t i = 0; i < r->n_policies; i++) {
        for (size_t j = 0; j < r->policies[i]->n_jobs; j++) {
            has = has || r->policies[i]->jobs[j].n_points;
        }
    }
    return has;
}

void
report_put_html(const struct report *r, FILE *stream)
{
    put_head(r, stream);
    put_table(r, stream);
    if (r->candidate && !isnan(r->candidate->ratio)) {
        fputs("<p>Mean stage completion time (SCT): ", stream);
        svg_put_text(stream, r->candidate->name);
        fputs(" / ", stream);
        svg_put_text(stream, r->baseline->name);
        fprintf(stream, " = <b>%.3f</b></p>\n", r->candidate->ratio);
    }
    for (size_t i = 0; i < r->n_policies; i++) {
        put_remarks(r->policies[i], stream);
    }
    put_limit(r, stream);
    put_figure(r, stream, "Completion time of each stage",
               "Seconds from a stage's beginning to the last iteration of "
               "its slowest job; shorter is better.", svg_put_bars);
    put_figure(r, stream, "Completion times of all stages",
               "The share of stages that took at most so long; further left "
               "and higher is better.", svg_put_cdf);
    put_figure(r, stream, "When each stage ran",
               "One row a search, one block a rung; the same time scale for "
               "all policies. A number in a block is its rung.",
               svg_put_timeline);
    put_figure(r, stream, "Use of each link",
               "One row a direction of a host's link, seen from the host; "
               "full colour is the link's rate.", svg_put_heat);
    if (has_loss(r)) {
        put_figure(r, stream, "Loss",
                   "One line a job, one colour a search; a line ends where "
                   "the search stopped the job.", svg_put_loss);
    }
    fputs("</body></html>\n", stream);
}
