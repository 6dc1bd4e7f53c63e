/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "reporting/interval.h"
#include "reporting/placements.h"
#include "reporting/report.h"
#include "tests/unit/unit-test.h"

static const char *const names[] = { "stage", "plain" };

/* From the tables of Student's distribution. */
UNIT_TEST(quantiles_are_those_of_the_tables)
{
    static const struct {
        size_t df;
        double quantile;
    } rows[] = {
        { 1, 12.706 }, { 2, 4.303 }, { 9, 2.262 }, { 10, 2.228 },
        { 11, 2.201 }, { 15, 2.131 }, { 30, 2.042 }, { 100, 1.984 },
        { 1000, 1.962 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_float_equal(interval_student(rows[i].df), rows[i].quantile,
                           0.001);
    }
}

/* The mean of 1, 2, 3, 4 is 2.5, its standard error sqrt(5 / 3 / 4). */
UNIT_TEST(an_interval_is_as_computed_by_hand)
{
    static const double values[] = { 4, NAN, 1, 3, 2, NAN };
    struct interval in = interval_of(values, 6);

    assert_int_equal(in.n, 4);
    assert_float_equal(in.mean, 2.5, 1e-12);
    assert_float_equal(in.low, 2.5 - 3.1824 * sqrt(5.0 / 12), 1e-9);
    assert_float_equal(in.high, 2.5 + 3.1824 * sqrt(5.0 / 12), 1e-9);
}

UNIT_TEST(one_measurement_has_no_interval)
{
    static const double values[] = { 4, NAN };
    struct interval in = interval_of(values, 2);

    assert_int_equal(in.n, 1);
    assert_float_equal(in.mean, 4, 0);
    assert_true(isnan(in.low) && isnan(in.high));
    in = interval_of(values, 0);
    assert_int_equal(in.n, 0);
    assert_true(isnan(in.mean) && isnan(in.low));
}

/* Returns a report of one policy with two stages of 'a' and 'b' seconds. */
static struct report *
make_report(const char *policy, double a, double b)
{
    struct report *r = report_create("ex", "lab");
    struct report_policy *p = report_add_policy(r, policy);

    report_set(&r->inputs, "digest");
    report_search_begin(p, "s", 0);
    report_stage_begin(p, "s", 0, 0, 1);
    report_stage_end(p, "s", 0, a);
    report_stage_begin(p, "s", 1, a, 1);
    report_stage_end(p, "s", 1, a + b);
    report_search_end(p, "s", a + b, NULL);
    report_job_end(p, "s", "t0", "done", 10 * a);
    return r;
}

static void
set_run(struct placements *ps, size_t placement, size_t policy, double a,
        double b)
{
    struct report *r = make_report(names[policy], a, b);

    report_finish(r);
    placements_set(ps, placement, policy, r->policies[0]);
    report_destroy(r);
}

/* Stage takes 1 / 2 and 3 / 4 of the time of plain, which has means of 4 and
 * 8; at the third placement it has no result. */
static struct placements *
example(void)
{
    struct placements *ps =
        placements_create("ex", "placement", names, 2, 7, 3);

    set_run(ps, 0, 0, 1, 3);
    set_run(ps, 0, 1, 2, 6);
    set_run(ps, 1, 0, 3, 9);
    set_run(ps, 1, 1, 4, 12);
    set_run(ps, 2, 1, 4, 12);
    return ps;
}

UNIT_TEST(ratios_are_of_the_same_placement)
{
    struct placements *ps = example();
    struct interval in = placements_ratio(ps, 0, PLACEMENTS_MEAN);

    assert_int_equal(in.n, 2);
    assert_float_equal(in.mean, (0.5 + 0.75) / 2, 1e-9);
    /* Standard error 0.125, one degree of freedom. */
    assert_float_equal(in.high - in.mean, 12.7062 * 0.125, 1e-6);
    assert_float_equal(placements_ratio(ps, 1, PLACEMENTS_P95).mean, 1, 1e-9);
    in = placements_seconds(ps, 1, PLACEMENTS_MAKESPAN);
    assert_int_equal(in.n, 3);
    assert_float_equal(in.mean, (8 + 16 + 16) / 3.0, 1e-9);
    in = placements_seconds(ps, 0, PLACEMENTS_P95);
    assert_float_equal(in.mean, (3 + 9) / 2.0, 1e-9);
    placements_destroy(ps);
}

static char *
put(const struct placements *ps, size_t placement,
    void (*all)(const struct placements *, FILE *))
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    if (all) {
        all(ps, stream);
    } else {
        placements_put_one(ps, placement, stream);
    }
    fclose(stream);
    return text;
}

