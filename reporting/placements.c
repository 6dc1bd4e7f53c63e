/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/placements.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "reporting/about.h"

/* The result of one run. */
struct outcome {
    double figures[PLACEMENTS_N_FIGURES]; /* NAN without a result. */
    size_t n_searches;
    struct report_search *searches; /* Only names and times. */
};

struct placements {
    char *title;
    char *noun;
    int n_figures; /* The first figures, which are shown: the last
                    * one only if a run has it. */
    size_t n_policies;
    char **policies;
    size_t baseline;            /* Index of a policy. */
    int64_t first_seed;
    size_t n;
    struct outcome *outcomes;   /* 'n' rows of 'n_policies' elements. */
};

static const struct {
    const char *title;
    const char *member;         /* In report.json and placements.json. */
    size_t offset;              /* Of a double in struct report_policy. */
} figures[] = {
    [PLACEMENTS_MEAN] = {
        "mean SCT", "mean_sct_s", offsetof(struct report_policy, mean_sct_s),
    },
    [PLACEMENTS_P95] = {
        "p95 SCT", "p95_sct_s", offsetof(struct report_policy, p95_sct_s),
    },
    [PLACEMENTS_MAKESPAN] = {
        "makespan", "makespan_s", offsetof(struct report_policy, makespan_s),
    },
    [PLACEMENTS_EXCHANGE] = {
        "exchanges", "exchange_s", offsetof(struct report_policy, exchange_s),
    },
};

struct placements *
placements_create(const char *title, const char *noun,
                  const char *const policies[], size_t n_policies,
                  int64_t first_seed, size_t n)
{
    struct placements *ps = allocate(1, sizeof *ps);

    ps->title = duplicate(title);
    ps->noun = duplicate(noun);
    ps->n_figures = PLACEMENTS_EXCHANGE;
    ps->n_policies = n_policies;
    ps->policies = allocate(n_policies, sizeof *ps->policies);
    for (size_t k = n_policies; k-- > 0; ) {
        ps->policies[k] = duplicate(policies[k]);
        if (report_baseline_rank(policies[k])
            >= report_baseline_rank(policies[ps->baseline])) {
            ps->baseline = k;
        }
    }
    ps->first_seed = first_seed;
    ps->n = n;
    ps->outcomes = allocate(n * n_policies, sizeof *ps->outcomes);
    for (size_t i = 0; i < n * n_policies; i++) {
        for (int f = 0; f < PLACEMENTS_N_FIGURES; f++) {
            ps->outcomes[i].figures[f] = NAN;
        }
    }
    return ps;
}

static void
free_searches(struct outcome *o)
{
    for (size_t i = 0; i < o->n_searches; i++) {
        free(o->searches[i].cojob);
    }
    free(o->searches);
    o->searches = NULL;
    o->n_searches = 0;
}

void
placements_destroy(struct placements *ps)
{
    if (ps) {
        for (size_t i = 0; i < ps->n * ps->n_policies; i++) {
            free_searches(&ps->outcomes[i]);
        }
        free_strings(ps->policies, ps->n_policies);
        free(ps->outcomes);
        free(ps->title);
        free(ps->noun);
        free(ps);
    }
}

static struct outcome *
outcome_at(const struct placements *ps, size_t placement, size_t policy)
{
    return &ps->outcomes[placement * ps->n_policies + policy];
}

static void
add_search(struct outcome *o, const char *cojob, double start, double end)
{
    o->searches =
        reallocate(o->searches, o->n_searches + 1, sizeof *o->searches);
    o->searches[o->n_searches++] = (struct report_search){
        .cojob = duplicate(cojob), .start = start, .end = end
    };
}

static void
set_figures(struct placements *ps, struct outcome *o,
            const double values[PLACEMENTS_N_FIGURES])
{
    memcpy(o->figures, values, sizeof o->figures);
    if (!isnan(values[PLACEMENTS_EXCHANGE])) {
        ps->n_figures = PLACEMENTS_N_FIGURES;
    }
}

void
placements_set(struct placements *ps, size_t placement, size_t policy,
               const struct report_policy *p)
{
    struct outcome *o = outcome_at(ps, placement, policy);
    double values[PLACEMENTS_N_FIGURES];

    if (p->failure) {
        return;
    }
    for (int f = 0; f < PLACEMENTS_N_FIGURES; f++) {
        values[f] = *(const double *) ((const char *) p + figures[f].offset);
    }
    set_figures(ps, o, values);
    for (size_t i = 0; i < p->n_searches; i++) {
        add_search(o, p->searches[i].cojob, p->searches[i].start,
                   p->searches[i].end);
    }
}

