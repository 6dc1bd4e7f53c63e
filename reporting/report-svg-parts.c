/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/report-svg-parts.h"

#include <math.h>
#include <string.h>

#include "reporting/report-svg.h"
#include "reporting/report.h"

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

void
svg_begin(FILE *stream, double height, const char *label)
{
    fprintf(stream, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" "
            "aria-label=\"%s\">\n", SVG_WIDTH, height, label);
}

void
svg_put_label(FILE *stream, double x, double y, const char *anchor,
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
void
svg_put_time_axis(FILE *stream, double max, double top, double bottom)
{
    double step = axis_step(max);

    for (int i = 0; i * step <= max; i++) {
        double x = SVG_LEFT + SVG_PLOT * i * step / max;

        fprintf(stream, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" "
                "y1=\"%.1f\" y2=\"%.1f\"/><text class=\"s\" x=\"%.1f\" "
                "y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                x, x, top, bottom, x, bottom + 14, i * step);
    }
    fprintf(stream, "<text class=\"s\" x=\"%d\" y=\"%.1f\">s</text>\n",
            SVG_WIDTH - SVG_RIGHT + 12, bottom + 14);
}

/* The latest time that any policy's run saw. */
double
svg_last_time(const struct report *r)
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

/* The names of the policies, each with its colour, at height 'y'. */
void
svg_put_legend(const struct report *r, FILE *stream, double y)
{
    double x = SVG_LEFT;

    for (size_t i = 0; i < r->n_policies; i++) {
        const char *name = r->policies[i]->name;

        fprintf(stream, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" "
                "height=\"10\" style=\"fill:var(--c%d)\"/>\n",
                x, y, (int) (i % SVG_N_COLOURS));
        svg_put_label(stream, x + 15, y + 10, "start", name);
        x += 35 + 7 * strlen(name);
    }
}
