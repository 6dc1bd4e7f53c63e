/* SPDX-License-Identifier: Apache-2.0 */

/* What jobs log in lines and event files, and how one says what to look for.
 */

#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identify/process.h"
#include "agent/tail/log-decoder.h"
#include "crc32c.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/log-spec.h"

/* A decoder that a test feeds, and what was told last. */
static struct log_spec spec;
static struct log_decoder *decoder;
static struct progress last;

static void
open_log(const char *text)
{
    char *error = log_spec_parse("--log", text, &spec);

    assert_null(error);
    decoder = log_decoder_create(&spec);
    log_decoder_restart(decoder, NULL, 0, false);
}

static void
close_log(void)
{
    log_decoder_destroy(decoder);
    log_spec_uninit(&spec);
}

static bool
feed(const char *text)
{
    return log_decoder_feed(decoder, text, strlen(text));
}

static void
told(int64_t iteration, double value)
{
    assert_true(log_decoder_take(decoder, &last));
    assert_int_equal(last.iteration, iteration);
    assert_true(last.has_value);
    assert_true(fabs(last.value - value) < 1e-6);
}

static void
told_nothing(void)
{
    assert_false(log_decoder_take(decoder, &last));
}

static void
json_lines_tell_the_keys_that_were_asked_for(void **state OVS_UNUSED)
{
    open_log("json-lines:/x,iteration=training_iteration,"
             "metric=mean_accuracy,stage=rung");
    feed("{\"training_iteration\": 3, \"mean_accuracy\": 0.25, "
         "\"config\": {\"lr\": [1]}, \"rung\": 1}\n");
    told(3, 0.25);
    assert_int_equal(last.stage, 1);
    assert_string_equal(last.metric, "mean_accuracy");

    /* In pieces; what is not complete says nothing. */
    feed("{\"training_iteration\": \"4\", \"mean_");
    told_nothing();
    feed("accuracy\": 0.5}");
    told_nothing();
    feed("\r\n{\"training_iteration\": 5, \"mean_accuracy\": 0.75}\n{");
    told(5, 0.75);
    told_nothing();
    close_log();
}

static void
numbers_that_are_none_are_not_taken(void **state OVS_UNUSED)
{
    open_log("json-lines:/x,metric=loss");
    feed("{\"iteration\": -1, \"loss\": 1}\n{\"iteration\": 1.5}\n"
         "{\"iteration\": 1e300}\n{\"iteration\": null}\n[1]\nnot json\n"
         "{\"iteration\": \"inf\"}\n{\"iteration\": \"0x10\"}\n");
    told_nothing();
    /* A loss that diverged: the iteration counts. */
    feed("{\"iteration\": 7, \"loss\": 1e999}\n");
    assert_true(log_decoder_take(decoder, &last));
    assert_int_equal(last.iteration, 7);
    assert_false(last.has_value);
    feed("{\"iteration\": 8, \"loss\": 0.5}\n{\"iteration\": 9, "
         "\"loss\": \"nan\"}\n");
    told(9, 0.5);
    close_log();
}

static void
long_lines_and_zeros_are_passed_over(void **state OVS_UNUSED)
{
    char *piece = xmalloc(10000);

    memset(piece, 'x', 10000);
    open_log("json-lines:/x,metric=loss");
    for (int i = 0; i < 1000; i++) {
        assert_true(log_decoder_feed(decoder, piece, 10000));
    }
    feed("\n{\"iteration\": 1, \"loss\": 2}\n");
    told(1, 2);
    log_decoder_feed(decoder, "{\"iteration\": 5}\0{}\n", 20);
    told_nothing();
    assert_int_equal(decoder->malformed, 2);
    assert_int_equal(decoder->records, 3);
    close_log();
    free(piece);
}