/* Reads the figures of 'policy', an element of "policies" in a report.
 * Returns false if they are not all there. */
static bool
read_figures(struct placements *ps, const cJSON *policy, struct outcome *o)
{
    double found[PLACEMENTS_N_FIGURES];

    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(policy, "complete"))) {
        return false;
    }
    for (int f = 0; f < PLACEMENTS_N_FIGURES; f++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(
            policy, figures[f].member);

        if (!cJSON_IsNumber(item) && f != PLACEMENTS_EXCHANGE) {
            return false;
        }
        found[f] = cJSON_GetNumberValue(item);
    }
    set_figures(ps, o, found);
    return true;
}

static void
read_searches(const cJSON *searches, struct outcome *o)
{
    const cJSON *search;

    cJSON_ArrayForEach(search, searches)
    {
        const char *cojob = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(search, "cojob"));

        if (cojob) {
            add_search(o, cojob,
                       cJSON_GetNumberValue(
                           cJSON_GetObjectItemCaseSensitive(search, "start")),
                       cJSON_GetNumberValue(
                           cJSON_GetObjectItemCaseSensitive(search, "end")));
        }
    }
}

char *
placements_read(struct placements *ps, size_t placement, size_t policy,
                const char *file, const char *inputs, bool *donep)
{
    char *text = NULL;
    char *error = access(file, F_OK) ? NULL : json_read_file(file, &text);
    cJSON *top = text ? cJSON_Parse(text) : NULL;
    const char *found = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(top, "inputs"));

    *donep = false;
    if (top && (!found || strcmp(found, inputs))) {
        error = message("%s: the result of another scenario or policy, remove "
                        "it or choose another --out", file);
    } else if (top) {
        struct outcome *o = outcome_at(ps, placement, policy);

        *donep = read_figures(
            ps,
            cJSON_GetArrayItem(
                cJSON_GetObjectItemCaseSensitive(top, "policies"), 0),
            o);
        if (*donep) {
            read_searches(cJSON_GetObjectItemCaseSensitive(top, "searches"),
                          o);
        }
    }
    cJSON_Delete(top);
    free(text);
    return error;
}

/* Returns figure 'f' of a run, relative to policy 'base' unless this is
 * negative. */
static double
figure_at(const struct placements *ps, size_t placement, size_t policy,
          enum placements_figure f, int base)
{
    double value = outcome_at(ps, placement, policy)->figures[f];

    return base < 0 ? value
                    : value / outcome_at(ps, placement, base)->figures[f];
}

static struct interval
summarize(const struct placements *ps, size_t policy,
          enum placements_figure f, int base)
{
    double *values = allocate(ps->n, sizeof *values);
    struct interval in;

    for (size_t i = 0; i < ps->n; i++) {
        values[i] = figure_at(ps, i, policy, f, base);
    }
    in = interval_of(values, ps->n);
    free(values);
    return in;
}

struct interval
placements_seconds(const struct placements *ps, size_t policy,
                   enum placements_figure f)
{
    return summarize(ps, policy, f, -1);
}

struct interval
placements_ratio(const struct placements *ps, size_t policy,
                 enum placements_figure f)
{
    return summarize(ps, policy, f, ps->baseline);
}

/* Compares the searches of 'policy' with those of the baseline. */
static void
compare_searches(const struct placements *ps, size_t placement, size_t policy,
                 double ratios[REPORT_N_SEARCH_RATIOS])
{
    const struct outcome *o = outcome_at(ps, placement, policy);
    const struct outcome *base = outcome_at(ps, placement, ps->baseline);

    report_compare_searches(o->searches, o->n_searches, base->searches,
                            base->n_searches, ratios);
}

struct interval
placements_searches(const struct placements *ps, size_t policy,
                    enum report_search_ratio which)
{
    double *values = allocate(ps->n, sizeof *values);
    struct interval in;

    for (size_t i = 0; i < ps->n; i++) {
        double ratios[REPORT_N_SEARCH_RATIOS];

        compare_searches(ps, i, policy, ratios);
        values[i] = ratios[which];
    }
    in = interval_of(values, ps->n);
    free(values);
    return in;
}

