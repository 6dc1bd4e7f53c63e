/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controller/northbound/rest/rest-body.h"
#include "controller/northbound/rest/rest-request.h"
#include "util.h"

static void
paths_are_taken_apart(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
        const char *args[REST_MAX_ARGS];
    } cases[] = {
        { "/v1", "/v1", true, { NULL } },
        { "/v1", "/v1/", false, { NULL } },
        { "/v1/{a}", "/v1/x", true, { "x" } },
        { "/v1/{a}", "/v1/", false, { NULL } },
        { "/v1/{a}", "/v1/x/", false, { NULL } },
        { "/v1/{a}/j/{b}", "/v1/x/j/y", true, { "x", "y" } },
        { "/v1/{a}/j/{b}", "/v1/x/k/y", false, { NULL } },
        { "/v1/{a}/{b}/{c}", "/v1/1/2/3", true, { "1", "2", "3" } },
        { "/v1/{a}/{b}/{c}", "/v1/1//3", false, { NULL } },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char args[REST_MAX_ARGS][REST_MAX_ARG];

        assert_int_equal(rest_path_match(cases[i].pattern, cases[i].path,
                                         args), cases[i].matches);
        for (int j = 0; j < REST_MAX_ARGS && cases[i].args[j]; j++) {
            assert_string_equal(args[j], cases[i].args[j]);
        }
    }
}

static void
long_segments_are_of_no_path(void **state)
{
    char args[REST_MAX_ARGS][REST_MAX_ARG];
    char path[REST_MAX_ARG + 2] = "/";

    memset(path + 1, 'x', REST_MAX_ARG - 1);
    assert_true(rest_path_match("/{a}", path, args));
    assert_int_equal(strlen(args[0]), REST_MAX_ARG - 1);
    path[REST_MAX_ARG] = 'x';
    assert_false(rest_path_match("/{a}", path, args));
}

static void
quotes_are_short_and_plain(void **state)
{
    char *quote = rest_path_quote("/a b\n\xff~");

    assert_string_equal(quote, "/a?b??~");
    free(quote);
}

static void
bodies_are_read(void **state)
{
    const char *text = "{\"workers\": [{\"host\": \"h0\"}, {\"host\": \"h1\", "
                       "\"role\": \"server\", \"index\": 0}], "
                       "\"model_bytes\": 5}";
    struct rest_change change;

    assert_null(rest_body_change(INTENT_JOB_BEGIN, text, strlen(text),
                                 &change));
    assert_int_equal(change.edit.n, 2);
    assert_string_equal(change.edit.workers[0].role, "worker");
    assert_int_equal(change.edit.workers[0].index, 0);
    assert_string_equal(change.edit.workers[1].host, "h1");
    assert_string_equal(change.edit.workers[1].role, "server");
    assert_int_equal(change.edit.model_bytes, 5);
    rest_change_uninit(&change);
}

static void
no_body_has_the_defaults(void **state)
{
    struct rest_change change;

    assert_null(rest_body_change(INTENT_COJOB_BEGIN, "", 0, &change));
    assert_true(change.edit.weight >= 1 && change.edit.weight <= 1);
    rest_change_uninit(&change);
}

static void
messages_say_where(void **state)
{
    static const struct {
        enum intent_kind kind;
        const char *text, *beginning;
    } cases[] = {
        { INTENT_COJOB_BEGIN, "{\"weight\": 0}", "/weight: " },
        { INTENT_COJOB_BEGIN, "{\"wait\": 1}", "/wait: " },
        { INTENT_COJOB_BEGIN, "{", "/: line 1: " },
        { INTENT_COJOB_BEGIN, "[]", "/: " },
        { INTENT_COJOB_END, "{\"weight\": 1}", "/weight: " },
        { INTENT_JOB_BEGIN, "{\"workers\": [{\"host\": \"/\"}]}",
          "/workers/0/host: " },
        { INTENT_STAGE_BEGIN, "{\"jobs\": [\"a\"]}", "/iterations: " },
        { INTENT_STAGE_BEGIN, "{\"iterations\": 1.5, \"jobs\": [\"a\"]}",
          "/iterations: " },
        { INTENT_STAGE_BEGIN, "{\"iterations\": 1, \"jobs\": []}",
          "/jobs: " },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rest_change change;
        char *error = rest_body_change(cases[i].kind, cases[i].text,
                                       strlen(cases[i].text), &change);

        assert_non_null(error);
        assert_memory_equal(error, cases[i].beginning,
                            strlen(cases[i].beginning));
        free(error);
    }
}

static void
null_bytes_are_no_text(void **state)
{
    struct rest_progress p;
    char *error = rest_body_progress("{}\0", 3, &p);

    assert_string_equal(error, "/: a null byte in the body, text is allowed");
    free(error);
}

static void
progress_needs_metric_and_value(void **state)
{
    const char *good = "{\"iteration\": 3, \"metric\": \"loss\", "
                       "\"value\": 0.5, \"time\": 1, \"stage\": 0}";
    const char *bad = "{\"iteration\": 3, \"value\": 0.5}";
    struct rest_progress p;
    char *error;

    assert_null(rest_body_progress(good, strlen(good), &p));
    assert_int_equal(p.iteration, 3);
    assert_string_equal(p.metric, "loss");
    rest_progress_uninit(&p);
    error = rest_body_progress(bad, strlen(bad), &p);
    assert_memory_equal(error, "/metric: ", 9);
    free(error);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_taken_apart),
        cmocka_unit_test(long_segments_are_of_no_path),
        cmocka_unit_test(quotes_are_short_and_plain),
        cmocka_unit_test(bodies_are_read),
        cmocka_unit_test(no_body_has_the_defaults),
        cmocka_unit_test(messages_say_where),
        cmocka_unit_test(null_bytes_are_no_text),
        cmocka_unit_test(progress_needs_metric_and_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
