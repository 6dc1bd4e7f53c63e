/* SPDX-License-Identifier: Apache-2.0 */

/* What jobs log: five formats, and files that grow, shrink, go and lie. */

#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/progress/log-decoder.h"
#include "agent/progress/log-environ.h"
#include "agent/progress/log-file.h"
#include "agent/progress/log-readers.h"
#include "agent/progress/log-spec.h"
#include "agent/progress/sender.h"
#include "crc32c.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

/* Time goes on when a test says so. */
static long long now_msec = 1000000;

long long __wrap_time_msec(void);

long long
__wrap_time_msec(void)
{
    return now_msec;
}

static struct log_spec spec;
static struct log_decoder *decoder;
static struct progress told;

static void
open_decoder(const char *text)
{
    char *error = log_spec_parse("--log", text, &spec);

    assert_null(error);
    decoder = log_decoder_create(&spec);
    log_decoder_restart(decoder, NULL, 0, false);
}

static void
close_decoder(void)
{
    log_decoder_destroy(decoder);
    log_spec_uninit(&spec);
}

static bool
feed(const char *text)
{
    return log_decoder_feed(decoder, text, strlen(text));
}

/* What was fed last says 'iteration' and 'value'. */
static void
assert_told(int64_t iteration, double value)
{
    assert_true(log_decoder_take(decoder, &told));
    assert_int_equal(told.iteration, iteration);
    assert_true(told.has_value);
    assert_true(fabs(told.value - value) < 1e-6);
}

static void
assert_nothing_told(void)
{
    assert_false(log_decoder_take(decoder, &told));
}

static void
json_lines_tell_the_keys_that_were_asked_for(void **state OVS_UNUSED)
{
    open_decoder("json-lines:/x,iteration=training_iteration,"
                 "metric=mean_accuracy,stage=rung");
    feed("{\"training_iteration\": 3, \"mean_accuracy\": 0.25, "
         "\"config\": {\"lr\": [1]}, \"rung\": 1}\n");
    assert_told(3, 0.25);
    assert_int_equal(told.stage, 1);
    assert_string_equal(told.metric, "mean_accuracy");

    /* In pieces; what is not complete says nothing. */
    feed("{\"training_iteration\": \"4\", \"mean_");
    assert_nothing_told();
    feed("accuracy\": 0.5}");
    assert_nothing_told();
    feed("\r\n{\"training_iteration\": 5, \"mean_accuracy\": 0.75}\n{");
    assert_told(5, 0.75);
    assert_nothing_told();
    close_decoder();
}

static void
numbers_that_are_none_are_not_taken(void **state OVS_UNUSED)
{
    open_decoder("json-lines:/x,metric=loss");
    feed("{\"iteration\": -1, \"loss\": 1}\n{\"iteration\": 1.5}\n"
         "{\"iteration\": 1e300}\n{\"iteration\": null}\n[1]\nnot json\n"
         "{\"iteration\": \"inf\"}\n{\"iteration\": \"0x10\"}\n");
    assert_nothing_told();
    /* A loss that diverged: the iteration counts. */
    feed("{\"iteration\": 7, \"loss\": 1e999}\n");
    assert_true(log_decoder_take(decoder, &told));
    assert_int_equal(told.iteration, 7);
    assert_false(told.has_value);
    feed("{\"iteration\": 8, \"loss\": 0.5}\n{\"iteration\": 9, "
         "\"loss\": \"nan\"}\n");
    assert_told(9, 0.5);
    close_decoder();
}

static void
long_lines_and_zeros_are_passed_over(void **state OVS_UNUSED)
{
    char *piece = xmalloc(10000);

    memset(piece, 'x', 10000);
    open_decoder("json-lines:/x,metric=loss");
    for (int i = 0; i < 1000; i++) {
        assert_true(log_decoder_feed(decoder, piece, 10000));
    }
    feed("\n{\"iteration\": 1, \"loss\": 2}\n");
    assert_told(1, 2);
    log_decoder_feed(decoder, "{\"iteration\": 5}\0{}\n", 20);
    assert_nothing_told();
    assert_int_equal(log_decoder_counts(decoder)->malformed, 2);
    assert_int_equal(log_decoder_counts(decoder)->records, 3);
    close_decoder();
    free(piece);
}