/* Prints seconds, "-" if they are unknown. */
static void
put_seconds(double value, FILE *stream)
{
    if (isnan(value)) {
        fprintf(stream, "  %9s", "-");
    } else {
        fprintf(stream, "  %9.2f", value);
    }
}

static int
name_width(const struct placements *ps)
{
    int width = strlen("policy");

    for (size_t k = 0; k < ps->n_policies; k++) {
        int length = strlen(ps->policies[k]);

        width = length > width ? length : width;
    }
    return width;
}

/* Prints a ratio with its interval, if there is one, in 'width' characters. */
static void
put_ratio(struct interval in, bool interval, int width, FILE *stream)
{
    char text[64] = "-";

    if (in.n) {
        snprintf(text, sizeof text,
                 interval && in.n > 1 ? "%.3f [%.3f, %.3f]" : "%.3f",
                 in.mean, in.low, in.high);
    }
    fprintf(stream, "  %-*s", width, text);
}

/* Prints the titles of the columns; a ratio has 'width' characters, and the
 * last one no padding. */
static void
put_titles(const struct placements *ps, int width, FILE *stream)
{
    for (int f = 0; f < ps->n_figures; f++) {
        fprintf(stream, "  %9s  / %-*s", figures[f].title,
                f < ps->n_figures - 1 ? width - 2 : 0,
                ps->policies[ps->baseline]);
    }
    putc('\n', stream);
}

void
placements_put_one(const struct placements *ps, size_t placement, FILE *stream)
{
    const struct outcome *base = outcome_at(ps, placement, ps->baseline);
    int width = name_width(ps);

    fprintf(stream, "%s %" PRId64 " (%zu of %zu)\n%-*s", ps->noun,
            ps->first_seed + (int64_t) placement, placement + 1, ps->n, width,
            "policy");
    put_titles(ps, 9, stream);
    for (size_t k = 0; k < ps->n_policies; k++) {
        const struct outcome *o = outcome_at(ps, placement, k);

        fprintf(stream, "%-*s", width, ps->policies[k]);
        for (int f = 0; f < ps->n_figures; f++) {
            double ratio = o->figures[f] / base->figures[f];

            put_seconds(o->figures[f], stream);
            put_ratio(interval_of(&ratio, 1), false,
                      f < ps->n_figures - 1 ? 9 : 0, stream);
        }
        putc('\n', stream);
    }
    putc('\n', stream);
}

/* Prints how the time of each search compares with that under the
 * baseline. */
static void
put_searches(const struct placements *ps, int width, FILE *stream)
{
    fprintf(stream,
            "\ntime of each search / %s: mean, worst, and share of "
            "the searches more than 5 %% later\n%-*s  %-20s  %-20s  %s\n",
            ps->policies[ps->baseline], width, "policy", "mean", "worst",
            "later");
    for (size_t k = 0; k < ps->n_policies; k++) {
        if (k != ps->baseline) {
            fprintf(stream, "%-*s", width, ps->policies[k]);
            for (int i = 0; i < REPORT_N_SEARCH_RATIOS; i++) {
                put_ratio(placements_searches(ps, k, i), true,
                          i < REPORT_N_SEARCH_RATIOS - 1 ? 20 : 0, stream);
            }
            putc('\n', stream);
        }
    }
}

void
placements_put_summary(const struct placements *ps, FILE *stream)
{
    int width = name_width(ps);

    for (size_t k = 0; k < ps->n_policies; k++) {
        if (k != ps->baseline) {
            report_put_gain(ps->n_policies > 2 ? ps->policies[k] : NULL,
                            ps->policies[ps->baseline],
                            placements_ratio(ps, k, PLACEMENTS_MEAN), stream);
        }
    }
    fprintf(stream,
            "means of %zu %s%s, seconds; / %s: mean of the ratios at "
            "each %s [95 %% interval]; SCT: stage completion time\n"
            "%-*s  runs",
            ps->n, ps->noun, ps->n == 1 ? "" : "s", ps->policies[ps->baseline],
            ps->noun, width, "policy");
    put_titles(ps, 20, stream);
    for (size_t k = 0; k < ps->n_policies; k++) {
        fprintf(stream, "%-*s  %4zu", width, ps->policies[k],
                placements_seconds(ps, k, PLACEMENTS_MEAN).n);
        for (int f = 0; f < ps->n_figures; f++) {
            put_seconds(placements_seconds(ps, k, f).mean, stream);
            put_ratio(placements_ratio(ps, k, f), k != ps->baseline,
                      f < ps->n_figures - 1 ? 20 : 0, stream);
        }
        putc('\n', stream);
    }
    if (ps->n_policies > 1) {
        put_searches(ps, width, stream);
    }
}