static void
csv_finds_columns_by_the_head(void **state OVS_UNUSED)
{
    static const char head[] = "epoch,\"val, \"\"acc\"\"\",step\n1,0.5,10\n";

    open_log("csv:/x,iteration=step,metric=val, \"acc\"");
    assert_string_equal(spec.keys[LOG_NAME], "val");
    feed(head);
    told(10, 0.5);
    /* A field that is empty has no value. */
    feed("2,,20\n");
    told(20, 0.5);
    feed("2,0.625\n3,0.75,x\n");
    told_nothing();
    assert_int_equal(decoder->malformed, 2);

    /* In the middle of a file the head is known and the rest of a line is
     * not one. */
    log_decoder_restart(decoder, head, strlen(head), true);
    feed("5,7\n3,0.875,30\n");
    told(30, 0.875);

    /* Another file has other columns. */
    log_decoder_restart(decoder, NULL, 0, false);
    feed("step,loss,\"val, \"\"acc\"\"\"\n40,9,1\n");
    told(40, 1);
    log_decoder_restart(decoder, NULL, 0, false);
    feed("a,b,c\n1,2,3\n");
    told_nothing();
    close_log();
}

static void
expressions_find_numbers_in_lines(void **state OVS_UNUSED)
{
    open_log("regex:/x,iteration=step[ =]+([0-9]+),"
             "metric=loss: ([0-9.e-]+),name=train_loss");
    feed("hello\nstep 12 of 100, loss: 1.5e-1x\n");
    told(12, 0.15);
    assert_string_equal(last.metric, "train_loss");
    feed("step=13\nloss: 0.125\n");
    told(13, 0.125);
    feed("step 99999999999999999999999999 loss: ..\n");
    told_nothing();
    close_log();
}

static void
nothing_is_decoded_after_a_limit(void **state OVS_UNUSED)
{
    char line[4001];

    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    open_log("regex:/x,iteration=(.|a)*([0-9]),metric=(1)");
    feed("a 1\n");
    assert_false(decoder->exhausted);
    feed(line);
    feed("\n1\n1\n");
    assert_true(decoder->exhausted);
    told_nothing();
    log_decoder_restart(decoder, NULL, 0, false);
    assert_false(decoder->exhausted);
    close_log();
}

static void
mlflow_has_time_value_and_step(void **state OVS_UNUSED)
{
    open_log("mlflow:/mlruns/*/*/metrics/val_loss");
    feed("1700000000000 0.5 3\n1700000000001 0.25 4\n1700000000002 0.2");
    told(4, 0.25);
    assert_string_equal(last.metric, "val_loss");
    feed("\nnonsense\n1700000000001 NaN 6\n");
    told(6, 0.25);
    close_log();
}

static void
specifications_are_read_or_refused(void **state OVS_UNUSED)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "json-lines:/a,b,metric=c,d", NULL },
        { "csv:/a/%c/%j-%%", NULL },
        { "regex:/a,iteration=step ([0-9]+),metric=a|(b)", NULL },
        { "tfevents:/a/events.out.tfevents.*", NULL },
        { "xml:/a", "begins with no format" },
        { "json-lines", "begins with no format" },
        { "json-lines:a", "path: \"a\" is not an absolute path" },
        { "json-lines:/a%s", "path: \"%s\" in a path" },
        { "json-lines:/a%", "path: \"%\" in a path" },
        { "json-lines:/a,metric=", "metric: \"\" is not a key" },
        { "json-lines:/a,name=a b", "name: \"a b\" is not a name" },
        { "regex:/a", "iteration: missing" },
        { "regex:/a,iteration=step [0-9]+", "iteration: no group" },
        { "regex:/a,iteration=step ([0-9]+", "iteration: " },
        { "regex:/a,iteration=(a{9999})", "iteration: intervals" },
        { "regex:/a,iteration=(a)\\1", "iteration: intervals" },
        { "tfevents:/a,iteration=step", "iteration: not allowed" },
        { "mlflow:/a,metric=loss", "metric: not allowed" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *error = log_spec_parse("--log", cases[i].text, &spec);

        if (cases[i].error) {
            assert_non_null(error);
            assert_memory_equal(error, "--log: ", 7);
            assert_says(error, cases[i].error);
        } else {
            assert_null(error);
            log_spec_uninit(&spec);
        }
    }
}

