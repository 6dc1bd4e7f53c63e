/* SPDX-License-Identifier: Apache-2.0 */

/* Writes a report as a page: tables, which need no JavaScript, and JSON, from
 * which ui/report.js draws charts. */

#include "reporting/report.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/stage-name.h"
#include "reporting/ui-file.h"

#define MAX_ROWS 48             /* Rows of a table of stages. */

void
report_put_text(FILE *stream, const char *text)
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
put_element(FILE *stream, const char *tag, const char *text)
{
    fprintf(stream, "<%s>", tag);
    report_put_text(stream, text);
    fprintf(stream, "</%s>\n", tag);
}

/* Puts a cell with "-" for NAN.  'label' is what a phone shows before it. */
static void
put_cell(FILE *stream, const char *label, double value, int decimals,
         const char *unit)
{
    fputs("<td data-label=\"", stream);
    report_put_text(stream, label);
    if (isnan(value)) {
        fputs("\">–</td>", stream);
    } else {
        fprintf(stream, "\">%.*f%s</td>", decimals, value, unit);
    }
}

static void __attribute__((__format__(__printf__, 2, 3)))
put_row_name(FILE *stream, const char *format, ...)
{
    va_list args;
    char *name;

    va_start(args, format);
    if (vasprintf(&name, format, args) < 0) {
        abort();
    }
    va_end(args);
    fputs("<tr><th scope=\"row\">", stream);
    report_put_text(stream, name);
    fputs("</th>", stream);
    free(name);
}

/* Adds the head of a column. */
static void
put_head(FILE *stream, const char *name, const char *suffix)
{
    fputs("<th scope=\"col\">", stream);
    report_put_text(stream, name);
    fprintf(stream, "%s</th>", suffix);
}

/* Begins a table with the first columns 'names', null-terminated. */
static void
begin_table(FILE *stream, const char *class, const char *const names[])
{
    fprintf(stream, "<table class=\"%s\"><thead><tr>", class);
    for (; *names; names++) {
        put_head(stream, *names, "");
    }
}

static void
begin_rows(FILE *stream)
{
    fputs("</tr></thead>\n<tbody>\n", stream);
}

static void
end_table(FILE *stream)
{
    fputs("</tbody></table>\n", stream);
}

static void
put_comparison(const struct report *r, FILE *stream)
{
    size_t n = r->n_figures ? 0 : report_n_columns;

    fputs("<div class=\"compare\">", stream);
    begin_table(stream, "policies", (const char *[]) { "policy", NULL });
    for (size_t i = 0; i < r->n_figures; i++) {
        put_head(stream, r->figures[i].title, "");
    }
    for (size_t i = 0; i < n; i++) {
        put_head(stream, report_columns[i].title, "");
    }
    begin_rows(stream);
    for (size_t i = 0; i < r->n_policies; i++) {
        put_row_name(stream, "%s", r->policies[i]->name);
        for (size_t k = 0; k < r->n_figures; k++) {
            put_cell(stream, r->figures[k].title, r->policies[i]->figures[k],
                     r->figures[k].decimals, "");
        }
        for (size_t k = 0; k < n; k++) {
            const struct report_column *c = &report_columns[k];

            put_cell(stream, c->title, report_column_value(c, r->policies[i]),
                     c->decimals, c->unit);
        }
        fputs("</tr>\n", stream);
    }
    end_table(stream);
    fputs("</div>\n<p class=\"note\">", stream);
    report_put_text(stream, r->legend);
    fputs("</p>\n", stream);
}

/* Puts each line of 'text' into an element 'tag'; frees 'text'. */
static void
put_lines(FILE *stream, const char *tag, char *text)
{
    char *next = text;
    char *line;

    while ((line = strsep(&next, "\n"))) {
        if (*line) {
            put_element(stream, tag, line);
        }
    }
    free(text);
}

/* Puts each line that 'put' prints into a paragraph. */
static void
put_paragraphs(const struct report *r, FILE *stream,
               void (*put)(const struct report *, FILE *))
{
    char *text;
    size_t size;
    FILE *lines = open_memstream(&text, &size);

    assert(lines);
    put(r, lines);
    fclose(lines);
    put_lines(stream, "p", text);
}

