/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/compare/compare.h"
#include "base/memory.h"

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
    double max_s, min_loss, max_loss;
};

static double
x_of(const struct plot *p, double seconds)
{
    return LEFT + seconds / p->max_s * (WIDTH - LEFT - RIGHT);
}

static double
y_of(const struct plot *p, double loss)
{
    return HEIGHT - BOTTOM - (loss - p->min_loss)
           / (p->max_loss - p->min_loss) * (HEIGHT - TOP - BOTTOM);
}

static void
find_ranges(struct plot *p, const struct compare_spec *spec,
            const struct compare_curve *curves)
{
    p->max_s = 1e-3;
    p->min_loss = INFINITY;
    p->max_loss = -INFINITY;
    for (size_t i = 0; i < spec->n_schemes; i++) {
        for (size_t j = 0; j < curves[i].n_points; j++) {
            const struct compare_point *point = &curves[i].points[j];

            p->max_s = fmax(p->max_s, point->seconds);
            p->min_loss = fmin(p->min_loss, point->loss);
            p->max_loss = fmax(p->max_loss, point->loss);
        }
    }
    if (!(p->max_loss > p->min_loss)) {
        p->min_loss = 0;
        p->max_loss = 1;
    }
}

static void
draw_axes(const struct plot *p)
{
    for (int i = 0; i <= N_TICKS; i++) {
        double s = p->max_s * i / N_TICKS;
        double loss = p->min_loss
                      + (p->max_loss - p->min_loss) * i / N_TICKS;

        fprintf(p->file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g"
                "</text>\n", LEFT, y_of(p, loss), WIDTH - RIGHT, LEFT - 6,
                y_of(p, loss) + 4, loss, x_of(p, s), HEIGHT - BOTTOM + 18,
                s);
    }
    fprintf(p->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">seconds"
            "</text>\n<text x=\"14\" y=\"%d\">loss</text>\n",
            (WIDTH - RIGHT + LEFT) / 2, HEIGHT - 12, TOP - 6);
}

static void
draw_curve(const struct plot *p, const struct compare_curve *curve,
           const char *scheme, size_t index)
{
    const char *colour = colours[index % (sizeof colours
                                          / sizeof colours[0])];
    int y = TOP + 14 + 18 * index;

    fprintf(p->file, "<polyline fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"1.6\" points=\"", colour);
    for (size_t i = 0; i < curve->n_points; i++) {
        fprintf(p->file, "%.1f,%.1f ", x_of(p, curve->points[i].seconds),
                y_of(p, curve->points[i].loss));
    }
    fprintf(p->file, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n",
            WIDTH - RIGHT + 12, y, colour, scheme);
}

/* Names of schemes contain no special characters of XML. */
char *
compare_write_svg(const struct compare_spec *spec,
                  const struct compare_curve *curves, const char *file)
{
    struct plot p = { .file = fopen(file, "w") };

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