static void
paths_have_the_names_of_jobs(void **state OVS_UNUSED)
{
    char *text;

    assert_null(log_spec_parse("--log",
                               "csv:/a,b/%c/100%%%j,stage=rung,"
                               "iteration=x=y,z",
                               &spec));
    assert_string_equal(spec.path, "/a,b/%c/100%%%j");
    assert_string_equal(spec.keys[LOG_STAGE], "rung");
    assert_string_equal(spec.keys[LOG_ITERATION], "x=y,z");
    text = log_spec_to_text(&spec);
    assert_string_equal(text, "csv:/a,b/%c/100%%%j,iteration=x=y,z,"
                        "stage=rung");
    assert_int_equal(log_spec_path_length(text + strlen("csv:")),
                     strlen("/a,b/%c/100%%%j"));
    free(text);
    assert_is(log_spec_path(&spec, "asha/t0"), "/a,b/asha/100%t0");
    log_spec_uninit(&spec);
}

static void
an_environment_is_searched_for_a_name(void **state OVS_UNUSED)
{
    static const char text[] = "A=1\0STAGECOACH_LOGS=x\0STAGECOACH_LOG=csv:/a";
    static const char name[] = "STAGECOACH_LOG";

    assert_string_equal(environ_get(text, sizeof text, name), "csv:/a");
    assert_null(environ_get(text, sizeof text - 1, name));
    assert_null(environ_get(text, 0, name));
}

