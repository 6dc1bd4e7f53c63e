/* SPDX-License-Identifier: Apache-2.0 */

/* Files that jobs log to, which grow, shrink, go and lie. */

#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tail/log-job.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Time of a clock that stands still except in tests. */
static long long now_msec = 1000000;

static struct progress told;
static char dir[] = "/tmp/stagecoach-logs-XXXXXX";
static struct log_job job;
static struct log_spec spec;
static int n_told;

static void
on_tell(const struct progress *progress, void *aux OVS_UNUSED)
{
    told = *progress;
    n_told++;
}

/* Adds to 'name', or writes it anew. */
static void
put_file(const char *name, const char *text, const char *mode)
{
    FILE *stream = fopen(name, mode);

    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
}

static void
append_file(const char *name, const char *text)
{
    put_file(name, text, "a");
}

/* Lets the reader run until nothing is left to do for now, or until it ends.
 * Returns why it has ended, or NULL. */
static const char *
run_job(void)
{
    const char *ended = NULL;

    for (int i = 0; i < 20 && !ended; i++) {
        ended = log_job_run(&job, now_msec, on_tell, NULL);
        now_msec += 60;
    }
    return ended;
}

/* A test works in a directory of its own. */
static int
set_up(void **state OVS_UNUSED)
{
    strcpy(dir, "/tmp/stagecoach-logs-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    told.iteration = -1;
    n_told = 0;
    return 0;
}

/* Begins to read 'path' below the directory, with further keys. */
static void
begin(const char *format, const char *path, const char *keys)
{
    char *text = xasprintf("%s:%s/%s,%s", format, dir, path, keys);

    assert_null(log_spec_parse("log", text, &spec));
    log_job_init(&job, "asha/t0", &spec);
    free(text);
}

static int
tear_down(void **state OVS_UNUSED)
{
    char *command = xasprintf("rm -rf %s", dir);

    log_job_uninit(&job);
    log_spec_uninit(&spec);
    assert_int_equal(chdir("/") || system(command), 0);
    free(command);
    return 0;
}

/* Runs the reader, which must have told of this iteration last, -1 of none. */
static void
expect(int64_t iteration)
{
    run_job();
    assert_int_equal(told.iteration, iteration);
}

static struct tail_report
report(void)
{
    struct tail_report r = { .n_files = 0 };

    log_job_report(&job, &r);
    return r;
}

static void
a_line_is_told_once_it_is_complete(void **state OVS_UNUSED)
{
    begin("json-lines", "%c/%j.jsonl", "metric=loss");
    expect(-1);

    /* Neither directory nor file was there. */
    assert_int_equal(mkdir("asha", 0700), 0);
    run_job();
    append_file("asha/t0.jsonl", "{\"iteration\": 1, \"loss\": 3}\n{\"iter");
    expect(1);
    assert_int_equal(n_told, 1);
    append_file("asha/t0.jsonl", "ation\": 2, \"loss\": 2}\n");
    expect(2);
    assert_int_equal(n_told, 2);
    run_job();
    assert_int_equal(n_told, 2);
}

static void
files_are_rotated_truncated_and_removed(void **state OVS_UNUSED)
{
    append_file("log", "{\"iteration\": 100, \"loss\": 3}\n");
    begin("json-lines", "log", "metric=loss");
    expect(100);

    assert_int_equal(rename("log", "log.1"), 0);
    run_job();
    append_file("log", "{\"iteration\": 101, \"loss\": 3}\n");
    expect(101);
    append_file("log.1", "{\"iteration\": 102, \"loss\": 3}\n");
    expect(101);

    put_file("log", "{\"iteration\": 7}\n", "w");
    expect(7);

    assert_int_equal(unlink("log"), 0);
    run_job();
    assert_int_equal(report().n_files, 0);
    append_file("log", "{\"iteration\": 8}\n");
    expect(8);
}

static void
ten_gigabytes_are_not_read(void **state OVS_UNUSED)
{
    append_file("log", "{\"iteration\": 1}\n");
    assert_int_equal(truncate("log", 10LL << 30), 0);
    append_file("log", "\n{\"iteration\": 1000000, \"loss\": 1}\n");
    begin("json-lines", "log", "metric=loss");
    expect(1000000);
    assert_int_equal(n_told, 1);
    assert_true(report().skipped_bytes > (10LL << 30) - LOG_TAIL);

    /* More than the tail at once: the last value is what counts. */
    assert_int_equal(truncate("log", 11LL << 30), 0);
    append_file("log", "\n{\"iteration\": 1000001, \"loss\": 1}\n");
    expect(1000001);
    assert_true(report().skipped_bytes > (11LL << 30) - 3 * LOG_TAIL);
}

static void
only_regular_files_are_opened(void **state OVS_UNUSED)
{
    assert_int_equal(mkdir("other", 0700), 0);
    assert_int_equal(mkdir("asha", 0700), 0);
    append_file("other/log", "{\"iteration\": 1}\n");
    begin("json-lines", "%c/log", "metric=loss");

    assert_int_equal(symlink("../other/log", "asha/log"), 0);
    expect(-1);
    assert_int_equal(unlink("asha/log"), 0);
    assert_int_equal(mkfifo("asha/log", 0600), 0);
    expect(-1);
    assert_int_equal(report().n_files, 0);
    assert_int_equal(unlink("asha/log"), 0);
    append_file("asha/log", "{\"iteration\": 5}\n");
    expect(5);
}

/* The process has the rights of the job, so the kernel decides. */
static void
links_of_directories_are_followed(void **state OVS_UNUSED)
{
    assert_int_equal(mkdir("other", 0700), 0);
    append_file("other/log", "{\"iteration\": 1}\n");
    assert_int_equal(symlink("other", "asha"), 0);
    begin("json-lines", "%c/log", "metric=loss");
    expect(1);
    append_file("other/log", "{\"iteration\": 2}\n");
    expect(2);
}

static void
the_latest_of_many_files_are_read(void **state OVS_UNUSED)
{
    for (int i = 0; i < 3 * LOG_MAX_FILES; i++) {
        char *name = xasprintf("r%02d.jsonl", i);
        char *line = xasprintf("{\"iteration\": %d}\n", i);
        struct timespec times[2] = { { .tv_sec = 1000 + i },
                                     { .tv_sec = 1000 + i } };

        append_file(name, line);
        assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
        free(line);
        free(name);
    }
    begin("json-lines", "*.jsonl", "metric=loss");
    expect(3 * LOG_MAX_FILES - 1);
    assert_int_equal(n_told, LOG_MAX_FILES);
    assert_int_equal(report().n_files, LOG_MAX_FILES);
    append_file("new.jsonl", "{\"iteration\": 77}\n");
    run_job();
    assert_int_equal(n_told, LOG_MAX_FILES + 1);
    assert_int_equal(told.iteration, 77);
}

static void
a_bad_file_is_ignored_until_it_is_replaced(void **state OVS_UNUSED)
{
    append_file("events.1", "this is not a record of events");
    begin("tfevents", "events.*", "metric=loss");
    run_job();
    assert_int_equal(report().bad, 1);
    append_file("events.1", "nor is this");
    run_job();
    assert_int_equal(report().bad, 1);
    assert_int_equal(n_told, 0);
    assert_int_equal(unlink("events.1"), 0);
    append_file("events.1", "");
    run_job();
    assert_int_equal(report().bad, 0);
}

static void
an_exhausted_expression_ends_the_reader(void **state OVS_UNUSED)
{
    char line[4001];

    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    append_file("log", "1\n");
    begin("regex", "log", "iteration=(.|a)*([0-9])");
    assert_null(run_job());
    append_file("log", line);
    append_file("log", "\n");
    assert_non_null(strstr(run_job(), "more steps or memory"));
}

RUN_TESTS("log-job", NULL, NULL, TEST(a_line_is_told_once_it_is_complete),
          TEST(files_are_rotated_truncated_and_removed),
          TEST(ten_gigabytes_are_not_read),
          TEST(only_regular_files_are_opened),
          TEST(links_of_directories_are_followed),
          TEST(the_latest_of_many_files_are_read),
          TEST(a_bad_file_is_ignored_until_it_is_replaced),
          TEST(an_exhausted_expression_ends_the_reader))
