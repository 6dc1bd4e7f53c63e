/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "reporting/report.h"
#include "tests/unit/unit-test.h"

/* A name that must not end the element that it is in. */
#define SEARCH "a</script><b>&\"'"
#define SEARCH_IN_HTML "a&lt;/script&gt;&lt;b&gt;&amp;&quot;'"
#define SEARCH_IN_JSON "\"a\\u003c/script>\\u003cb>&\\\"'\""

/* A run of two searches; 'slow' stretches its stages. */
static void
fill(struct report_policy *p, double slow)
{
    static const char *const ports[] = { "h0 up", "h0 down" };

    report_search_begin(p, SEARCH, 0.5);
    report_search_begin(p, "b", 1);
    report_stage_begin(p, SEARCH, 0, 0.5, 2);
    report_stage_begin(p, "b", 0, 1, 1);
    report_set_ports(p, ports, 2);
    report_job_ready(p, SEARCH, "t0", 0.5, 0.25);
    report_job_ready(p, "b", "t0", 1.5, 0.5);
    for (int i = 0; i < 20; i++) {
        float use[2] = { i / 20.0f, 0.25f };

        report_links(p, 0.5 * i, use);
        report_progress(p, SEARCH, "t0", 0.5 * i, i, 2.0 / (i + 1), NAN);
    }
    report_progress(p, SEARCH, "t0", 9, 20, 0.1, 0.9);
    report_stage_end(p, SEARCH, 0, 0.5 + 4 * slow);
    report_stage_begin(p, SEARCH, 1, 0.5 + 4 * slow, 1);
    report_stage_end(p, "b", 0, 1 + 2 * slow);
    report_stage_end(p, SEARCH, 1, 0.5 + 7 * slow);
    report_job_end(p, SEARCH, "t0", "done", 100 * slow);
    report_search_end(p, SEARCH, 0.5 + 7 * slow, "t0");
    report_search_end(p, "b", 1 + 2 * slow, NULL);
    p->tcp_timeouts = 3;
    p->queue_p99_bytes = 64000;
    p->coverage = 0.99;
    p->cpu_busy = 0.4;
    p->bound_mean_s = 2.5;
    p->bound_strict_mean_s = 2;
    report_set(&p->bound_kind, "fluid");
    report_set(&p->queues, "a > b");
    report_set(&p->tcp_congestion_control, "cubic");
}

static struct report *
example(void)
{
    struct report *r = report_create("ex & ample", "lab");

    fill(report_add_policy(r, "stage"), 1);
    fill(report_add_policy(r, "fair"), 2);
    report_finish(r);
    return r;
}

static char *
put(const struct report *r, void (*function)(const struct report *, FILE *))
{
    char *text, *copy;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    function(r, stream);
    fclose(stream);
    copy = strdup(text);
    free(text);
    return copy;
}

static void
stages_are_summarized(void **state)
{
    struct report *r = example();
    const struct report_policy *stage = r->policies[0];
    const struct report_policy *fair = r->policies[1];

    assert_ptr_equal(r->baseline, fair);
    assert_ptr_equal(r->candidate, stage);
    assert_int_equal(stage->n_ended, 3);
    assert_float_equal(stage->mean_sct_s, 3, 1e-9);     /* 4, 2, 3. */
    assert_float_equal(stage->p95_sct_s, 4, 1e-9);
    assert_float_equal(stage->makespan_s, 7, 1e-9);
    assert_float_equal(stage->ratio, 0.5, 1e-9);
    assert_float_equal(fair->ratio, 1, 1e-9);
    assert_true(isnan(stage->accuracy)); /* The accuracy of b is
                                          * unknown. */
    report_destroy(r);
}

/* Searches of 10 s each, but the first of 'first' and the second of
 * 'second'. */
static void
fill_searches(struct report_policy *p, double first, double second)
{
    const double seconds[] = { first, second, 10, 10 };

    for (int i = 0; i < 4; i++) {
        char name[2] = { 'a' + i, '\0' };

        report_search_begin(p, name, 2 * i);
        report_stage_begin(p, name, 0, 2 * i, 1);
        report_stage_end(p, name, 0, 2 * i + seconds[i]);
        report_search_end(p, name, 2 * i + seconds[i], NULL);
    }
}

/* Against the network without us if it ran, wherever it is among the
 * policies. */
