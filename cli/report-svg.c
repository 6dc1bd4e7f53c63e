/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/report-svg.h"

#include <math.h>
#include <string.h>

#include "cli/report.h"

#define WIDTH 720
#define LEFT 120                /* Where the time axis begins... */
#define RIGHT 60                /* ...and what it leaves on the right. */
#define PLOT (WIDTH - LEFT - RIGHT)
#define N_COLOURS 8
#define MAX_COLUMNS 200         /* Of the heat map. */
#define MAX_POINTS 200          /* Of a line. */

void
svg_put_text(FILE *stream, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': fputs("&amp;", stream); break;
        case '<': fputs("&lt;", stream); break;
        case '>': fputs("&gt;", stream); break;
        case '"': fputs("&quot;", stream); break;
        default: putc(*text, stream);
        }
    }
}

static void
begin(FILE *stream, double height, const char *label)
{
    fprintf(stream, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" "
            "aria-label=\"%s\">\n", WIDTH, height, label);
}

static void
put_label(FILE *stream, double x, double y, const char *anchor,
          const char *text)
{
    fprintf(stream, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
            anchor);
    svg_put_text(stream, text);
    fputs("</text>\n", stream);
}

/* Returns a step of 1, 2 or 5 times a power of ten that cuts 'range' into at
 * most eight parts. */
static double
axis_step(double range)
{
    double step = pow(10, floor(log10(fmax(range, 1e-6) / 8)));

    if (step * 8 >= range) {
        return step;
    } else if (step * 16 >= range) {
        return step * 2;
    } else if (step * 40 >= range) {
        return step * 5;
    }
    return step * 10;
}

/* A horizontal axis of seconds from 0 to 'max', with lines from 'top' to
 * 'bottom' and its numbers below. */
