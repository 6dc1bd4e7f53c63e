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
#include "agent/tail/tail-protocol.h"
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

/* Adds to 'name', or writes it again. */
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

static void
make_directory(void)
{
    strcpy(dir, "/tmp/stagecoach-logs-XXXXXX");
    assert_non_null(mkdtemp(dir));
}

/* Begins to read 'path' below the directory, with further keys. */
static void
begin(const char *format, const char *path, const char *keys)
{
    char *text = xasprintf("%s:%s/%s,%s", format, dir, path, keys);

    assert_null(log_spec_parse("log", text, &spec));
    log_job_init(&job, "asha/t0", &spec);
    n_told = 0;
    free(text);
}

static void
end(void)
{
    char *command = xasprintf("rm -rf %s", dir);

    log_job_uninit(&job);
    log_spec_uninit(&spec);
    assert_int_equal(system(command), 0);
    free(command);
}

static struct tail_report
report(void)
{
    struct tail_report r = { .n_files = 0 };

    log_job_report(&job, &r);
    return r;
}

UNIT_TEST(a_line_is_told_once_it_is_complete)
{
    make_directory();
    begin("json-lines", "%c/%j.jsonl", "metric=loss");
    run_job();
    assert_int_equal(n_told, 0);

    /* Neither directory nor file was there. */
    make_dir("asha");
    run_job();
    append_file("asha/t0.jsonl", "{\"iteration\": 1, \"loss\": 3}\n{\"iter");
    run_job();
    assert_int_equal(n_told, 1);
    assert_int_equal(told.iteration, 1);
    append_file("asha/t0.jsonl", "ation\": 2, \"loss\": 2}\n");
    run_job();
    assert_int_equal(n_told, 2);
    assert_int_equal(told.iteration, 2);
    run_job();
    assert_int_equal(n_told, 2);
    end();
}

UNIT_TEST(files_are_rotated_truncated_and_removed)
{
    char *from, *to;

    make_directory();
    from = xasprintf("%s/log", dir);
    to = xasprintf("%s/log.1", dir);
    append_file("log", "{\"iteration\": 100, \"loss\": 3}\n");
    begin("json-lines", "log", "metric=loss");
    run_job();
    assert_int_equal(told.iteration, 100);

    assert_int_equal(rename(from, to), 0);
    run_job();
    append_file("log", "{\"iteration\": 101, \"loss\": 3}\n");
    run_job();
    assert_int_equal(told.iteration, 101);
    append_file("log.1", "{\"iteration\": 102, \"loss\": 3}\n");
    run_job();
    assert_int_equal(told.iteration, 101);

    put_file("log", "{\"iteration\": 7}\n", "w");
    run_job();
    assert_int_equal(told.iteration, 7);

    assert_int_equal(unlink(from), 0);
    run_job();
    assert_int_equal(report().n_files, 0);
    append_file("log", "{\"iteration\": 8}\n");
    run_job();
    assert_int_equal(told.iteration, 8);
    free(from);
    free(to);
    end();
}

/* A logger rewrites its file in place when a column is new, at once or in
 * pieces, and the columns move: no number is taken from another column, and
 * nothing falls below what was reported. */
UNIT_TEST(a_rewritten_file_is_read_again)
{
    static const char *const heads[] = { "acc,step,loss\n", "loss,step,acc\n",
                                         "acc,loss,step\n" };
    static const char *const rows[] = { "9,%d,0.%03d\n", "0.%2$03d,%1$d,9\n",
                                        "9,0.%2$03d,%1$d\n" };

    for (unsigned int seed = 0; seed < 9; seed++) {
        int n = 100 + 17 * seed, way = seed % 3;

        make_directory();
        begin("csv", "log", "iteration=step,metric=loss");
        put_file("log", "loss,step\n", "w");
        for (int i = 1; i <= n; i++) {
            char *row = xasprintf("0.%03d,%d\n", i, i);

            append_file("log", row);
            free(row);
        }
        run_job();
        assert_int_equal(told.iteration, n);
        put_file("log", heads[way], "w");
        for (int i = 1; i <= n + 40; i++) {
            char *row = xasprintf(rows[way], i, i);

            append_file("log", row);
            free(row);
            if (seed > 2 && i % 20 == 0) {
                log_job_run(&job, now_msec += 110, on_tell, NULL);
                assert_true(told.iteration >= n);
            }
        }
        run_job();
        assert_int_equal(told.iteration, n + 40);
        assert_true(told.value == (n + 40) / 1000.0);
        assert_int_equal(report().malformed, 0);
        end();
    }
}

