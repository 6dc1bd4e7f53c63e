/* SPDX-License-Identifier: Apache-2.0 */

/* Progress in lines of logs, and specifications of what to look for. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "agent/identify/environ.h"
#include "agent/tail/log-decoder.h"
#include "tests/unit/agent/log-feed.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/log-spec.h"

UNIT_TEST(json_lines_tell_the_keys_that_were_asked_for)
{
    log_feed_open("json-lines:/x,iteration=training_iteration,"
                  "metric=mean_accuracy,stage=rung");
    log_feed("{\"training_iteration\": 3, \"mean_accuracy\": 0.25, "
             "\"config\": {\"lr\": [1]}, \"rung\": 1}\n");
    log_feed_expect(3, 0.25);
    assert_int_equal(log_feed_last.stage, 1);
    assert_string_equal(log_feed_last.metric, "mean_accuracy");

    /* In pieces; an incomplete line reports nothing. */
    log_feed("{\"training_iteration\": \"4\", \"mean_");
    log_feed_expect_nothing();
    log_feed("accuracy\": 0.5}");
    log_feed_expect_nothing();
    log_feed("\r\n{\"training_iteration\": 5, \"mean_accuracy\": 0.75}\n{");
    log_feed_expect(5, 0.75);
    log_feed_expect_nothing();
    log_feed_close();
}

UNIT_TEST(numbers_that_are_none_are_not_taken)
{
    log_feed_open("json-lines:/x,metric=loss");
    log_feed("{\"iteration\": -1, \"loss\": 1}\n{\"iteration\": 1.5}\n"
             "{\"iteration\": 1e300}\n{\"iteration\": null}\n[1]\nnot json\n"
             "{\"iteration\": \"inf\"}\n{\"iteration\": \"0x10\"}\n");
    log_feed_expect_nothing();
    /* A loss that diverged: the iteration counts. */
    log_feed("{\"iteration\": 7, \"loss\": 1e999}\n");
    assert_true(log_decoder_take(log_feed_decoder, &log_feed_last));
    assert_int_equal(log_feed_last.iteration, 7);
    assert_false(log_feed_last.has_value);
    log_feed_close();
}

/* A metric that is no number: the iteration counts, with no value.  Without
 * the metric, the value is the previous one. */
UNIT_TEST(a_loss_that_diverges_has_no_value)
{
    static const struct {
        const char *spec, *line;
    } cases[] = {
        { "json-lines:/x,metric=loss", "{\"iteration\": %d, \"loss\": %s}\n" },
        { "json-lines:/x,metric=loss",
          "{\"config\": {\"x\": [NaN]}, \"loss\": %2$s, \"iteration\": %1$d}\r" },
        { "csv:/x,iteration=iteration,metric=loss", "%d,%s\n" },
        { "regex:/x,iteration=step ([0-9]+),metric=loss (\\S+)",
          "step %d loss %s\n" },
        { "mlflow:/x", "1700 %2$s %1$d\n" },
    };
    static const char *const none[] = { "NaN", "Infinity", "-Infinity" };

    for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(none); i++) {
        const char *line = cases[i / ARRAY_SIZE(none)].line;
        char *good = xasprintf(line, 8, "0.5");
        char *bad = xasprintf(line, 9, none[i % ARRAY_SIZE(none)]);

        log_feed_open(cases[i / ARRAY_SIZE(none)].spec);
        if (log_feed_spec.format == LOG_CSV) {
            log_feed("iteration,loss\n");
        }
        log_feed(good);
        log_feed_expect(8, 0.5);
        log_feed(bad);
        assert_true(log_decoder_take(log_feed_decoder, &log_feed_last));
        assert_int_equal(log_feed_last.iteration, 9);
        assert_false(log_feed_last.has_value);
        assert_int_equal(log_feed_decoder->no_value, 1);
        assert_int_equal(log_feed_decoder->malformed, 0);
        log_feed_close();
        free(good);
        free(bad);
    }
    log_feed_open("json-lines:/x,metric=loss");
    log_feed("{\"iteration\": 8, \"loss\": 0.5}\n{\"iteration\": 9}\n");
    log_feed_expect(9, 0.5);
    log_feed_close();
}

UNIT_TEST(long_lines_and_zeros_are_passed_over)
{
    char *piece = xmalloc(10000);

    memset(piece, 'x', 10000);
    log_feed_open("json-lines:/x,metric=loss");
    for (int i = 0; i < 1000; i++) {
        log_decoder_feed(log_feed_decoder, piece, 10000);
    }
    log_feed("\n{\"iteration\": 1, \"loss\": 2}\n");
    log_feed_expect(1, 2);
    log_decoder_feed(log_feed_decoder, "{\"iteration\": 5}\0{}\n", 20);
    log_feed_expect_nothing();
    assert_int_equal(log_feed_decoder->malformed, 2);
    assert_int_equal(log_feed_decoder->records, 3);
    log_feed_close();
    free(piece);
}

