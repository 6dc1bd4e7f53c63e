/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "reporting/report.h"

/* A run of two searches; 'slow' stretches its stages. */
static void
fill(struct report_policy *p, double slow)
{
    static const char *const ports[] = { "h0 up", "h0 down" };

    report_search_begin(p, "a<b>", 0.5);
    report_search_begin(p, "b", 1);
    report_stage_begin(p, "a<b>", 0, 0.5, 2);
    report_stage_begin(p, "b", 0, 1, 1);
    report_set_ports(p, ports, 2);
    for (int i = 0; i < 20; i++) {
        float use[2] = { i / 20.0f, 0.25f };

        report_links(p, 0.5 * i, use);
        report_progress(p, "a<b>", "t0", 0.5 * i, i, 2.0 / (i + 1), NAN);
    }
    report_progress(p, "a<b>", "t0", 9, 20, 0.1, 0.9);
    report_stage_end(p, "a<b>", 0, 0.5 + 4 * slow);
    report_stage_begin(p, "a<b>", 1, 0.5 + 4 * slow, 1);
    report_stage_end(p, "b", 0, 1 + 2 * slow);
    report_stage_end(p, "a<b>", 1, 0.5 + 7 * slow);
    report_job_end(p, "a<b>", "t0", "done");
    report_search_end(p, "a<b>", 0.5 + 7 * slow, "t0");
    report_search_end(p, "b", 1 + 2 * slow, NULL);
    p->tcp_timeouts = 3;
    p->coverage = 0.99;
    p->cpu_busy = 0.4;
    p->bound_mean_s = 2.5;
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
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    function(r, stream);
    fclose(stream);
    return text;
}

static void
summarizes_stages(void **state)
{
    struct report *r = example();
    const struct report_policy *stage = r->policies[0];
    const struct report_policy *fair = r->policies[1];

    (void) state;
    assert_ptr_equal(r->baseline, fair);
    assert_ptr_equal(r->candidate, stage);
    assert_int_equal(stage->n_ended, 3);
    assert_float_equal(stage->mean_sct_s, 3, 1e-9);     /* 4, 2, 3. */
    assert_float_equal(stage->p95_sct_s, 4, 1e-9);
    assert_float_equal(stage->makespan_s, 7, 1e-9);
    assert_float_equal(stage->ratio, 0.5, 1e-9);
    assert_float_equal(fair->ratio, 1, 1e-9);
    assert_true(isnan(stage->accuracy));        /* b's is not known. */
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
json_has_what_programs_read(void **state)
{
    struct report *r = example();
    char *text = put(r, report_put_json);
    cJSON *top = cJSON_Parse(text);
    const cJSON *policy = cJSON_GetArrayItem(
        cJSON_GetObjectItem(top, "policies"), 0);
    const cJSON *stages = cJSON_GetObjectItem(top, "stages");
    const cJSON *certificate = cJSON_GetObjectItem(top, "certificate");
    static const struct {
        const char *name;
        double value;
    } members[] = {
        { "mean_sct_s", 3 }, { "p95_sct_s", 4 }, { "makespan_s", 7 },
        { "coverage", 0.99 }, { "cpu_busy", 0.4 }, { "tcp_timeouts", 3 },
    };

    (void) state;
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
    assert_float_equal(cJSON_GetNumberValue(
        cJSON_GetObjectItem(top, "ratio")), 0.5, 1e-9);
    assert_float_equal(cJSON_GetNumberValue(
        cJSON_GetObjectItem(certificate, "gap")), 1.2, 1e-6);
    check_points(cJSON_GetObjectItem(top, "jobs"));
    cJSON_Delete(top);
    free(text);
    report_destroy(r);
}

/* Every element that opens must close, in the right order; attributes must be
 * quoted, and "&" must begin an entity. */
static void
assert_well_formed(const char *html)
{
    static const char *const void_elements[] = { "meta", "!DOCTYPE" };
    char stack[64][16];
    int depth = 0;

    for (const char *p = html; *p; p++) {
        char name[16] = "";

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
        if (closes) {
            assert_true(depth > 0);
            assert_string_equal(stack[--depth], name);
        } else if (p[length - 1] != '/' && strcmp(name, void_elements[0])
                   && strcmp(name, void_elements[1])) {
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
html_is_well_formed_and_complete(void **state)
{
    struct report *r = example();
    char *text = put(r, report_put_html);

    (void) state;
    assert_well_formed(text);
    assert_int_equal(count(text, "<svg"), 5);
    assert_int_equal(count(text, "<polyline"), 4);
    assert_null(strstr(text, "a<b>"));
    assert_non_null(strstr(text, "a&lt;b&gt;"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "http"));          /* It needs no network. */
    free(text);
    report_destroy(r);
}

/* What a job waits for others between two rungs is no iteration's time, nor is
 * what it is told again. */
static void
counts_iterations_within_stages(void **state)
{
    struct report *r = report_create("x", "lab");
    struct report_policy *p = report_add_policy(r, "fair");

    (void) state;
    report_stage_begin(p, "a", 0, 0, 2);
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

/* A run that ended early: stages without an end, no links, no jobs. */
static void
shows_what_there_is_of_a_failed_run(void **state)
{
    struct report *r = report_create("x", "lab");
    struct report_policy *p = report_add_policy(r, "fair");
    char *text;

    (void) state;
    report_search_begin(p, "a", 0);
    report_stage_begin(p, "a", 0, 0, 1);
    report_set(&p->failure, "not done within 5 s");
    report_finish(r);
    assert_true(isnan(p->mean_sct_s));
    assert_null(r->candidate);

    text = put(r, report_put_html);
    assert_well_formed(text);
    assert_non_null(strstr(text, "not done within 5 s"));
    assert_null(strstr(text, "nan"));
    free(text);

    text = put(r, report_put_table);
    assert_non_null(strstr(text, "did not complete"));
    free(text);
    report_destroy(r);
}

static void
says_that_the_processors_were_the_limit(void **state)
{
    struct report *r = example();
    char *text;

    (void) state;
    r->policies[0]->cpu_busy = 0.97;
    text = put(r, report_put_table);
    assert_non_null(strstr(text, "stage: the processors were 97 % busy"));
    free(text);
    report_destroy(r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summarizes_stages),
        cmocka_unit_test(json_has_what_programs_read),
        cmocka_unit_test(html_is_well_formed_and_complete),
        cmocka_unit_test(counts_iterations_within_stages),
        cmocka_unit_test(shows_what_there_is_of_a_failed_run),
        cmocka_unit_test(says_that_the_processors_were_the_limit),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