static void
searches_are_compared_with_plain(void **state)
{
    struct report *r = report_create("x", "lab");
    const double *ratios;
    char *text;

    fill_searches(report_add_policy(r, "fair"), 10, 10);
    fill_searches(report_add_policy(r, "plain"), 20, 10);
    fill_searches(report_add_policy(r, "stage"), 4, 10.6);
    report_finish(r);
    assert_ptr_equal(r->baseline, r->policies[1]);
    ratios = r->policies[2]->searches_vs_baseline;
    assert_float_equal(ratios[REPORT_SEARCH_MEAN], (0.2 + 1.06 + 2) / 4, 1e-9);
    assert_float_equal(ratios[REPORT_SEARCH_WORST], 1.06, 1e-9);
    assert_float_equal(ratios[REPORT_SEARCH_LATER], 0.25, 1e-9);

    /* 34.6 s of 50 s. */
    text = put(r, report_put_table);
    assert_int_equal(
        strncmp(text,
                "searches finish their rounds 31 % sooner under stage than "
                "without Stagecoach\n\npolicy ",
                84),
        0);
    assert_says(text, "\ntime of each search, stage / plain: mean "
                      "0.815, worst 1.060, 25 % of them more than 5 % "
                      "later\n");
    report_destroy(r);
}

/* A sentence that flatters would be worse than none. */
static void
a_loss_is_called_a_loss(void **state)
{
    static const struct {
        double ratio;
        const char *baseline, *text;
    } cases[] = {
        { 0.774, "plain",
          "searches finish their rounds 23 % sooner than without "
          "Stagecoach\n" },
        { 1.1, "plain",
          "searches finish their rounds 10 % later than without "
          "Stagecoach\n" },
        { 0.997, "plain",
          "searches finish their rounds neither sooner nor later than "
          "without Stagecoach\n" },
        { 0.9, "fair",
          "searches finish their rounds 10 % sooner than under fair\n" },
        { NAN, "plain", "" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        report_put_gain(NULL, cases[i].baseline,
                        interval_of(&cases[i].ratio, 1), stream);
        fclose(stream);
        assert_is(text, cases[i].text);
    }
}

/* 64 kB is not 64 %. */
static void
each_column_has_its_unit(void **state)
{
    struct report *r = example();
    char *text = put(r, report_put_table);

    assert_non_null(strstr(text, "       2.50    99.0 %    40 %"));
    assert_says(text, "          3     64 kB\n");
    report_destroy(r);
}

/* Each is [seconds, iteration, loss, accuracy]; the last of the example. */
static void
check_points(const cJSON *jobs)
{
    const cJSON *points = cJSON_GetObjectItem(cJSON_GetArrayItem(jobs, 0),
                                              "points");
    const cJSON *point = cJSON_GetArrayItem(points,
                                            cJSON_GetArraySize(points) - 1);
    static const double last[] = { 9, 20, 0.1, 0.9 };

    assert_int_equal(cJSON_GetArraySize(point), 4);
    for (int i = 0; i < 4; i++) {
        assert_float_equal(cJSON_GetNumberValue(cJSON_GetArrayItem(point, i)),
                           last[i], 1e-6);
    }
}

static void
json_has_summaries_stages_and_points(void **state)
{
    struct report *r = example();
    char *text = put(r, report_put_json);
    cJSON *top = cJSON_Parse(text);
    const cJSON *policy = cJSON_GetArrayItem(
        cJSON_GetObjectItem(top, "policies"), 0);
    const cJSON *stages = cJSON_GetObjectItem(top, "stages");
    static const struct {
        const char *name;
        double value;
    } members[] = {
        { "mean_sct_s", 3 },   { "p95_sct_s", 4 },
        { "makespan_s", 7 },   { "coverage", 0.99 },
        { "cpu_busy", 0.4 },   { "tcp_timeouts", 3 },
        { "startup_s", 0.75 }, { "queue_p99_bytes", 64000 },
        { "exchange_s", 100 }, { "bound_strict_mean_s", 2 },
    };

    assert_non_null(top);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        assert_float_equal(
            cJSON_GetNumberValue(cJSON_GetObjectItem(policy,
                                                     members[i].name)),
            members[i].value, 1e-9);
    }
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(policy, "accuracy")));
    assert_int_equal(cJSON_GetArraySize(stages), 6);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(
        cJSON_GetArrayItem(stages, 5), "policy")), "fair");
    assert_float_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(top, "ratio")),
                       0.5, 1e-9);
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItem(policy, "bound_kind")),
        "fluid");
    assert_string_equal(cJSON_GetStringValue(
        cJSON_GetObjectItem(policy, "queues")), "a > b");
    assert_float_equal(
        cJSON_GetNumberValue(cJSON_GetObjectItem(
            cJSON_GetObjectItem(policy, "searches_vs_baseline"), "worst")),
        0.5, 1e-6);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(
                            policy, "tcp_congestion_control")),
                        "cubic");
    check_points(cJSON_GetObjectItem(top, "jobs"));
    cJSON_Delete(top);
    free(text);
    report_destroy(r);
}