static void
csv_finds_columns_by_the_head(void **state OVS_UNUSED)
{
    static const char head[] = "epoch,\"val, \"\"acc\"\"\",step\n1,0.5,10\n";

    open_decoder("csv:/x,iteration=step,metric=val, \"acc\"");
    assert_string_equal(spec.name, "val");
    feed(head);
    assert_told(10, 0.5);
    /* A field that is empty has no value. */
    feed("2,,20\n");
    assert_told(20, 0.5);
    feed("2,0.625\n3,0.75,x\n");
    assert_nothing_told();
    assert_int_equal(log_decoder_counts(decoder)->malformed, 2);

    /* In the middle of a file the head is known and the rest of a line is
     * not one. */
    log_decoder_restart(decoder, head, strlen(head), true);
    feed("5,7\n3,0.875,30\n");
    assert_told(30, 0.875);

    /* Another file has other columns. */
    log_decoder_restart(decoder, NULL, 0, false);
    feed("step,loss,\"val, \"\"acc\"\"\"\n40,9,1\n");
    assert_told(40, 1);
    log_decoder_restart(decoder, NULL, 0, false);
    feed("a,b,c\n1,2,3\n");
    assert_nothing_told();
    close_decoder();
}

static void
expressions_find_numbers_in_lines(void **state OVS_UNUSED)
{
    open_decoder("regex:/x,iteration=step[ =]+([0-9]+),"
                 "metric=loss: ([0-9.e-]+),name=train_loss");
    feed("hello\nstep 12 of 100, loss: 1.5e-1x\n");
    assert_told(12, 0.15);
    assert_string_equal(told.metric, "train_loss");
    feed("step=13\nloss: 0.125\n");
    assert_told(13, 0.125);
    feed("step 99999999999999999999999999 loss: ..\n");
    assert_nothing_told();
    close_decoder();
}

static void
mlflow_has_time_value_and_step(void **state OVS_UNUSED)
{
    open_decoder("mlflow:/mlruns/*/*/metrics/val_loss");
    feed("1700000000000 0.5 3\n1700000000001 0.25 4\n1700000000002 0.2");
    assert_told(4, 0.25);
    assert_string_equal(told.metric, "val_loss");
    feed("\nnonsense\n1700000000001 NaN 6\n");
    assert_told(6, 0.25);
    close_decoder();
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
    assert_int_equal((OVS_FORCE uint32_t) crc32c(
                         (const uint8_t *) "123456789", 9), 0xe3069283);
}

static void
event_files_tell_one_tag(void **state OVS_UNUSED)
{
    struct bytes b = { .n = 0 };
    size_t n;

    put_event(&b, "loss", 1, 3, SIMPLE);
    put_event(&b, "accuracy/val", 2, 0.5, SIMPLE);
    put_event(&b, "loss", 3, 2, SIMPLE);
    open_decoder("tfevents:/x,metric=accuracy/val");
    assert_true(log_decoder_feed(decoder, b.data, b.n));
    assert_told(2, 0.5);
    assert_string_equal(told.metric, "accuracy_val");

    b.n = 0;
    put_event(&b, "accuracy/val", 4, 0.625, TENSOR_CONTENT);
    put_event(&b, "accuracy/val", 5, 0.75, TENSOR_DOUBLE);
    n = b.n;
    /* A byte at a time. */
    for (size_t i = 0; i < n; i++) {
        assert_true(log_decoder_feed(decoder, b.data + i, 1));
        if (i == n / 2) {
            assert_told(4, 0.625);
        }
    }
    assert_told(5, 0.75);

    /* From the middle. */
    put_event(&b, "accuracy/val", 6, 0.875, SIMPLE);
    log_decoder_restart(decoder, NULL, 0, true);
    assert_true(log_decoder_feed(decoder, b.data + 5, b.n - 5));
    assert_told(6, 0.875);
    close_decoder();
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
        open_decoder("tfevents:/x,metric=loss");
        assert_false(log_decoder_feed(decoder, b.data, b.n));
        assert_told(1, 3);
        close_decoder();
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

    open_decoder("tfevents:/x,metric=loss");
    put(&b, &length, sizeof length);
    put(&b, &crc, sizeof crc);
    assert_true(log_decoder_feed(decoder, b.data, b.n));
    for (uint64_t left = length + 4; left; left -= MIN(left, 65536)) {
        assert_true(log_decoder_feed(decoder, zeros, MIN(left, 65536)));
    }
    b.n = 0;
    put_event(&b, "loss", 9, 0.5, SIMPLE);
    assert_true(log_decoder_feed(decoder, b.data, b.n));
    assert_told(9, 0.5);
    close_decoder();
    free(zeros);
}