/* Adds 'value', rounded to a millionth, or null. */
static void
add_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value)) {
        cJSON_AddNumberToObject(object, name, round(value * 1e6) / 1e6);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

static void
add_placement(cJSON *array, const struct placements *ps, size_t placement)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *policies;

    cJSON_AddNumberToObject(o, "seed", ps->first_seed + (double) placement);
    policies = cJSON_AddArrayToObject(o, "policies");
    for (size_t k = 0; k < ps->n_policies; k++) {
        cJSON *policy = cJSON_CreateObject();
        double ratios[REPORT_N_SEARCH_RATIOS];
        cJSON *searches;

        cJSON_AddStringToObject(policy, "name", ps->policies[k]);
        for (int f = 0; f < ps->n_figures; f++) {
            add_number(policy, figures[f].member,
                       outcome_at(ps, placement, k)->figures[f]);
        }
        searches = cJSON_AddObjectToObject(policy, "searches_vs_baseline");
        compare_searches(ps, placement, k, ratios);
        for (int r = 0; r < REPORT_N_SEARCH_RATIOS; r++) {
            add_number(searches, report_search_ratios[r], ratios[r]);
        }
        cJSON_AddItemToArray(policies, policy);
    }
    cJSON_AddItemToArray(array, o);
}

static void
add_interval(cJSON *object, const char *name, struct interval in)
{
    cJSON *o = cJSON_AddObjectToObject(object, name);

    add_number(o, "mean", in.mean);
    add_number(o, "low", in.low);
    add_number(o, "high", in.high);
}

static void
add_summary(cJSON *array, const struct placements *ps, size_t policy)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *ratios;

    cJSON_AddStringToObject(o, "name", ps->policies[policy]);
    cJSON_AddNumberToObject(o, "runs",
                            placements_seconds(ps, policy, PLACEMENTS_MEAN).n);
    for (int f = 0; f < ps->n_figures; f++) {
        add_number(o, figures[f].member,
                   placements_seconds(ps, policy, f).mean);
    }
    ratios = cJSON_AddObjectToObject(o, "vs_baseline");
    for (int f = 0; f < ps->n_figures; f++) {
        add_interval(ratios, figures[f].member,
                     placements_ratio(ps, policy, f));
    }
    ratios = cJSON_AddObjectToObject(o, "searches_vs_baseline");
    for (int i = 0; i < REPORT_N_SEARCH_RATIOS; i++) {
        add_interval(ratios, report_search_ratios[i],
                     placements_searches(ps, policy, i));
    }
    cJSON_AddItemToArray(array, o);
}

void
placements_put_json(const struct placements *ps, FILE *stream)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *array;
    char *text;

    cJSON_AddStringToObject(top, "title", ps->title);
    cJSON_AddStringToObject(top, "baseline", ps->policies[ps->baseline]);
    array = cJSON_AddArrayToObject(top, "placements");
    for (size_t i = 0; i < ps->n; i++) {
        add_placement(array, ps, i);
    }
    array = cJSON_AddArrayToObject(top, "policies");
    for (size_t k = 0; k < ps->n_policies; k++) {
        add_summary(array, ps, k);
    }
    text = must(cJSON_Print(top));
    fprintf(stream, "%s\n", text);
    free(text);
    cJSON_Delete(top);
}

static char *
write_file(const struct placements *ps, const char *file,
           void (*put)(const struct placements *, FILE *))
{
    FILE *stream = fopen(file, "we");
    bool failed = !stream;

    if (stream) {
        put(ps, stream);
        failed = ferror(stream);
        failed = fclose(stream) || failed;
    }
    return failed ? message("%s: %s", file, strerror(errno)) : NULL;
}

/* A picture has a row for each policy but the baseline.  User units. */
#define LEFT 120     /* Room for the names of policies, */
#define WIDTH 560    /* the length of the axis, */
#define RIGHT 20     /* and room for half its last number. */
#define TOP 20       /* Room for the numbers of the axis. */
#define ROW 50       /* Height of a row. */
#define N_HEIGHTS 11 /* Of points, which would lie upon each other. */

static double
ratio_at(const struct placements *ps, size_t placement, size_t policy)
{
    return figure_at(ps, placement, policy, PLACEMENTS_MEAN, ps->baseline);
}