UNIT_TEST(ten_gigabytes_are_not_read)
{
    char *path;

    make_directory();
    path = xasprintf("%s/log", dir);
    append_file("log", "{\"iteration\": 1}\n");
    assert_int_equal(truncate(path, 10LL << 30), 0);
    append_file("log", "\n{\"iteration\": 1000000, \"loss\": 1}\n");
    begin("json-lines", "log", "metric=loss");
    run_job();
    assert_int_equal(n_told, 1);
    assert_int_equal(told.iteration, 1000000);
    assert_true(report().skipped_bytes > (10LL << 30) - LOG_TAIL);

    /* More than the tail at once: the last value is what counts. */
    assert_int_equal(truncate(path, 11LL << 30), 0);
    append_file("log", "\n{\"iteration\": 1000001, \"loss\": 1}\n");
    run_job();
    assert_int_equal(told.iteration, 1000001);
    assert_true(report().skipped_bytes > (11LL << 30) - 3 * LOG_TAIL);
    free(path);
    end();
}

UNIT_TEST(only_regular_files_are_opened)
{
    char *path, *other;

    make_directory();
    make_dir("other");
    make_dir("asha");
    append_file("other/log", "{\"iteration\": 1}\n");
    other = xasprintf("%s/other/log", dir);
    path = xasprintf("%s/asha/log", dir);
    begin("json-lines", "%c/log", "metric=loss");

    assert_int_equal(symlink(other, path), 0);
    run_job();
    assert_int_equal(n_told, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    run_job();
    assert_int_equal(n_told, 0);
    assert_int_equal(report().n_files, 0);
    assert_int_equal(unlink(path), 0);
    append_file("asha/log", "{\"iteration\": 5}\n");
    run_job();
    assert_int_equal(told.iteration, 5);
    free(path);
    free(other);
    end();
}

/* The process has the rights of the job, so the kernel decides. */
UNIT_TEST(links_of_directories_are_followed)
{
    char *path, *other;

    make_directory();
    make_dir("other");
    append_file("other/log", "{\"iteration\": 1}\n");
    other = xasprintf("%s/other", dir);
    path = xasprintf("%s/asha", dir);
    assert_int_equal(symlink(other, path), 0);
    begin("json-lines", "%c/log", "metric=loss");
    run_job();
    assert_int_equal(told.iteration, 1);
    append_file("other/log", "{\"iteration\": 2}\n");
    run_job();
    assert_int_equal(told.iteration, 2);
    free(path);
    free(other);
    end();
}

UNIT_TEST(the_latest_of_many_files_are_read)
{
    make_directory();
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
    begin("json-lines", "*.jsonl", "metric=loss");
    run_job();
    assert_int_equal(n_told, LOG_MAX_FILES);
    assert_int_equal(told.iteration, 3 * LOG_MAX_FILES - 1);
    assert_int_equal(report().n_files, LOG_MAX_FILES);
    append_file("new.jsonl", "{\"iteration\": 77}\n");
    run_job();
    assert_int_equal(n_told, LOG_MAX_FILES + 1);
    assert_int_equal(told.iteration, 77);
    end();
}

UNIT_TEST(an_exhausted_expression_ends_the_reader)
{
    char line[4001];

    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    make_directory();
    append_file("log", "1\n");
    begin("regex", "log", "iteration=(.|a)*([0-9])");
    assert_null(run_job());
    append_file("log", line);
    append_file("log", "\n");
    assert_non_null(strstr(run_job(), "more steps or memory"));
    end();
}