UNIT_TEST(csv_finds_columns_by_the_head)
{
    static const char head[] = "epoch,\"val, \"\"acc\"\"\",step\n1,0.5,10\n";

    log_feed_open("csv:/x,iteration=step,metric=val, \"acc\"");
    assert_string_equal(log_feed_spec.keys[LOG_NAME], "val, \"acc\"");
    log_feed(head);
    log_feed_expect(10, 0.5);
    /* A field that is empty has no value. */
    log_feed("2,,20\n");
    log_feed_expect(20, 0.5);
    log_feed("2,0.625\n3,0.75,x\n");
    log_feed_expect_nothing();
    assert_int_equal(log_feed_decoder->malformed, 2);

    /* In the middle of a file the head is known and the rest of a line is
     * not one. */
    log_decoder_restart(log_feed_decoder, head, strlen(head), true);
    log_feed("5,7\n3,0.875,30\n");
    log_feed_expect(30, 0.875);

    /* Another file has other columns. */
    log_decoder_restart(log_feed_decoder, NULL, 0, false);
    log_feed("step,loss,\"val, \"\"acc\"\"\"\n40,9,1\n");
    log_feed_expect(40, 1);
    log_decoder_restart(log_feed_decoder, NULL, 0, false);
    log_feed("a,b,c\n1,2,3\n");
    log_feed_expect_nothing();
    log_feed_close();
}

/* What loggers and bars write, in pieces of 1 to 128 bytes: padded names, a
 * header of its own after a restart, colours, carriage returns, and commas in
 * large numbers. */
UNIT_TEST(lines_of_the_world_are_read)
{
    static const struct {
        const char *spec, *text;
        int64_t iteration;
        double value;
    } cases[] = {
        { "csv:/x,iteration=epoch,metric=train/loss",
          "      epoch,  train/loss ,\tmAP\n    0, 0.5, 1\n 1 ,\t0.25 ,2\n", 1,
          0.25 },
        { "csv:/x,iteration=epoch,metric=loss",
          "epoch,acc,loss\n0,0.8,0.5\n1,0.9,0.4\nepoch,loss,acc\n2,0.3,0.7\n",
          2, 0.3 },
        { "csv:/x,iteration=epoch,metric=loss",
          "epoch,loss\r1,2\n\r\n\033[32m3,4\033[0m\n\r\n", 3, 4 },
        { "csv:/x,iteration=epoch", "epoch,acc\n5,0.8\nacc,epoch\n0.9,1\n", 1,
          0 },
        { "csv:/x,iteration=step,metric=n",
          "\xef\xbb\xbfstep,n\r\n\"1,024\",\"-1,234,567.5\"\r\n", 1024,
          -1234567.5 },
        { "regex:/x,iteration=step ([0-9,]+),metric=loss=([0-9.]+)",
          "step 12,345 loss=0.5\rstep 12,346, loss=0.25\rstep 9", 12346,
          0.25 },
        { "regex:/x,iteration=(step|[0-9]+)/10,metric=loss ([0-9.]+)",
          "\033[1;32m7/10\033[0m loss \033[31m0.5\033[0m\033[K\r\033[A", 7,
          0.5 },
        { "regex:/x,iteration=step ([0-9,]+)", "step 1,2\nstep 3,45\n", 3, 0 },
        { "json-lines:/x,metric=a/b/c",
          "{\"iteration\": 3, \"a\": {\"b/c\": 0.5, \"b\": 7}}\n", 3, 0.5 },
        { "json-lines:/x,metric=loss",
          "\xef\xbb\xbf{\"iteration\": \"1,000\", \"loss\": 2}\r\n", 1000, 2 },
    };

    for (size_t n = 1; n < 200; n += n) {
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
            const char *text = cases[i].text;
            size_t length = strlen(text);

            log_feed_open(cases[i].spec);
            for (size_t at = 0; at < length; at += n) {
                log_decoder_feed(log_feed_decoder, text + at,
                                 MIN(n, length - at));
            }
            assert_int_equal(log_feed_decoder->malformed, 0);
            assert_true(log_decoder_take(log_feed_decoder, &log_feed_last));
            assert_int_equal(log_feed_last.iteration, cases[i].iteration);
            assert_true(log_feed_last.value == cases[i].value);
            log_feed_close();
        }
    }
}

