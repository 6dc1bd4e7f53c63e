/* SPDX-License-Identifier: Apache-2.0 */

/* Files that jobs log to, which grow, shrink, go and lie. */

#include <config.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/progress/log-readers.h"
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

static struct progress told;
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
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