/* Files. */

static char dir[] = "/tmp/stagecoach-logs-XXXXXX";
static struct log_readers *readers;
static int n_told;
static char told_job[PROGRESS_NAME_SIZE];

static void
on_tell(const char *job, const struct progress *progress,
        void *aux OVS_UNUSED)
{
    ovs_strlcpy(told_job, job, sizeof told_job);
    told = *progress;
    n_told++;
}

/* Adds to 'name', or writes it anew. */
static void
put_file(const char *name, const char *text, const char *mode)
{
    char *path = xasprintf("%s/%s", dir, name);
    FILE *stream = fopen(path, mode);

    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
    free(path);
}

static void
append_file(const char *name, const char *text)
{
    put_file(name, text, "a");
}

static void
make_dir(const char *name)
{
    char *path = xasprintf("%s/%s", dir, name);

    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
}

/* Lets the readers run until nothing is left to do for now, by a clock that
 * stands still but for us. */
static void
run_readers(void)
{
    for (int i = 0; i < 20; i++) {
        log_readers_run(readers);
        now_msec += 60;
    }
}

/* Writes rules with one that has 'text', and lets the readers load them. */
static char *
load_rules(const char *text)
{
    char *rules = xasprintf("{\"readers\": [{\"match\": {\"cojob\": "
                            "\"asha*\"}, %s}]}", text);
    char *file = xasprintf("%s/rules.json", dir);
    char *error;

    put_file("rules.json", rules, "w");
    error = log_readers_load(readers, file);
    free(file);
    free(rules);
    return error;
}

static void
load_rule(const char *format, const char *path)
{
    char *text = xasprintf("\"format\": \"%s\", \"path\": \"%s/%s\", "
                           "\"metric\": \"loss\"", format, dir, path);

    assert_null(load_rules(text));
    free(text);
}

/* Readers of JSON lines in 'path', in a new directory. */
static void
open_readers(const char *path)
{
    strcpy(dir, "/tmp/stagecoach-logs-XXXXXX");
    assert_non_null(mkdtemp(dir));
    readers = log_readers_create(NULL, on_tell, NULL);
    load_rule("json-lines", path);
    n_told = 0;
}

static void
close_readers(void)
{
    char *command = xasprintf("rm -rf %s", dir);

    log_readers_destroy(readers);
    assert_int_equal(system(command), 0);
    free(command);
}

static int64_t
member(const char *name)
{
    struct json *json = log_readers_to_json(readers);
    int64_t value;

    assert_int_equal(json_array(json)->n, 1);
    value = json_integer(shash_find_data(
        json_object(json_array(json)->elems[0]), name));
    json_destroy(json);
    return value;
}

static void
a_line_is_told_once_it_is_complete(void **state OVS_UNUSED)
{
    open_readers("%c/%j.jsonl");
    log_readers_job_begin(readers, "asha/t0");
    log_readers_job_begin(readers, "other/t0");
    run_readers();
    assert_int_equal(n_told, 0);

    /* Neither directory nor file was there. */
    make_dir("asha");
    run_readers();
    append_file("asha/t0.jsonl", "{\"iteration\": 1, \"loss\": 3}\n{\"iter");
    run_readers();
    assert_int_equal(n_told, 1);
    assert_string_equal(told_job, "asha/t0");
    assert_int_equal(told.iteration, 1);
    append_file("asha/t0.jsonl", "ation\": 2, \"loss\": 2}\n");
    run_readers();
    assert_int_equal(n_told, 2);
    assert_int_equal(told.iteration, 2);
    run_readers();
    assert_int_equal(n_told, 2);

    log_readers_job_end(readers, "asha/t0");
    append_file("asha/t0.jsonl", "{\"iteration\": 3}\n");
    run_readers();
    assert_int_equal(n_told, 2);
    close_readers();
}