UNIT_TEST(tables_have_all_figures)
{
    struct placements *ps = example();
    char *text = put(ps, 1, NULL);

    assert_string_equal(
        text, "placement 8 (2 of 3)\n"
              "policy   mean SCT  / plain      p95 SCT  / plain     makespan"
              "  / plain    exchanges  / plain\n"
              "stage        6.00  0.750           9.00  0.750          12.00"
              "  0.750          30.00  0.750\n"
              "plain        8.00  1.000          12.00  1.000          16.00"
              "  1.000          40.00  1.000\n\n");
    free(text);
    text = put(ps, 2, NULL);
    assert_says(text, "stage           -  -         "
                      "         -  -");
    text = put(ps, 0, placements_put_summary);
    assert_non_null(strstr(text, "means of 3 placements, seconds; / plain:"));
    assert_non_null(strstr(text, "stage      2       4.00  "
                           "0.625 [-0.963, 2.213]       6.00  0.625 ["));
    assert_non_null(strstr(text, "plain      3       6.67  1.000  "));
    assert_int_equal(
        strncmp(text,
                "searches finish their rounds 38 % sooner than without "
                "Stagecoach (mean of 2 runs, 95 % interval -121 to 196 % "
                "sooner)\n",
                100),
        0);
    assert_non_null(
        strstr(text, "\nstage   0.625 [-0.963, 2.213]  0.625 [-0.963, 2.213]  "
                     "0.000 [0.000, 0.000]\n"));
    free(text);
    placements_destroy(ps);
}

/* A simulation has none. */
UNIT_TEST(exchanges_are_not_shown_if_no_run_has_them)
{
    struct placements *ps = placements_create("ex", "seed", names, 2, 1, 1);
    char *text;

    for (size_t k = 0; k < 2; k++) {
        struct report *r = report_create("ex", "sim");
        struct report_policy *p = report_add_policy(r, names[k]);

        report_search_begin(p, "s", 0);
        report_stage_begin(p, "s", 0, 0, 1);
        report_stage_end(p, "s", 0, 1.0 + k);
        report_search_end(p, "s", 1.0 + k, NULL);
        report_finish(r);
        placements_set(ps, 0, k, p);
        report_destroy(r);
    }
    text = put(ps, 0, placements_put_summary);
    assert_non_null(strstr(text, "means of 1 seed, seconds; / plain: mean of "
                                 "the ratios at each seed "));
    assert_null(strstr(text, "exchanges"));
    free(text);
    text = put(ps, 0, placements_put_json);
    assert_non_null(strstr(text, "makespan_s"));
    assert_null(strstr(text, "exchange_s"));
    free(text);
    placements_destroy(ps);
}

/* The axis is from 0 to 1, 560 units long from 120 on. */
UNIT_TEST(a_page_has_each_ratio_and_the_interval)
{
    static const char *const parts[] = {
        "<circle cx=\"400.0\" cy=\"30\" r=\"3\"><title>placement 7: 0.500</",
        "<circle cx=\"540.0\" cy=\"33\" r=\"3\"><title>placement 8: 0.750</",
        "\n<path d=\"M120.0 45 H680.0 M470.0 37 v16\"><title>0.625 [-0.963, ",
    };
    struct placements *ps = example();
    char *text = put(ps, 0, placements_put_html);

    for (size_t i = 0; i < N_ELEMENTS(parts); i++) {
        assert_says(strdup(text), parts[i]);
    }
    assert_null(strstr(text, "placement 9"));
    free(text);
    placements_destroy(ps);
}

static const cJSON *
find(const cJSON *json, const char *a, int index, const char *b)
{
    return cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json,
                                                                      a),
                                                  index), b);
}

UNIT_TEST(json_has_each_run_and_the_intervals)
{
    struct placements *ps = example();
    char *text = put(ps, 0, placements_put_json);
    cJSON *top = cJSON_Parse(text);
    const cJSON *runs = find(top, "placements", 2, "policies");
    const cJSON *ratio = cJSON_GetObjectItem(
        find(top, "policies", 0, "vs_baseline"), "mean_sct_s");

    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItem(top, "baseline")), "plain");
    assert_float_equal(cJSON_GetNumberValue(
        find(top, "placements", 2, "seed")), 9, 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(
        cJSON_GetArrayItem(runs, 0), "mean_sct_s")));
    assert_float_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(
        cJSON_GetArrayItem(runs, 1), "mean_sct_s")), 8, 1e-9);
    assert_float_equal(
        cJSON_GetNumberValue(cJSON_GetObjectItem(
            cJSON_GetObjectItem(
                cJSON_GetArrayItem(find(top, "placements", 1, "policies"), 0),
                "searches_vs_baseline"),
            "worst")),
        0.75, 1e-6);
    assert_float_equal(cJSON_GetNumberValue(
        find(top, "policies", 0, "runs")), 2, 0);
    assert_float_equal(cJSON_GetNumberValue(
        cJSON_GetObjectItem(ratio, "mean")), 0.625, 1e-6);
    assert_float_equal(cJSON_GetNumberValue(
        cJSON_GetObjectItem(ratio, "low")), 0.625 - 12.7062 * 0.125, 1e-5);
    ratio = cJSON_GetObjectItem(
        find(top, "policies", 0, "searches_vs_baseline"), "worst");
    assert_float_equal(
        cJSON_GetNumberValue(cJSON_GetObjectItem(ratio, "mean")), 0.625, 1e-6);
    cJSON_Delete(top);
    free(text);
    placements_destroy(ps);
}