UNIT_TEST(expressions_find_numbers_in_lines)
{
    log_feed_open("regex:/x,iteration=step[ =]+([0-9]+),"
                  "metric=loss: ([0-9.e-]+),name=train_loss");
    log_feed("hello\nstep 12 of 100, loss: 1.5e-1x\n");
    log_feed_expect(12, 0.15);
    assert_string_equal(log_feed_last.metric, "train_loss");
    log_feed("step=13\nloss: 0.125\n");
    log_feed_expect(13, 0.125);
    log_feed("step 99999999999999999999999999 loss: ..\n");
    log_feed_expect_nothing();
    log_feed_close();
}

UNIT_TEST(nothing_is_decoded_after_a_limit)
{
    char line[4001];

    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    log_feed_open("regex:/x,iteration=(.|a)*([0-9]),metric=(1)");
    log_feed("a 1\n");
    assert_false(log_feed_decoder->exhausted);
    log_feed(line);
    log_feed("\n1\n1\n");
    assert_true(log_feed_decoder->exhausted);
    log_feed_expect_nothing();
    log_decoder_restart(log_feed_decoder, NULL, 0, false);
    assert_false(log_feed_decoder->exhausted);
    log_feed_close();
}

UNIT_TEST(mlflow_has_time_value_and_step)
{
    log_feed_open("mlflow:/mlruns/*/*/metrics/val_loss");
    log_feed("1700000000000 0.5 3\n1700000000001 0.25 4\n1700000000002 0.2");
    log_feed_expect(4, 0.25);
    assert_string_equal(log_feed_last.metric, "val_loss");
    log_feed("\nnonsense\n1700000000001 NaN 6\n");
    assert_true(log_decoder_take(log_feed_decoder, &log_feed_last));
    assert_int_equal(log_feed_last.iteration, 6);
    assert_false(log_feed_last.has_value);
    log_feed_close();
}

UNIT_TEST(specifications_are_read_or_refused)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "json-lines:/a,b,metric=c,d", NULL },
        { "csv:/a/%c/%j-%%", NULL },
        { "regex:/a,iteration=step ([0-9]+),metric=a|(b)", NULL },
        { "xml:/a", "begins with no format" },
        { "json-lines", "begins with no format" },
        { "json-lines:a", "path: \"a\" is not an absolute path" },
        { "json-lines:/a%s", "path: \"%s\" in a path" },
        { "json-lines:/a%", "path: \"%\" in a path" },
        { "json-lines:/a,metric=", "metric: \"\" is not a key" },
        { "json-lines:/a,name=", "name: \"\" is not a name" },
        { "regex:/a", "iteration: missing" },
        { "regex:/a,iteration=step [0-9]+", "iteration: no group" },
        { "regex:/a,iteration=step ([0-9]+", "iteration: " },
        { "regex:/a,iteration=(a{9999})", "iteration: intervals" },
        { "regex:/a,iteration=(a)\\1", "iteration: intervals" },
        { "mlflow:/a,iteration=step", "iteration: not allowed" },
        { "mlflow:/a,metric=loss", "metric: not allowed" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *error = log_spec_parse("--log", cases[i].text, &log_feed_spec);

        if (cases[i].error) {
            assert_non_null(error);
            assert_memory_equal(error, "--log: ", 7);
            assert_says(error, cases[i].error);
        } else {
            assert_null(error);
            log_spec_uninit(&log_feed_spec);
        }
    }
}

UNIT_TEST(paths_have_the_names_of_jobs)
{
    char *text;

    assert_null(log_spec_parse("--log", "csv:/a,b/%c/100%%%j,stage=rung,"
                               "iteration=x=y,z", &log_feed_spec));
    assert_string_equal(log_feed_spec.path, "/a,b/%c/100%%%j");
    assert_string_equal(log_feed_spec.keys[LOG_STAGE], "rung");
    assert_string_equal(log_feed_spec.keys[LOG_ITERATION], "x=y,z");
    text = log_spec_to_text(&log_feed_spec);
    assert_string_equal(text, "csv:/a,b/%c/100%%%j,iteration=x=y,z,"
                        "stage=rung");
    assert_int_equal(log_spec_path_length(text + strlen("csv:")),
                     strlen("/a,b/%c/100%%%j"));
    free(text);
    assert_is(log_spec_path(&log_feed_spec, "asha/t0"), "/a,b/asha/100%t0");
    log_spec_uninit(&log_feed_spec);
}

UNIT_TEST(an_environment_is_searched_for_a_name)
{
    static const char text[] = "A=1\0STAGECOACH_LOGS=x\0STAGECOACH_LOG=csv:/a";
    static const char name[] = "STAGECOACH_LOG";

    assert_string_equal(environ_get(text, sizeof text, name), "csv:/a");
    assert_null(environ_get(text, sizeof text - 1, name));
    assert_null(environ_get(text, 0, name));
}