/* Puts the remarks on all policies as a list, then the conclusion. */
static void
put_remarks(const struct report *r, FILE *stream)
{
    char *text;
    size_t size;
    FILE *lines = open_memstream(&text, &size);

    assert(lines);
    for (size_t i = 0; i < r->n_policies; i++) {
        report_put_remarks(r->policies[i], lines);
    }
    fclose(lines);
    if (*text) {
        fputs("<ul class=\"alarms\">\n", stream);
        put_lines(stream, "li", text);
        fputs("</ul>\n", stream);
    } else {
        free(text);
    }
    put_paragraphs(r, stream, report_put_conclusion);
}

/* Puts the completion time of each stage, by policy. */
static void
put_stage_times(const struct report *r, FILE *stream)
{
    const struct report_policy *most = NULL;

    /* A run that did not complete may lack stages that another one has. */
    for (size_t i = 0; i < r->n_policies; i++) {
        if (!most || r->policies[i]->n_stages > most->n_stages) {
            most = r->policies[i];
        }
    }
    begin_table(stream, "numbers", (const char *[]) { "stage", NULL });
    for (size_t i = 0; i < r->n_policies; i++) {
        put_head(stream, r->policies[i]->name, "");
    }
    begin_rows(stream);
    for (size_t i = 0; most && i < most->n_stages && i < MAX_ROWS; i++) {
        const struct report_stage *stage = &most->stages[i];

        put_row_name(stream, STAGE_NAME_FMT, stage->cojob, stage->rung);
        for (size_t k = 0; k < r->n_policies; k++) {
            const struct report_stage *s = report_find_stage(
                r->policies[k], stage->cojob, stage->rung);

            put_cell(stream, r->policies[k]->name,
                     s ? s->end - s->start : NAN, 2, " s");
        }
        fputs("</tr>\n", stream);
    }
    end_table(stream);
}

/* Puts the start and the end of each stage, one row for each policy. */
static void
put_stage_spans(const struct report *r, FILE *stream)
{
    static const char *const names[] = { "stage", "policy", "jobs",
                                         "start", "end",    NULL };

    begin_table(stream, "numbers", names);
    begin_rows(stream);
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        for (size_t k = 0; k < p->n_stages && k < MAX_ROWS; k++) {
            const struct report_stage *s = &p->stages[k];

            put_row_name(stream, STAGE_NAME_FMT, s->cojob, s->rung);
            put_element(stream, "td", p->name);
            put_cell(stream, "jobs", s->n_jobs, 0, "");
            put_cell(stream, "start", s->start, 2, " s");
            put_cell(stream, "end", s->end, 2, " s");
            fputs("</tr>\n", stream);
        }
    }
    end_table(stream);
}

/* Puts the mean and maximum use of each port, by policy. */
static void
put_use(const struct report *r, FILE *stream)
{
    begin_table(stream, "numbers", (const char *[]) { "port", NULL });
    for (size_t i = 0; i < r->n_policies; i++) {
        put_head(stream, r->policies[i]->name, ", mean");
        put_head(stream, r->policies[i]->name, ", max");
    }
    begin_rows(stream);
    for (size_t port = 0; port < r->policies[0]->n_ports; port++) {
        put_row_name(stream, "%s", r->policies[0]->ports[port]);
        for (size_t i = 0; i < r->n_policies; i++) {
            const struct report_policy *p = r->policies[i];
            double max, mean = report_port_use(p, port, &max);

            put_cell(stream, p->name, 100 * mean, 1, " %");
            put_cell(stream, p->name, 100 * max, 1, " %");
        }
        fputs("</tr>\n", stream);
    }
    end_table(stream);
}

/* Puts the last loss and accuracy of each job, one row for each policy. */
static void
put_jobs(const struct report *r, FILE *stream)
{
    static const char *const names[] = {
        "job", "policy", "iterations", "loss", "accuracy", "outcome", NULL,
    };

    begin_table(stream, "numbers", names);
    begin_rows(stream);
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = r->policies[i];

        for (size_t k = 0; k < p->n_jobs; k++) {
            const struct report_job *j = &p->jobs[k];

            put_row_name(stream, "%s/%s", j->cojob, j->job);
            put_element(stream, "td", p->name);
            put_cell(stream, "iterations", j->iteration, 0, "");
            put_cell(stream, "loss", j->loss, 4, "");
            put_cell(stream, "accuracy", j->accuracy, 3, "");
            put_element(stream, "td", j->outcome ? j->outcome : "–");
            fputs("</tr>\n", stream);
        }
    }
    end_table(stream);
}

/* Puts a section for the picture 'id'.  Without JavaScript the numbers are
 * open, and a section without numbers is hidden.  'class' may be empty. */