/* Directory of the files of a test. */
static int
make_dir(void **state)
{
    static char dir[64];

    strcpy(dir, "/tmp/test-placements-XXXXXX");
    *state = mkdtemp(dir);
    return !*state;
}

static int
remove_dir(void **state)
{
    static const char *const files[] = { "report.json", "report.html" };
    char name[128];

    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%s", (char *) *state, files[i]);
        unlink(name);
    }
    return rmdir(*state);
}

/* Writes 'r', which it destroys, and reads it as the result of "stage".
 * Returns true if it is one. */
static bool
write_and_read(const char *dir, struct report *r, struct placements *ps,
               const char *inputs, char **errorp)
{
    char file[128];
    bool done;

    report_finish(r);
    assert_null(report_write(r, dir));
    report_destroy(r);
    snprintf(file, sizeof file, "%s/report.json", dir);
    *errorp = placements_read(ps, 0, 0, file, inputs, &done);
    return done;
}

UNIT_TEST_BETWEEN(a_result_that_is_there_is_not_missing, make_dir, remove_dir)
{
    struct placements *ps =
        placements_create("ex", "placement", names, 2, 1, 1);
    char *error;

    assert_true(write_and_read(*state, make_report("stage", 1, 3), ps,
                               "digest", &error));
    assert_null(error);
    assert_float_equal(placements_seconds(ps, 0, PLACEMENTS_MEAN).mean, 2,
                       1e-6);
    assert_float_equal(placements_seconds(ps, 0, PLACEMENTS_P95).mean, 3,
                       1e-6);
    assert_float_equal(placements_seconds(ps, 0, PLACEMENTS_MAKESPAN).mean, 4,
                       1e-6);
    assert_float_equal(placements_seconds(ps, 0, PLACEMENTS_EXCHANGE).mean, 10,
                       1e-6);
    set_run(ps, 0, 1, 2, 6);
    assert_float_equal(placements_searches(ps, 0, REPORT_SEARCH_MEAN).mean,
                       0.5, 1e-6);
    placements_destroy(ps);
}

UNIT_TEST_BETWEEN(failed_and_partial_runs_are_missing, make_dir, remove_dir)
{
    struct placements *ps =
        placements_create("ex", "placement", names, 2, 1, 1);
    struct report *r = make_report("stage", 1, 3);
    char file[128];
    char *error;
    bool done = true;
    FILE *stream;

    snprintf(file, sizeof file, "%s/report.json", (char *) *state);
    assert_null(placements_read(ps, 0, 0, file, "digest", &done));
    assert_false(done);

    report_set(&r->policies[0]->failure, "timed out");
    assert_false(write_and_read(*state, r, ps, "digest", &error));
    assert_null(error);

    stream = fopen(file, "w");
    assert_non_null(stream);
    fputs("{\"inputs\": \"digest\", \"policies\": [{\"name", stream);
    fclose(stream);
    done = true;
    assert_null(placements_read(ps, 0, 0, file, "digest", &done));
    assert_false(done);
    assert_int_equal(placements_seconds(ps, 0, PLACEMENTS_MEAN).n, 0);
    placements_destroy(ps);
}

UNIT_TEST_BETWEEN(results_of_other_inputs_are_refused, make_dir, remove_dir)
{
    struct placements *ps =
        placements_create("ex", "placement", names, 2, 1, 1);
    char *error;

    assert_false(write_and_read(*state, make_report("stage", 1, 3), ps,
                                "other", &error));
    assert_says(error, "/report.json: the result of another "
                       "scenario or policy, remove it or choose another "
                       "--out");
    assert_int_equal(placements_seconds(ps, 0, PLACEMENTS_MEAN).n, 0);
    placements_destroy(ps);
}