static void
a_sender_is_in_the_cgroup_of_version_2(void **state OVS_UNUSED)
{
    static const struct {
        const char *text, *path;
    } cases[] = {
        { "0::/stagecoach/asha/t0\n", "/stagecoach/asha/t0" },
        { "4:cpu:/x\n1:name=systemd:/y\n0::/a", "/a" },
        { "4:cpu:/x\n10::/y\n", NULL },
        { "0::/a-path-that-is-longer-than-there-is-room-for\n", NULL },
        { "", NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char path[32];
        bool found = process_parse_cgroup(cases[i].text, path, sizeof path);

        assert_int_equal(found, cases[i].path != NULL);
        if (found) {
            assert_string_equal(path, cases[i].path);
        }
    }
}

/* Event files. */

struct bytes {
    char data[4096];
    size_t n;
};

static void
put(struct bytes *b, const void *data, size_t size)
{
    memcpy(b->data + b->n, data, size);
    b->n += size;
}

/* Numbers below 128 are one byte each as they are. */
static void
put_field(struct bytes *b, int number, int type, const void *data, size_t size)
{
    char key = number << 3 | type;

    put(b, &key, 1);
    if (type == 2) {
        char length = size;

        assert_true(size < 128);
        put(b, &length, 1);
    }
    put(b, data, size);
}

static uint32_t
masked(const void *data, size_t size)
{
    uint32_t crc = (OVS_FORCE uint32_t) crc32c(data, size);

    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

static void
put_record(struct bytes *b, const struct bytes *event)
{
    uint64_t length = event->n;
    uint32_t crc = masked(&length, sizeof length);

    put(b, &length, sizeof length);
    put(b, &crc, sizeof crc);
    crc = masked(event->data, event->n);
    put(b, event->data, event->n);
    put(b, &crc, sizeof crc);
}

enum how { SIMPLE, TENSOR_CONTENT, TENSOR_DOUBLE };

static void
put_event(struct bytes *b, const char *tag, char step, float number,
          enum how how)
{
    struct bytes tensor = { .n = 0 }, value = { .n = 0 };
    struct bytes summary = { .n = 0 }, event = { .n = 0 };
    double time = 1.5, wide = number;

    put_field(&value, 1, 2, tag, strlen(tag));
    if (how == SIMPLE) {
        put_field(&value, 2, 5, &number, sizeof number);
    } else {
        put_field(&tensor, 1, 0, how == TENSOR_CONTENT ? "\1" : "\2", 1);
        if (how == TENSOR_CONTENT) {
            put_field(&tensor, 4, 2, &number, sizeof number);
        } else {
            put_field(&tensor, 6, 2, &wide, sizeof wide);
        }
        put_field(&value, 8, 2, tensor.data, tensor.n);
    }
    put_field(&summary, 1, 2, value.data, value.n);
    put_field(&event, 1, 1, &time, sizeof time);
    put_field(&event, 2, 0, &step, 1);
    put_field(&event, 5, 2, summary.data, summary.n);
    put_record(b, &event);
}

static void
check_sums_are_those_of_the_format(void **state OVS_UNUSED)
{
    assert_int_equal(
        (OVS_FORCE uint32_t) crc32c((const uint8_t *) "123456789", 9),
        0xe3069283);
}

static void
event_files_tell_one_tag(void **state OVS_UNUSED)
{
    struct bytes b = { .n = 0 };
    size_t n;

    put_event(&b, "loss", 1, 3, SIMPLE);
    put_event(&b, "accuracy/val", 2, 0.5, SIMPLE);
    put_event(&b, "loss", 3, 2, SIMPLE);
    open_log("tfevents:/x,metric=accuracy/val");
    assert_true(log_decoder_feed(decoder, b.data, b.n));
    told(2, 0.5);
    assert_string_equal(last.metric, "accuracy_val");

    b.n = 0;
    put_event(&b, "accuracy/val", 4, 0.625, TENSOR_CONTENT);
    put_event(&b, "accuracy/val", 5, 0.75, TENSOR_DOUBLE);
    n = b.n;
    /* A byte at a time. */
    for (size_t i = 0; i < n; i++) {
        assert_true(log_decoder_feed(decoder, b.data + i, 1));
        if (i == n / 2) {
            told(4, 0.625);
        }
    }
    told(5, 0.75);

    /* From the middle. */
    put_event(&b, "accuracy/val", 6, 0.875, SIMPLE);
    log_decoder_restart(decoder, NULL, 0, true);
    assert_true(log_decoder_feed(decoder, b.data + 5, b.n - 5));
    told(6, 0.875);
    close_log();
}

static void
an_event_file_with_a_wrong_sum_is_bad(void **state OVS_UNUSED)
{
    struct bytes b = { .n = 0 };
    size_t n;

    put_event(&b, "loss", 1, 3, SIMPLE);
    n = b.n;
    put_event(&b, "loss", 2, 3, SIMPLE);
    for (size_t i = 0; i < n; i++) {
        b.data[n + i] ^= 1;
        open_log("tfevents:/x,metric=loss");
        assert_false(log_decoder_feed(decoder, b.data, b.n));
        told(1, 3);
        close_log();
        b.data[n + i] ^= 1;
    }
}

static void
large_records_are_passed_over(void **state OVS_UNUSED)
{
    struct bytes b = { .n = 0 };
    uint64_t length = 3 * LOG_MAX_EVENT + 11;
    uint32_t crc = masked(&length, sizeof length);
    char *zeros = xzalloc(65536);

    open_log("tfevents:/x,metric=loss");
    put(&b, &length, sizeof length);
    put(&b, &crc, sizeof crc);
    assert_true(log_decoder_feed(decoder, b.data, b.n));
    for (uint64_t left = length + 4; left; left -= MIN(left, 65536)) {
        assert_true(log_decoder_feed(decoder, zeros, MIN(left, 65536)));
    }
    b.n = 0;
    put_event(&b, "loss", 9, 0.5, SIMPLE);
    assert_true(log_decoder_feed(decoder, b.data, b.n));
    told(9, 0.5);
    close_log();
    free(zeros);
}

RUN_TESTS("log-decoder", NULL, NULL,
          cmocka_unit_test(json_lines_tell_the_keys_that_were_asked_for),
          cmocka_unit_test(numbers_that_are_none_are_not_taken),
          cmocka_unit_test(long_lines_and_zeros_are_passed_over),
          cmocka_unit_test(csv_finds_columns_by_the_head),
          cmocka_unit_test(expressions_find_numbers_in_lines),
          cmocka_unit_test(nothing_is_decoded_after_a_limit),
          cmocka_unit_test(mlflow_has_time_value_and_step),
          cmocka_unit_test(specifications_are_read_or_refused),
          cmocka_unit_test(paths_have_the_names_of_jobs),
          cmocka_unit_test(an_environment_is_searched_for_a_name),
          cmocka_unit_test(a_sender_is_in_the_cgroup_of_version_2),
          cmocka_unit_test(check_sums_are_those_of_the_format),
          cmocka_unit_test(event_files_tell_one_tag),
          cmocka_unit_test(an_event_file_with_a_wrong_sum_is_bad),
          cmocka_unit_test(large_records_are_passed_over))
