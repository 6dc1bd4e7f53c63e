/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/report-svg.h"

#include <math.h>
#include <string.h>

#include "reporting/report-svg-parts.h"
#include "reporting/report.h"

#define MAX_COLUMNS 200         /* Of the heat map. */
#define MAX_POINTS 200          /* Of a line. */

/* More rows than this tell nobody anything: only the first are drawn. */
static size_t
rows(size_t n)
{
    return n < REPORT_MAX_ROWS ? n : REPORT_MAX_ROWS;
}

/* A search has the same number, and colour, under every policy: its place
 * under the first one. */
static int
search_index(const struct report *r, const char *cojob)
{
    const struct report_policy *p = r->policies[0];
    size_t i = 0;

    while (i < p->n_searches && strcmp(p->searches[i].cojob, cojob)) {
        i++;
    }
    return i;
}

static const struct report_stage *
find_stage(const struct report_policy *p, const char *cojob, int rung)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        if (p->stages[i].rung == rung && !strcmp(p->stages[i].cojob, cojob)) {
            return &p->stages[i];
        }
    }
    return NULL;
}

static double
longest_stage(const struct report *r)
{
    double longest = 1e-3;

    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        for (size_t j = 0; j < p->n_stages; j++) {
            longest = fmax(longest, p->stages[j].end - p->stages[j].start);
        }
    }
    return longest;
}

/* The bars of one stage, one a policy. */
static void
put_stage_bars(const struct report *r, FILE *stream,
               const struct report_stage *stage, double y, double max)
{
    char label[96];

    snprintf(label, sizeof label, "%.40s, rung %d", stage->cojob,
             stage->rung);
    svg_put_label(stream, SVG_LEFT - 8, y + 8 * r->n_policies + 2, "end",
                  label);
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_stage *s = find_stage(r->policies[i],
                                                  stage->cojob, stage->rung);
        double sct = s ? s->end - s->start : NAN;

        if (!isnan(sct)) {
            fprintf(stream, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
                    "height=\"13\" rx=\"2\" style=\"fill:var(--c%d)\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\">%.1f</text>\n",
                    SVG_LEFT, y, SVG_PLOT * sct / max,
                    (int) (i % SVG_N_COLOURS),
                    SVG_LEFT + SVG_PLOT * sct / max + 4, y + 11, sct);
        } else {
            svg_put_label(stream, SVG_LEFT + 4, y + 11, "start",
                          "did not end");
        }
        y += 16;
    }
}

void
svg_put_bars(const struct report *r, FILE *stream)
{
    const struct report_policy *most = NULL;
    double max = longest_stage(r);
    double group = 16 * r->n_policies + 10;
    size_t n = 0;
    double y = 24;

    /* A run that did not complete may lack stages that another one has. */
    for (size_t i = 0; i < r->n_policies; i++) {
        if (!most || r->policies[i]->n_stages > most->n_stages) {
            most = r->policies[i];
            n = rows(most->n_stages);
        }
    }
    svg_begin(stream, 48 + group * n,
          "completion time of each stage under each policy");
    svg_put_legend(r, stream, 4);
    svg_put_time_axis(stream, max, y, y + group * n);
    for (size_t i = 0; i < n; i++, y += group) {
        put_stage_bars(r, stream, &most->stages[i], y + 4, max);
    }
    fputs("</svg>\n", stream);
}

/* One block: a stage from its start to its end, or to 'max'. */
static void
put_block(const struct report *r, FILE *stream, const struct report_stage *s,
          double y, double max)
{
    double end = isnan(s->end) ? max : s->end;
    double x = SVG_LEFT + SVG_PLOT * s->start / max;
    double width = fmax(1, SVG_PLOT * (end - s->start) / max - 1);

    fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"18\" rx=\"2\" style=\"fill:var(--c%d);fill-opacity:"
            "%.2f\"><title>", x, y, width,
            search_index(r, s->cojob) % SVG_N_COLOURS,
            s->rung % 2 ? 0.6 : 0.85);
    svg_put_text(stream, s->cojob);
    fprintf(stream, ", rung %d, %d jobs: %.2f to %.2f s%s</title></rect>\n",
            s->rung, s->n_jobs, s->start, end,
            isnan(s->end) ? ", not ended" : "");
    if (width > 14) {
        fprintf(stream, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\""
                " style=\"fill:var(--bg)\">%d</text>\n", x + width / 2,
                y + 13.5, s->rung);
    }
}