static void
files_are_rotated_truncated_and_removed(void **state OVS_UNUSED)
{
    char *from, *to;

    open_readers("log");
    from = xasprintf("%s/log", dir);
    to = xasprintf("%s/log.1", dir);
    append_file("log", "{\"iteration\": 100, \"loss\": 3}\n");
    log_readers_job_begin(readers, "asha/t0");
    run_readers();
    assert_int_equal(told.iteration, 100);

    assert_int_equal(rename(from, to), 0);
    run_readers();
    append_file("log", "{\"iteration\": 101, \"loss\": 3}\n");
    run_readers();
    assert_int_equal(told.iteration, 101);
    append_file("log.1", "{\"iteration\": 102, \"loss\": 3}\n");
    run_readers();
    assert_int_equal(told.iteration, 101);

    put_file("log", "{\"iteration\": 7}\n", "w");
    run_readers();
    assert_int_equal(told.iteration, 7);

    assert_int_equal(unlink(from), 0);
    run_readers();
    assert_int_equal(member("files"), 0);
    append_file("log", "{\"iteration\": 8}\n");
    run_readers();
    assert_int_equal(told.iteration, 8);
    free(from);
    free(to);
    close_readers();
}

static void
ten_gigabytes_are_not_read(void **state OVS_UNUSED)
{
    char *path;

    open_readers("log");
    path = xasprintf("%s/log", dir);
    append_file("log", "{\"iteration\": 1}\n");
    assert_int_equal(truncate(path, 10LL << 30), 0);
    append_file("log", "\n{\"iteration\": 1000000, \"loss\": 1}\n");
    log_readers_job_begin(readers, "asha/t0");
    run_readers();
    assert_int_equal(n_told, 1);
    assert_int_equal(told.iteration, 1000000);
    assert_true(member("skipped_bytes") > (10LL << 30) - LOG_TAIL);

    /* More than the tail at once: the last value is what counts. */
    assert_int_equal(truncate(path, 11LL << 30), 0);
    append_file("log", "\n{\"iteration\": 1000001, \"loss\": 1}\n");
    run_readers();
    assert_int_equal(told.iteration, 1000001);
    assert_true(member("skipped_bytes") > (11LL << 30) - 3 * LOG_TAIL);
    free(path);
    close_readers();
}

static void
only_regular_files_are_opened(void **state OVS_UNUSED)
{
    char *path, *secret;

    open_readers("%c/log");
    make_dir("secret");
    append_file("secret/log", "{\"iteration\": 1}\n");
    secret = xasprintf("%s/secret", dir);
    path = xasprintf("%s/asha", dir);

    /* A directory that is a link, behind the fixed part of the path. */
    assert_int_equal(symlink(secret, path), 0);
    log_readers_job_begin(readers, "asha/t0");
    run_readers();
    assert_int_equal(n_told, 0);
    assert_int_equal(unlink(path), 0);
    free(path);

    make_dir("asha");
    path = xasprintf("%s/asha/log", dir);
    free(secret);
    secret = xasprintf("%s/secret/log", dir);
    assert_int_equal(symlink(secret, path), 0);
    run_readers();
    assert_int_equal(n_told, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    run_readers();
    assert_int_equal(n_told, 0);
    assert_int_equal(member("files"), 0);
    assert_int_equal(unlink(path), 0);
    append_file("asha/log", "{\"iteration\": 5}\n");
    run_readers();
    assert_int_equal(told.iteration, 5);
    free(path);
    free(secret);
    close_readers();
}

static void
the_latest_of_many_files_are_read(void **state OVS_UNUSED)
{
    open_readers("*.jsonl");
    for (int i = 0; i < 3 * LOG_MAX_FILES; i++) {
        char *name = xasprintf("r%02d.jsonl", i);
        char *path = xasprintf("%s/%s", dir, name);
        char *line = xasprintf("{\"iteration\": %d}\n", i);
        struct timespec times[2] = { { .tv_sec = 1000 + i },
                                     { .tv_sec = 1000 + i } };

        append_file(name, line);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        free(line);
        free(path);
        free(name);
    }
    log_readers_job_begin(readers, "asha/t0");
    run_readers();
    assert_int_equal(n_told, LOG_MAX_FILES);
    assert_int_equal(told.iteration, 3 * LOG_MAX_FILES - 1);
    assert_int_equal(member("files"), LOG_MAX_FILES);
    append_file("new.jsonl", "{\"iteration\": 77}\n");
    run_readers();
    assert_int_equal(n_told, LOG_MAX_FILES + 1);
    assert_int_equal(told.iteration, 77);
    close_readers();
}

static void
a_bad_file_is_ignored_until_it_is_replaced(void **state OVS_UNUSED)
{
    char *path;

    open_readers("unused");
    load_rule("tfevents", "events.*");
    path = xasprintf("%s/events.1", dir);
    append_file("events.1", "this is not a record of events");
    log_readers_job_begin(readers, "asha/t0");
    run_readers();
    assert_int_equal(member("bad"), 1);
    append_file("events.1", "nor is this");
    run_readers();
    assert_int_equal(member("bad"), 1);
    assert_int_equal(n_told, 0);
    assert_int_equal(unlink(path), 0);
    append_file("events.1", "");
    run_readers();
    assert_int_equal(member("bad"), 0);
    free(path);
    close_readers();
}

static void
bad_rules_leave_what_was_there(void **state OVS_UNUSED)
{
    char *error;

    open_readers("log");
    append_file("log", "{\"iteration\": 1}\n");
    log_readers_job_begin(readers, "asha/t0");
    run_readers();
    error = load_rules("\"format\": \"xml\"");
    assert_non_null(strstr(error, "/readers/0/format"));
    free(error);
    append_file("log", "{\"iteration\": 2}\n");
    run_readers();
    assert_int_equal(told.iteration, 2);
    close_readers();
}

/* Specifications. */

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
            assert_non_null(strstr(error, cases[i].error));
            free(error);
        } else {
            assert_null(error);
            log_spec_uninit(&spec);
        }
    }
}

