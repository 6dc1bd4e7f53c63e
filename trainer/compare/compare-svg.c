/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/compare/compare.h"

#define WIDTH 760
#define HEIGHT 420
#define LEFT 60
#define RIGHT 200               /* Space for the names. */
#define TOP 20
#define BOTTOM 50
#define N_TICKS 5

static const char *const colours[] = {
    "#1b6ca8", "#d1495b", "#2e933c", "#8e5aa8", "#e08e0b", "#4d4d4d",
    "#00a6a6", "#a0522d",
};

struct plot {
    FILE *file;
    bool accuracy;              /* Instead of the loss. */
    double max_s, least, most;
};

static double
value_of(const struct plot *p, const struct compare_point *point)
{
    return p->accuracy ? point->accuracy : point->loss;
}

static double
x_of(const struct plot *p, double seconds)
{
    return LEFT + seconds / p->max_s * (WIDTH - LEFT - RIGHT);
}

static double
y_of(const struct plot *p, double value)
{
    return HEIGHT - BOTTOM - (value - p->least)
           / (p->most - p->least) * (HEIGHT - TOP - BOTTOM);
}

static void
find_ranges(struct plot *p, const struct compare_spec *spec,
            const struct compare_curve *curves)
{
    p->max_s = 1e-3;
    p->least = INFINITY;
    p->most = -INFINITY;
    for (size_t i = 0; i < spec->n_schemes; i++) {
        for (size_t j = 0; j < curves[i].n_points; j++) {
            const struct compare_point *point = &curves[i].points[j];

            p->max_s = fmax(p->max_s, point->seconds);
            p->least = fmin(p->least, value_of(p, point));
            p->most = fmax(p->most, value_of(p, point));
        }
    }
    if (!(p->most > p->least)) {
        p->least = 0;
        p->most = 1;
    }
}

static void
draw_axes(const struct plot *p)
{
    for (int i = 0; i <= N_TICKS; i++) {
        double s = p->max_s * i / N_TICKS;
        double value = p->least + (p->most - p->least) * i / N_TICKS;

        fprintf(p->file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g"
                "</text>\n", LEFT, y_of(p, value), WIDTH - RIGHT, LEFT - 6,
                y_of(p, value) + 4, value, x_of(p, s), HEIGHT - BOTTOM + 18,
                s);
    }
    fprintf(p->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">seconds"
            "</text>\n<text x=\"14\" y=\"%d\">%s</text>\n",
            (WIDTH - RIGHT + LEFT) / 2, HEIGHT - 12, TOP - 6,
            p->accuracy ? "accuracy" : "loss");
}

static void
draw_curve(const struct plot *p, const struct compare_curve *curve,
           const char *scheme, size_t index)
{
    const char *colour = colours[index % (sizeof colours / sizeof colours[0])];
    int y = TOP + 14 + 18 * index;

    fprintf(p->file, "<polyline fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"1.6\" points=\"", colour);
    for (size_t i = 0; i < curve->n_points; i++) {
        fprintf(p->file, "%.1f,%.1f ", x_of(p, curve->points[i].seconds),
                y_of(p, value_of(p, &curve->points[i])));
    }
    fprintf(p->file, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n",
            WIDTH - RIGHT + 12, y, colour, scheme);
}

/* Names of schemes contain no special characters of XML. */
char *
compare_write_svg(const struct compare_spec *spec,
                  const struct compare_curve *curves, bool accuracy,
                  const char *file)
{
    struct plot p = { .file = fopen(file, "w"), .accuracy = accuracy };

    if (!p.file) {
        return message("%s: %s", file, strerror(errno));
    }
    find_ranges(&p, spec, curves);
    fprintf(p.file, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" "
            "fill=\"#fff\"/>\n", WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(&p);
    for (size_t i = 0; i < spec->n_schemes; i++) {
        draw_curve(&p, &curves[i], spec->schemes[i], i);
    }
    fputs("</svg>\n", p.file);
    return fclose(p.file) ? message("%s: %s", file, strerror(errno)) : NULL;
}