void
svg_put_timeline(const struct report *r, FILE *stream)
{
    double max = svg_last_time(r);
    double height = 0;
    double y = 0;

    for (size_t i = 0; i < r->n_policies; i++) {
        height += 50 + 22 * rows(r->policies[i]->n_searches);
    }
    svg_begin(stream, height, "stages of each search over time");
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];
        size_t n = rows(p->n_searches);

        svg_put_label(stream, 0, y + 14, "start", p->name);
        y += 20;
        svg_put_time_axis(stream, max, y, y + 22 * n);
        for (size_t j = 0; j < n; j++, y += 22) {
            const char *cojob = p->searches[j].cojob;

            svg_put_label(stream, SVG_LEFT - 8, y + 15, "end", cojob);
            for (size_t k = 0; k < p->n_stages; k++) {
                if (!strcmp(p->stages[k].cojob, cojob)) {
                    put_block(r, stream, &p->stages[k], y + 2, max);
                }
            }
        }
        y += 30;
    }
    fputs("</svg>\n", stream);
}

/* Mean use of 'port' over the samples in [from, to), in tenths, 0 if none. */
static int
mean_tenths(const struct report_policy *p, size_t port, double from,
            double to)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < p->n_samples; i++) {
        if (p->sample_times[i] >= from && p->sample_times[i] < to) {
            sum += p->use[i * p->n_ports + port];
            n++;
        }
    }
    return n ? (int) lround(10 * fmin(1, sum / n)) : 0;
}

/* One row of the heat map; neighbours of the same colour become one cell. */
static void
put_heat_row(const struct report_policy *p, FILE *stream, size_t port,
             double y, double max, int columns)
{
    int begun = 0, tenths = 0;

    for (int column = 0; column <= columns; column++) {
        int now = column < columns
                  ? mean_tenths(p, port, max * column / columns,
                                max * (column + 1) / columns) : 0;

        if (now != tenths) {
            if (tenths) {
                fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                        "height=\"11\" style=\"fill:var(--heat);"
                        "fill-opacity:%.1f\"/>\n",
                        SVG_LEFT + (double) SVG_PLOT * begun / columns, y,
                        (double) SVG_PLOT * (column - begun) / columns,
                        tenths / 10.0);
            }
            begun = column;
            tenths = now;
        }
    }
}

static void
put_heat_policy(const struct report_policy *p, FILE *stream, double y,
                double max)
{
    double span = p->n_samples
                  ? p->sample_times[p->n_samples - 1] : 0;
    int columns = MAX_COLUMNS;

    /* A column without a sample would look like an idle link. */
    if (span > 0 && p->n_samples * max / span < 2 * columns) {
        columns = fmax(1, p->n_samples * max / span / 2);
    }
    svg_put_time_axis(stream, max, y, y + 13 * p->n_ports);
    for (size_t i = 0; i < p->n_ports; i++, y += 13) {
        svg_put_label(stream, SVG_LEFT - 8, y + 10, "end", p->ports[i]);
        put_heat_row(p, stream, i, y + 1, max, columns);
    }
}

