/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdlib.h>

#include "reporting/report-private.h"
#include "reporting/report-svg-parts.h"
#include "reporting/report-svg.h"

#define HEIGHT 180
#define TOP 24
#define MAX_STEPS 400           /* Of a line. */

/* The longest and, in '*minp', the shortest time of any policy.  No time is
 * shorter than a thousandth of the longest one in the picture. */
static double
time_range(const struct report *r, double *minp)
{
    double max = 1e-6;
    double min = INFINITY;

    for (size_t i = 0; i < r->n_policies; i++) {
        size_t n;
        double *times = report_stage_times(r->policies[i], &n);

        if (n) {
            max = fmax(max, times[n - 1]);
            min = fmin(min, times[0]);
        }
        free(times);
    }
    *minp = fmax(fmin(min, max / 10), max / 1000);
    return max;
}

/* Where 'time' is on an axis on which each decade is as wide. */
static double
time_x(double time, double min, double max)
{
    double share = log(fmax(time, min) / min) / log(max / min);

    return SVG_LEFT + SVG_PLOT * fmin(1, share);
}

static void
put_axes(FILE *stream, double min, double max)
{
    for (int quarter = 0; quarter <= 4; quarter++) {
        double y = TOP + HEIGHT * (1 - quarter / 4.0);

        fprintf(stream, "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                "y2=\"%.1f\"/><text class=\"s\" x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%d %%</text>\n", SVG_LEFT,
                SVG_LEFT + SVG_PLOT, y, y, SVG_LEFT - 8, y + 4, quarter * 25);
    }
    for (double time = pow(10, floor(log10(min))); time <= max; time *= 10) {
        for (int i = 1; i <= 5; i += i == 2 ? 3 : 1) {
            double x = time_x(i * time, min, max);

            if (i * time >= min && i * time <= max) {
                fprintf(stream, "<line class=\"g\" x1=\"%.1f\" x2=\"%.1f\" "
                        "y1=\"%d\" y2=\"%d\"/><text class=\"s\" "
                        "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g"
                        "</text>\n", x, x, TOP, TOP + HEIGHT, x,
                        TOP + HEIGHT + 14, i * time);
            }
        }
    }
    fprintf(stream, "<text class=\"s\" x=\"%d\" y=\"%d\">s</text>\n",
            SVG_WIDTH - SVG_RIGHT + 12, TOP + HEIGHT + 14);
}

/* A staircase, of which only some steps are drawn if there are many. */
static void
put_steps(FILE *stream, const struct report_policy *p, int colour,
          double min, double max)
{
    size_t n;
    double *times = report_stage_times(p, &n);
    double y = TOP + HEIGHT;

    fprintf(stream, "<polyline class=\"p\" style=\"stroke:var(--c%d)\" "
            "points=\"%d,%.1f ", colour, SVG_LEFT, y);
    for (size_t i = n / MAX_STEPS; i < n; i += n / MAX_STEPS + 1) {
        double x = time_x(times[i], min, max);

        fprintf(stream, "%.1f,%.1f ", x, y);
        y = TOP + HEIGHT * (1 - (i + 1.0) / n);
        fprintf(stream, "%.1f,%.1f ", x, y);
    }
    if (n) {
        fprintf(stream, "%.1f,%d ", time_x(times[n - 1], min, max), TOP);
    }
    fputs("\"><title>", stream);
    svg_put_text(stream, p->name);
    fputs("</title></polyline>\n", stream);
    free(times);
}

void
svg_put_cdf(const struct report *r, FILE *stream)
{
    double min;
    double max = time_range(r, &min);

    svg_begin(stream, TOP + HEIGHT + 24,
              "share of stages that end within a time");
    svg_put_legend(r, stream, 4);
    put_axes(stream, min, max);
    for (size_t i = 0; i < r->n_policies; i++) {
        put_steps(stream, r->policies[i], i % SVG_N_COLOURS, min, max);
    }
    fputs("</svg>\n", stream);
}