static void
put_section(const struct report *r, FILE *stream, const char *class,
            const char *id, const char *title, const char *caption,
            void (*put_numbers)(const struct report *, FILE *))
{
    fprintf(stream, "<section class=\"%s\" aria-labelledby=\"%s-title\"%s>\n"
            "<h2 id=\"%s-title\">%s</h2>\n<div id=\"%s\"%s></div>\n"
            "<p class=\"note\">%s</p>\n", class, id,
            put_numbers ? "" : " hidden", id, title, id,
            *class ? " class=\"columns\"" : "", caption);
    if (put_numbers) {
        fprintf(stream, "<details open><summary>As a table</summary>\n"
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                "aria-label=\"%s\">\n", title);
        put_numbers(r, stream);
        fputs("</div></details>\n", stream);
    }
    fputs("</section>\n", stream);
}

/* Notes that the page is incomplete, if it is. */
static void
put_limit(const struct report *r, FILE *stream)
{
    for (size_t i = 0; i < r->n_policies; i++) {
        if (r->policies[i]->n_stages > MAX_ROWS) {
            fprintf(stream, "<p class=\"note\">Charts and tables with a row "
                    "for each stage or search have the first %d.</p>\n",
                    MAX_ROWS);
            return;
        }
    }
}

static bool
has_loss(const struct report *r)
{
    for (size_t i = 0; i < r->n_policies; i++) {
        for (size_t j = 0; j < r->policies[i]->n_jobs; j++) {
            if (r->policies[i]->jobs[j].n_points) {
                return true;
            }
        }
    }
    return false;
}

static void
put_title(const struct report *r, FILE *stream)
{
    report_put_text(stream, r->title);
}

static void
put_content(const struct report *r, FILE *stream)
{
    time_t when = r->when;
    struct tm tm;
    char date[64];

    gmtime_r(&when, &tm);
    strftime(date, sizeof date, " – %Y-%m-%d %H:%M UTC", &tm);

    fputs("<header>\n", stream);
    put_element(stream, "h1", r->title);
    fputs("<p class=\"note\">", stream);
    report_put_text(stream, r->setting ? r->setting : r->kind);
    fprintf(stream, "%s</p>\n</header>\n<main>\n", date);
    if (r->description) {
        put_element(stream, "p", r->description);
    }
    fputs("<div class=\"result\">\n", stream);
    put_paragraphs(r, stream, report_put_headline);
    fputs("</div>\n", stream);
    put_comparison(r, stream);
    put_paragraphs(r, stream, report_put_queues);
    put_remarks(r, stream);
    put_limit(r, stream);
    fputs("<noscript><p>Charts need JavaScript; the tables have their "
          "numbers.</p></noscript>\n<div class=\"columns\">\n", stream);
    put_section(r, stream, "", "bars", "Completion time of each stage",
                "From the start of a stage to the last iteration of its "
                "slowest job; shorter is better.", put_stage_times);
    put_section(r, stream, "", "cdf", "Completion times of all stages",
                "Share of the stages that completed within a time; further "
                "left and higher is better.", NULL);
    put_section(r, stream, "wide", "timeline", "When each stage ran",
                "One row for each search, one bar for each stage, labelled "
                "with its rung. Colours are policies, as in all charts; odd "
                "rungs are paler. All policies have the same time scale.",
                put_stage_spans);
    if (r->n_policies && r->policies[0]->n_ports) {
        put_section(r, stream, "wide", "use", "Use of each link",
                    "One row for each direction of a host's link, seen from "
                    "the host. All policies have the same time scale.",
                    put_use);
    }
    if (has_loss(r)) {
        put_section(r, stream, "wide", "loss", "Loss",
                    "One line for each job. A line ends where the search "
                    "stopped the job.",
                    put_jobs);
    }
    fputs("</div>\n</main>\n<footer class=\"note\">\n", stream);
    put_element(stream, "p", r->about);
    fputs("</footer>\n", stream);
}

void
report_put_html(const struct report *r, FILE *stream)
{
    static const struct {
        const char *mark;
        void (*put)(const struct report *, FILE *);
    } parts[] = {
        { "<!-- title -->", put_title },
        { "<!-- content -->", put_content },
        { "<!-- data -->", report_put_page_json },
    };
    const char *rest = report_page;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *mark = strstr(rest, parts[i].mark);

        assert(mark);
        fwrite(rest, 1, mark - rest, stream);
        parts[i].put(r, stream);
        rest = mark + strlen(parts[i].mark);
    }
    fputs(rest, stream);
}