/* Puts the ratio at each seed, and the mean with its interval, around 'y'.  A
 * ratio of 1 is 'scale' units long, and the axis ends at 'end'. */
static void
put_row(const struct placements *ps, size_t policy, int y, double scale,
        double end, FILE *stream)
{
    struct interval in = placements_ratio(ps, policy, PLACEMENTS_MEAN);

    fprintf(stream, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
            LEFT - 10, y + 4, ps->policies[policy]);
    for (size_t i = 0; i < ps->n; i++) {
        double ratio = ratio_at(ps, i, policy);

        if (isfinite(ratio)) {
            fprintf(stream,
                    "<circle cx=\"%.1f\" cy=\"%d\" r=\"3\"><title>%s %" PRId64
                    ": %.3f</title></circle>\n",
                    LEFT + scale * ratio,
                    y + 3 * ((int) (i % N_HEIGHTS) - N_HEIGHTS / 2), ps->noun,
                    ps->first_seed + (int64_t) i, ratio);
        }
    }
    if (in.n > 1) {
        fprintf(stream,
                "<path d=\"M%.1f %d H%.1f M%.1f %d v16\"><title>%.3f [%.3f, "
                "%.3f]</title></path>\n",
                LEFT + scale * fmax(in.low, 0), y,
                LEFT + scale * fmin(in.high, end), LEFT + scale * in.mean,
                y - 8, in.mean, in.low, in.high);
    }
}

static void
put_picture(const struct placements *ps, FILE *stream)
{
    int height = TOP + ROW * (ps->n_policies - 1), y = TOP + ROW / 2;
    double end = 1, step, scale;

    for (size_t i = 0; i < ps->n * ps->n_policies; i++) {
        end = fmax(end, ratio_at(ps, i / ps->n_policies, i % ps->n_policies));
    }
    step = end < 2 ? 0.2 : ceil(end / 10);
    end = step * ceil(end / step);
    scale = WIDTH / end;
    fprintf(stream, "<svg viewBox=\"0 0 %d %d\">\n", LEFT + WIDTH + RIGHT,
            height);
    for (int i = 0; i <= lrint(end / step); i++) {
        double x = LEFT + scale * i * step;

        fprintf(stream,
                "<path class=\"axis\" d=\"M%.1f %d V%d\"/><text x=\"%.1f\" "
                "y=\"12\" text-anchor=\"middle\">%.1f</text>\n",
                x, TOP, height, x, i * step);
    }
    for (size_t k = 0; k < ps->n_policies; k++) {
        if (k != ps->baseline) {
            put_row(ps, k, y, scale, end, stream);
            y += ROW;
        }
    }
    fprintf(
        stream,
        "</svg>\n<p>Mean stage completion time (SCT) / %s: a point for each %s, and their mean "
        "with its 95 %% interval. Further left is better.</p>\n",
        ps->policies[ps->baseline], ps->noun);
}

void
placements_put_html(const struct placements *ps, FILE *stream)
{
    char *about = about_this_run();

    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
          "<title>Stagecoach: many runs</title>\n<style>\n"
          ":root { color-scheme: light dark; }\n"
          "body { font: 1rem system-ui, sans-serif; margin: 1rem; }\n"
          "pre { overflow-x: auto; }\nsvg { max-width: 60rem; }\n"
          "text { fill: currentColor; font-size: 12px; }\n"
          "circle { fill: #0072b2; fill-opacity: 0.4; }\n"
          "path { fill: none; stroke: currentColor; stroke-width: 3; }\n"
          ".axis { stroke: #8886; stroke-width: 1; }\n</style>\n<h1>",
          stream);
    report_put_text(stream, ps->title);
    fputs("</h1>\n<pre>\n", stream);
    placements_put_summary(ps, stream);
    fputs("</pre>\n", stream);
    if (ps->n_policies > 1) {
        put_picture(ps, stream);
    }
    fputs("<p>", stream);
    report_put_text(stream, about);
    fputs("</p>\n", stream);
    free(about);
}

char *
placements_write_html(const struct placements *ps, const char *file)
{
    return write_file(ps, file, placements_put_html);
}

char *
placements_write(const struct placements *ps, const char *dir)
{
    char *json = message("%s/placements.json", dir);
    char *html = message("%s/placements.html", dir);
    char *error = write_file(ps, json, placements_put_json);

    error = error ? error : placements_write_html(ps, html);
    free(html);
    free(json);
    return error;
}