/* What chooses the queues is one line for all policies, or one for each. */
static void
queues_are_named_once(void **state)
{
    struct report *r = example();
    char *text = put(r, report_put_queues);

    assert_is(text, "queues of the switch: a > b\n"
                    "congestion control of TCP: cubic\n");
    report_set(&r->policies[0]->tcp_congestion_control, NULL);
    report_set(&r->policies[1]->queues, "none");
    text = put(r, report_put_queues);
    assert_is(text, "stage: queues of the switch: a > b\n"
                    "fair: queues of the switch: none\n");
    report_set(&r->policies[0]->queues, NULL);
    report_set(&r->policies[1]->queues, NULL);
    assert_is(put(r, report_put_queues), "");
    report_destroy(r);
}

/* Removes the content of all scripts and styles of 'html'. */
static void
remove_scripts(char *html)
{
    static const char *const tags[] = { "script", "style" };

    for (int i = 0; i < 2; i++) {
        char begin[16], end[16];

        snprintf(begin, sizeof begin, "<%s", tags[i]);
        snprintf(end, sizeof end, "</%s>", tags[i]);
        for (char *p = html; (p = strstr(p, begin)); ) {
            char *text = strchr(p, '>') + 1;
            char *rest = strstr(text, end);

            assert_non_null(rest);
            memmove(text, rest, strlen(rest) + 1);
            p = text;
        }
    }
}

/* Every element that opens must close, in the right order; attributes must be
 * quoted, and "&" must begin an entity. */
static void
assert_well_formed(const char *html)
{
    static const char *const void_elements[] = { "meta", "!DOCTYPE", "!" };
    char stack[64][16];
    int depth = 0;

    for (const char *p = html; *p; p++) {
        char name[16] = "";
        bool is_void = false;

        if (*p == '&') {
            assert_true(strcspn(p, ";") <= 6);
        }
        if (*p != '<') {
            continue;
        }
        size_t length = strcspn(p, ">");
        bool closes = p[1] == '/';

        assert_true(p[length] == '>');
        sscanf(p + 1 + closes, "%15[!a-zA-Z0-9]", name);
        for (size_t i = 0; i < 3; i++) {
            is_void = is_void || !strcmp(name, void_elements[i]);
        }
        if (closes) {
            assert_true(depth > 0);
            assert_string_equal(stack[--depth], name);
        } else if (!is_void) {
            assert_true(depth < 64);
            strcpy(stack[depth++], name);
        }
        p += length;
    }
    assert_int_equal(depth, 0);
}

static size_t
count(const char *text, const char *what)
{
    size_t n = 0;

    while ((text = strstr(text, what))) {
        text += strlen(what);
        n++;
    }
    return n;
}

