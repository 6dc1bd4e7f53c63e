/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORT_SVG_PARTS_H
#define REPORT_SVG_PARTS_H 1

/* What the pictures of a report have in common: their size, and a time axis
 * from LEFT that is PLOT wide. */

#include <stdio.h>

#define SVG_WIDTH 720
#define SVG_LEFT 120            /* Where the time axis begins... */
#define SVG_RIGHT 60            /* ...and what it leaves on the right. */
#define SVG_PLOT (SVG_WIDTH - SVG_LEFT - SVG_RIGHT)
#define SVG_N_COLOURS 8

struct report;

void svg_begin(FILE *, double height, const char *label);
void svg_put_label(FILE *, double x, double y, const char *anchor,
                   const char *text);

/* A horizontal axis of seconds from 0 to 'max', with lines from 'top' to
 * 'bottom' and its numbers below. */
void svg_put_time_axis(FILE *, double max, double top, double bottom);

/* The names of the policies, each with its colour, at height 'y'. */
void svg_put_legend(const struct report *, FILE *, double y);

/* The latest time that any policy's run saw. */
double svg_last_time(const struct report *);

#endif /* reporting/report-svg-parts.h */