static void
paths_have_the_names_of_jobs(void **state OVS_UNUSED)
{
    char *path;

    assert_null(log_spec_parse("--log", "csv:/a,b/%c/100%%%j,stage=rung,"
                               "iteration=x=y,z", &spec));
    assert_string_equal(spec.path, "/a,b/%c/100%%%j");
    assert_string_equal(spec.stage, "rung");
    assert_string_equal(spec.iteration, "x=y,z");
    assert_int_equal(log_spec_fixed(&spec), 5);
    path = log_spec_path(&spec, "asha", "t0");
    assert_string_equal(path, "/a,b/asha/100%t0");
    free(path);
    log_spec_uninit(&spec);
}

static void
an_environment_is_searched_for_a_name(void **state OVS_UNUSED)
{
    static const char text[] = "A=1\0STAGECOACH_LOGS=x\0STAGECOACH_LOG=csv:/a";
    char *value = log_environ_get(text, sizeof text, LOG_ENVIRON);

    assert_string_equal(value, "csv:/a");
    free(value);
    assert_null(log_environ_get(text, sizeof text - 1, LOG_ENVIRON));
    assert_null(log_environ_get(text, 0, LOG_ENVIRON));
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
        bool found = sender_cgroup_path(cases[i].text, path, sizeof path);

        assert_int_equal(found, cases[i].path != NULL);
        if (found) {
            assert_string_equal(path, cases[i].path);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_lines_tell_the_keys_that_were_asked_for),
        cmocka_unit_test(numbers_that_are_none_are_not_taken),
        cmocka_unit_test(long_lines_and_zeros_are_passed_over),
        cmocka_unit_test(csv_finds_columns_by_the_head),
        cmocka_unit_test(expressions_find_numbers_in_lines),
        cmocka_unit_test(mlflow_has_time_value_and_step),
        cmocka_unit_test(check_sums_are_those_of_the_format),
        cmocka_unit_test(event_files_tell_one_tag),
        cmocka_unit_test(an_event_file_with_a_wrong_sum_is_bad),
        cmocka_unit_test(large_records_are_passed_over),
        cmocka_unit_test(specifications_are_read_or_refused),
        cmocka_unit_test(paths_have_the_names_of_jobs),
        cmocka_unit_test(an_environment_is_searched_for_a_name),
        cmocka_unit_test(a_sender_is_in_the_cgroup_of_version_2),
        cmocka_unit_test(a_line_is_told_once_it_is_complete),
        cmocka_unit_test(files_are_rotated_truncated_and_removed),
        cmocka_unit_test(ten_gigabytes_are_not_read),
        cmocka_unit_test(only_regular_files_are_opened),
        cmocka_unit_test(the_latest_of_many_files_are_read),
        cmocka_unit_test(a_bad_file_is_ignored_until_it_is_replaced),
        cmocka_unit_test(bad_rules_leave_what_was_there),
    };

    return cmocka_run_group_tests_name("log-readers", tests, NULL, NULL);
}