static void
html_has_tables_without_javascript(void **state)
{
    static const char *const ids[] = { "bars", "cdf", "timeline", "use",
                                       "loss" };
    struct report *r = example();
    char *text = put(r, report_put_html);

    remove_scripts(text);
    assert_well_formed(text);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char id[32];

        snprintf(id, sizeof id, "<div id=\"%s\"", ids[i]);
        assert_int_equal(count(text, id), 1);
    }
    assert_int_equal(count(text, "<table"), 5);
    assert_int_equal(count(text, "<p>queues of the switch: a &gt; b</p>"), 1);
    assert_int_equal(count(text, "<details open>"), 4);
    assert_non_null(strstr(text, ">stage</th>"
                           "<td data-label=\"mean SCT\">3.00 s</td>"
                           "<td data-label=\"p95 SCT\">4.00 s</td>"));
    assert_non_null(strstr(text, SEARCH_IN_HTML "/0</th>"
                           "<td data-label=\"stage\">4.00 s</td>"
                           "<td data-label=\"fair\">8.00 s</td></tr>"));
    assert_int_equal(
        count(text, "Stagecoach " STAGECOACH_VERSION ": test-report"), 1);
    assert_non_null(strstr(text, "SCT: stage completion time"));
    assert_non_null(strstr(text, "<p>stage / fair: mean SCT 0.500, "
                           "p95 SCT 0.500, makespan 0.500</p>"));
    assert_non_null(strstr(text, "<p>searches finish their rounds 50 % sooner "
                                 "than under fair</p>"));
    assert_non_null(strstr(text, "<p>under fair, workers waited in exchanges "
                                 "for 200 s in all</p>"));
    assert_non_null(strstr(text, "h0 down</th><td data-label=\"stage\">"
                           "25.0 %</td>"));
    assert_null(strstr(text, "nan"));
    free(text);
    report_destroy(r);
}

/* Nothing refers to another file, and the policy allows none. */
static void
html_needs_no_network(void **state)
{
    struct report *r = example();
    char *text = put(r, report_put_html);

    assert_non_null(strstr(text, "content=\"default-src 'none'; style-src "
                           "'sha256-"));
    remove_scripts(text);
    assert_null(strstr(text, "src=\""));
    assert_null(strstr(text, "href="));
    assert_null(strstr(text, "http:"));
    free(text);
    report_destroy(r);
}

/* 'html' begins with the element that has the data. */
static void
check_data(const char *html)
{
    const char *begin = strchr(html, '>') + 1;
    char *json = strndup(begin, strstr(begin, "</script>") - begin);
    cJSON *top = cJSON_Parse(json);

    assert_non_null(top);
    assert_non_null(strstr(json, SEARCH_IN_JSON));
    assert_null(strchr(json, '<'));
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(
            cJSON_GetObjectItem(top, "searches"), 0), "cojob")), SEARCH);
    check_points(cJSON_GetObjectItem(top, "jobs"));
    cJSON_Delete(top);
    free(json);
}

static void
json_in_html_cannot_end_its_script(void **state)
{
    struct report *r = example();
    char *text = put(r, report_put_html);

    assert_null(strstr(text, "<b>"));
    check_data(strstr(text, "<script type=\"application/json\" id=\"data\">"));
    free(text);
    report_destroy(r);
}

/* A simulation may have 100,000 stages. */
static void
html_stays_small(void **state)
{
    struct report *r = report_create("x", "sim");
    struct report_policy *p = report_add_policy(r, "fair");
    const cJSON *cdf, *last;
    char *text;
    cJSON *top;

    report_search_begin(p, "a", 0);
    for (int i = 0; i < 5000; i++) {
        report_stage_begin(p, "a", i, i, 1);
        p->stages[i].end = i + (i + 1) / 1000.0;
    }
    report_finish(r);
    text = put(r, report_put_html);
    assert_true(strlen(text) < 300000);
    assert_says(text, "have the first 48.");

    text = put(r, report_put_page_json);
    top = cJSON_Parse(text);
    cdf = cJSON_GetObjectItem(cJSON_GetArrayItem(
        cJSON_GetObjectItem(top, "policies"), 0), "cdf");
    assert_in_range(cJSON_GetArraySize(cdf), 300, 400);
    last = cJSON_GetArrayItem(cdf, cJSON_GetArraySize(cdf) - 1);
    assert_float_equal(cJSON_GetNumberValue(cJSON_GetArrayItem(last, 0)), 5,
                       1e-9);
    assert_float_equal(cJSON_GetNumberValue(cJSON_GetArrayItem(last, 1)), 1,
                       1e-9);
    cJSON_Delete(top);
    free(text);
    report_destroy(r);
}

/* Neither the start of a job, nor the time between two rungs, nor a repeated
 * report counts. */