static void
put_time_axis(FILE *stream, double max, double top, double bottom)
{
    double step = axis_step(max);

    for (int i = 0; i * step <= max; i++) {
        double x = LEFT + PLOT * i * step / max;

        fprintf(stream, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" "
                "y1=\"%.1f\" y2=\"%.1f\"/><text class=\"s\" x=\"%.1f\" "
                "y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                x, x, top, bottom, x, bottom + 14, i * step);
    }
    fprintf(stream, "<text class=\"s\" x=\"%d\" y=\"%.1f\">s</text>\n",
            WIDTH - RIGHT + 12, bottom + 14);
}

/* The latest time that any policy's run saw. */
static double
last_time(const struct report *r)
{
    double last = 1e-3;

    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        for (size_t j = 0; j < p->n_stages; j++) {
            last = fmax(last, fmax(p->stages[j].start, p->stages[j].end));
        }
        for (size_t j = 0; j < p->n_searches; j++) {
            last = fmax(last, p->searches[j].end);
        }
        if (p->n_samples) {
            last = fmax(last, p->sample_times[p->n_samples - 1]);
        }
    }
    return last;
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

/* The names of the policies, each with its colour, at height 'y'. */
static void
put_legend(const struct report *r, FILE *stream, double y)
{
    double x = LEFT;

    for (size_t i = 0; i < r->n_policies; i++) {
        const char *name = r->policies[i]->name;

        fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" "
                "height=\"10\" style=\"fill:var(--c%d)\"/>\n",
                x, y, (int) (i % N_COLOURS));
        put_label(stream, x + 15, y + 10, "start", name);
        x += 35 + 7 * strlen(name);
    }
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
    put_label(stream, LEFT - 8, y + 8 * r->n_policies + 2, "end", label);
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_stage *s = find_stage(r->policies[i],
                                                  stage->cojob, stage->rung);
        double sct = s ? s->end - s->start : NAN;

        if (!isnan(sct)) {
            fprintf(stream, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
                    "height=\"13\" rx=\"2\" style=\"fill:var(--c%d)\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\">%.1f</text>\n",
                    LEFT, y, PLOT * sct / max, (int) (i % N_COLOURS),
                    LEFT + PLOT * sct / max + 4, y + 11, sct);
        } else {
            put_label(stream, LEFT + 4, y + 11, "start", "did not end");
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
    double y = 24;

    /* A run that did not complete may lack stages that another one has. */
    for (size_t i = 0; i < r->n_policies; i++) {
        if (!most || r->policies[i]->n_stages > most->n_stages) {
            most = r->policies[i];
        }
    }
    begin(stream, 48 + group * (most ? most->n_stages : 0),
          "completion time of each stage under each policy");
    put_legend(r, stream, 4);
    put_time_axis(stream, max, y, y + group * (most ? most->n_stages : 0));
    for (size_t i = 0; most && i < most->n_stages; i++, y += group) {
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
    double x = LEFT + PLOT * s->start / max;
    double width = fmax(1, PLOT * (end - s->start) / max - 1);

    fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"18\" rx=\"2\" style=\"fill:var(--c%d);fill-opacity:"
            "%.2f\"><title>", x, y, width,
            search_index(r, s->cojob) % N_COLOURS,
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
    double max = last_time(r);
    double height = 0;
    double y = 0;

    for (size_t i = 0; i < r->n_policies; i++) {
        height += 50 + 22 * r->policies[i]->n_searches;
    }
    begin(stream, height, "stages of each search over time");
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        put_label(stream, 0, y + 14, "start", p->name);
        y += 20;
        put_time_axis(stream, max, y, y + 22 * p->n_searches);
        for (size_t j = 0; j < p->n_searches; j++, y += 22) {
            const char *cojob = p->searches[j].cojob;

            put_label(stream, LEFT - 8, y + 15, "end", cojob);
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
                        LEFT + (double) PLOT * begun / columns, y,
                        (double) PLOT * (column - begun) / columns,
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
    put_time_axis(stream, max, y, y + 13 * p->n_ports);
    for (size_t i = 0; i < p->n_ports; i++, y += 13) {
        put_label(stream, LEFT - 8, y + 10, "end", p->ports[i]);
        put_heat_row(p, stream, i, y + 1, max, columns);
    }
}

void
svg_put_heat(const struct report *r, FILE *stream)
{
    double max = last_time(r);
    double height = 30;
    double y = 24;

    for (size_t i = 0; i < r->n_policies; i++) {
        height += 50 + 13 * r->policies[i]->n_ports;
    }
    begin(stream, height, "use of each link over time");
    for (int i = 1; i <= 10; i++) {
        fprintf(stream, "<rect x=\"%d\" y=\"2\" width=\"16\" height=\"11\" "
                "style=\"fill:var(--heat);fill-opacity:%.1f\"/>\n",
                LEFT + 30 + 16 * i, i / 10.0);
    }
    put_label(stream, LEFT + 40, 12, "end", "0 %");
    put_label(stream, LEFT + 212, 12, "start", "100 %");
    for (size_t i = 0; i < r->n_policies; i++) {
        put_label(stream, 0, y + 14, "start", r->policies[i]->name);
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
            "points=\"", search_index(r, job->cojob) % N_COLOURS);
    for (size_t i = 0; i < job->n_points; i += step) {
        const struct report_point *p = &job->points[i];

        if (isfinite(p->loss)) {
            fprintf(stream, "%.1f,%.1f ", LEFT + PLOT * p->time / max_time,
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
    double x = LEFT;

    for (size_t i = 0; p && i < p->n_searches; i++) {
        const char *name = p->searches[i].cojob;

        fprintf(stream, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                "y2=\"%.1f\" stroke-width=\"3\" style=\"stroke:var(--c%d)\""
                "/>\n", x, x + 12, y, y, search_index(r, name) % N_COLOURS);
        put_label(stream, x + 16, y + 4, "start", name);
        x += 40 + 7 * strlen(name);
    }
}

void
svg_put_loss(const struct report *r, FILE *stream)
{
    double max_time = last_time(r), max_loss = largest_loss(r);
    const double height = 150;
    double y = 24;

    begin(stream, 24 + 200.0 * r->n_policies, "loss of each job over time");
    put_search_legend(r, stream, 8);
    for (size_t i = 0; i < r->n_policies; i++, y += 200) {
        const struct report_policy *p = r->policies[i];
        char text[32];

        put_label(stream, 0, y + 14, "start", p->name);
        put_time_axis(stream, max_time, y + 20, y + 20 + height);
        snprintf(text, sizeof text, "%.3g", max_loss);
        put_label(stream, LEFT - 8, y + 26, "end", text);
        put_label(stream, LEFT - 8, y + 20 + height, "end", "0");
        for (size_t j = 0; j < p->n_jobs; j++) {
            put_line(r, stream, &p->jobs[j], y + 20, height, max_time,
                     max_loss);
        }
    }
    fputs("</svg>\n", stream);
}
