/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REPORT_SVG_H
#define REPORT_SVG_H 1

/* The pictures of a report, as inline SVG that takes its colours from the
 * page's style sheet (report-html.c). */

#include <stdio.h>

/* Of stages and searches that a picture shows. */
#define REPORT_MAX_ROWS 48

struct report;

/* 'text' with what HTML and SVG treat specially escaped. */
void svg_put_text(FILE *, const char *text);

void svg_put_bars(const struct report *, FILE *);
void svg_put_cdf(const struct report *, FILE *);
void svg_put_timeline(const struct report *, FILE *);
void svg_put_heat(const struct report *, FILE *);
void svg_put_loss(const struct report *, FILE *);

#endif /* reporting/report-svg.h */