static void
iteration_time_excludes_waiting_between_rungs(void **state)
{
    struct report *r = report_create("x", "lab");
    struct report_policy *p = report_add_policy(r, "fair");

    report_stage_begin(p, "a", 0, -1, 2);
    report_job_ready(p, "a", "t0", 0, 1);
    report_job_ready(p, "a", "t1", 0, 1);
    report_progress(p, "a", "t0", 1, 1, NAN, NAN);
    report_progress(p, "a", "t1", 1, 1, NAN, NAN);
    report_progress(p, "a", "t0", 5, 10, NAN, NAN);
    report_progress(p, "a", "t1", 9, 10, NAN, NAN);     /* 0.9 s. */
    report_progress(p, "a", "t0", 9, 10, 1, 0.5);
    report_stage_begin(p, "a", 1, 10, 1);
    report_progress(p, "a", "t0", 13, 20, NAN, NAN);    /* 5 and 3 s. */
    report_finish(r);
    assert_float_equal(p->iteration_s, (0.4 + 0.9) / 2, 1e-9);
    report_destroy(r);
}

/* 0.9 of 0.6 is 0.54.  The third job reports no accuracy. */
static void
early_phases_end_at_a_share_of_the_last_accuracy(void **state)
{
    struct report *r = report_create("x", "lab");
    struct report_policy *p = report_add_policy(r, "fair");

    report_search_begin(p, "a", 2);
    report_progress(p, "a", "t0", 3, 1, 2, 0.1);
    report_progress(p, "a", "t0", 5, 10, 2, 0.55);
    report_progress(p, "a", "t0", 7, 20, 1, 0.5);
    report_progress(p, "a", "t0", 9, 30, 1, 0.6);
    report_progress(p, "a", "t1", 8, 10, 2, 0.2);
    report_progress(p, "a", "t2", 3, 10, 2, NAN);
    report_job_devices(p, "a", "t0", 2, 12, 2);
    report_job_devices(p, "a", "t1", 4, 10, 1);
    report_finish(r);
    assert_float_equal(p->early_s, (3 + 6) / 2., 1e-9);

    /* 0.99 of the best is reported at 9 s. */
    assert_float_equal(p->target_s, 7, 1e-9);
    assert_float_equal(p->device_s, 2 * 10 + 6, 1e-9);
    assert_float_equal(p->device_s_to_target, 2 * 7 + 5, 1e-9);
    report_destroy(r);
}

/* A run that ended early: stages without an end, no links, no jobs. */
static void
a_failed_run_has_a_page_and_a_table(void **state)
{
    struct report *r = report_create("x", "lab");
    struct report_policy *p = report_add_policy(r, "fair");
    char *text;

    report_search_begin(p, "a", 0);
    report_stage_begin(p, "a", 0, 0, 1);
    report_set(&p->failure, "not completed within 5 s");
    report_finish(r);
    assert_true(isnan(p->mean_sct_s));
    assert_null(r->candidate);

    text = put(r, report_put_html);
    remove_scripts(text);
    assert_well_formed(text);
    assert_non_null(strstr(text, "not completed within 5 s"));
    assert_null(strstr(text, "nan"));
    free(text);

    assert_says(put(r, report_put_table), "did not complete");
    report_destroy(r);
}

static void
high_cpu_load_is_reported(void **state)
{
    struct report *r = example();

    r->policies[0]->cpu_busy = 0.97;
    assert_says(put(r, report_put_table), "stage: the CPUs were 97 % busy");
    report_destroy(r);
}

/* Writes the page of the example to 'file', for tests/web. */
static int
write_page(const char *file)
{
    struct report *r = example();
    FILE *stream = fopen(file, "w");

    if (!stream) {
        perror(file);
        return 1;
    }
    report_put_html(r, stream);
    report_destroy(r);
    return fclose(stream) ? 1 : 0;
}

int
main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_summarized),
        cmocka_unit_test(searches_are_compared_with_plain),
        cmocka_unit_test(a_loss_is_called_a_loss),
        cmocka_unit_test(each_column_has_its_unit),
        cmocka_unit_test(json_has_summaries_stages_and_points),
        cmocka_unit_test(queues_are_named_once),
        cmocka_unit_test(html_has_tables_without_javascript),
        cmocka_unit_test(html_needs_no_network),
        cmocka_unit_test(json_in_html_cannot_end_its_script),
        cmocka_unit_test(html_stays_small),
        cmocka_unit_test(iteration_time_excludes_waiting_between_rungs),
        cmocka_unit_test(early_phases_end_at_a_share_of_the_last_accuracy),
        cmocka_unit_test(a_failed_run_has_a_page_and_a_table),
        cmocka_unit_test(high_cpu_load_is_reported),
    };

    if (argc == 2) {
        return write_page(argv[1]);
    }
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