void
svg_put_heat(const struct report *r, FILE *stream)
{
    double max = svg_last_time(r);
    double height = 30;
    double y = 24;

    for (size_t i = 0; i < r->n_policies; i++) {
        height += 50 + 13 * r->policies[i]->n_ports;
    }
    svg_begin(stream, height, "use of each link over time");
    for (int i = 1; i <= 10; i++) {
        fprintf(stream, "<rect x=\"%d\" y=\"2\" width=\"16\" height=\"11\" "
                "style=\"fill:var(--heat);fill-opacity:%.1f\"/>\n",
                SVG_LEFT + 30 + 16 * i, i / 10.0);
    }
    svg_put_label(stream, SVG_LEFT + 40, 12, "end", "0 %");
    svg_put_label(stream, SVG_LEFT + 212, 12, "start", "100 %");
    for (size_t i = 0; i < r->n_policies; i++) {
        svg_put_label(stream, 0, y + 14, "start", r->policies[i]->name);
        put_heat_policy(r->policies[i], stream, y + 20, max);
        y += 50 + 13 * r->policies[i]->n_ports;
    }
    fputs("</svg>\n", stream);
}

static double
largest_loss(const struct report *r)
{
    double largest = 1e-3;

    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        for (size_t j = 0; j < p->n_jobs; j++) {
            for (size_t k = 0; k < p->jobs[j].n_points; k++) {
                double loss = p->jobs[j].points[k].loss;

                largest = isfinite(loss) ? fmax(largest, loss) : largest;
            }
        }
    }
    return largest;
}

static void
put_line(const struct report *r, FILE *stream, const struct report_job *job,
         double y, double height, double max_time, double max_loss)
{
    size_t step = job->n_points / MAX_POINTS + 1;

    fprintf(stream, "<polyline class=\"p\" style=\"stroke:var(--c%d)\" "
            "points=\"", search_index(r, job->cojob) % SVG_N_COLOURS);
    for (size_t i = 0; i < job->n_points; i += step) {
        const struct report_point *p = &job->points[i];

        if (isfinite(p->loss)) {
            fprintf(stream, "%.1f,%.1f ",
                    SVG_LEFT + SVG_PLOT * p->time / max_time,
                    y + height * (1 - fmin(1, p->loss / max_loss)));
        }
    }
    fputs("\"><title>", stream);
    svg_put_text(stream, job->cojob);
    putc('/', stream);
    svg_put_text(stream, job->job);
    fputs("</title></polyline>\n", stream);
}

/* Which colour is which search, at height 'y'. */
static void
put_search_legend(const struct report *r, FILE *stream, double y)
{
    const struct report_policy *p = r->n_policies ? r->policies[0] : NULL;
    double x = SVG_LEFT;

    for (size_t i = 0; p && i < p->n_searches; i++) {
        const char *name = p->searches[i].cojob;

        fprintf(stream, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                "y2=\"%.1f\" stroke-width=\"3\" style=\"stroke:var(--c%d)\""
                "/>\n", x, x + 12, y, y,
                search_index(r, name) % SVG_N_COLOURS);
        svg_put_label(stream, x + 16, y + 4, "start", name);
        x += 40 + 7 * strlen(name);
    }
}

void
svg_put_loss(const struct report *r, FILE *stream)
{
    double max_time = svg_last_time(r), max_loss = largest_loss(r);
    const double height = 150;
    double y = 24;

    svg_begin(stream, 24 + 200.0 * r->n_policies,
              "loss of each job over time");
    put_search_legend(r, stream, 8);
    for (size_t i = 0; i < r->n_policies; i++, y += 200) {
        const struct report_policy *p = r->policies[i];
        char text[32];

        svg_put_label(stream, 0, y + 14, "start", p->name);
        svg_put_time_axis(stream, max_time, y + 20, y + 20 + height);
        snprintf(text, sizeof text, "%.3g", max_loss);
        svg_put_label(stream, SVG_LEFT - 8, y + 26, "end", text);
        svg_put_label(stream, SVG_LEFT - 8, y + 20 + height, "end", "0");
        for (size_t j = 0; j < p->n_jobs; j++) {
            put_line(r, stream, &p->jobs[j], y + 20, height, max_time,
                     max_loss);
        }
    }
    fputs("</svg>\n", stream);
}
