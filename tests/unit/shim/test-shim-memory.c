/* SPDX-License-Identifier: Apache-2.0 */

/* Out of memory: NULL is success for functions that return a message, so none
 * of them may return NULL because there was no memory for the message. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/capture/file.h"
#include "shim/control/server.h"
#include "shim/control/show.h"
#include "shim/options.h"
#include "shim/replay/rules.h"
#include "tests/unit/unit-test.h"

#define MAX_ALLOCATIONS 200

/* Exit status of a child. */
enum {
    FINISHED,                   /* With an object or with a message. */
    FALSE_SUCCESS,              /* No message, and no object. */
    ALL_ALLOCATED,              /* FINISHED, and no allocation failed. */
};

static char dir[] = "/tmp/stagecoach-memory-XXXXXX";
static char in[64], out[64];

static bool fails;              /* Allocations fail after 'n_left' more. */
static unsigned int n_left, n_failed;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_reallocarray(void *, size_t, size_t);
char *__real_strdup(const char *);
int __real_vasprintf(char **, const char *, va_list);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_reallocarray(void *, size_t, size_t);
char *__wrap_strdup(const char *);
int __wrap_vasprintf(char **, const char *, va_list)
    __attribute__((__format__(__printf__, 2, 0)));
int __wrap_asprintf(char **, const char *, ...)
    __attribute__((__format__(__printf__, 2, 3)));

static bool
allows(void)
{
    if (fails && !n_left) {
        n_failed++;
        return false;
    }
    n_left -= fails;
    return true;
}

void *
__wrap_malloc(size_t size)
{
    return allows() ? __real_malloc(size) : NULL;
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return allows() ? __real_calloc(n, size) : NULL;
}

void *
__wrap_realloc(void *p, size_t size)
{
    return allows() ? __real_realloc(p, size) : NULL;
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return allows() ? __real_reallocarray(p, n, size) : NULL;
}

char *
__wrap_strdup(const char *s)
{
    return allows() ? __real_strdup(s) : NULL;
}

int
__wrap_vasprintf(char **s, const char *format, va_list args)
{
    return allows() ? __real_vasprintf(s, format, args) : -1;
}

int
__wrap_asprintf(char **s, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = __wrap_vasprintf(s, format, args);
    va_end(args);
    return n;
}

/* Each calls a function and returns false if that returned neither a message
 * nor what it should have made. */
static bool
opens_a_capture(void)
{
    struct capture_reader *reader;

    return capture_open(in, &reader) || reader;
}

static bool
reports_a_missing_capture(void)
{
    struct capture_reader *reader;

    return capture_open("/nonexistent", &reader);
}

static bool
creates_a_capture(void)
{
    struct capture_writer *writer;

    return capture_create(out, &writer) || writer;
}

static bool
reports_a_bad_socket(void)
{
    const struct server_config config = { .publish_later = false };
    struct server *server;

    return server_create(in, &config, &server);
}

static bool
reports_a_bad_port(void)
{
    struct port_spec spec;

    return port_spec_parse("pigeon:post", &spec);
}

static bool
reports_a_bad_option(void)
{
    char *argv[] = { (char *) "shim", (char *) "--mtu=3", NULL };
    struct options options;

    return options_parse(2, argv, &options);
}

static bool
reports_a_missing_shim(void)
{
    return shim_show("/nonexistent", stdout);
}

static bool
reads_rules(void)
{
    struct replay_rules *rules;

    return replay_rules_read("tests/replay-rules/good/most.json", &rules)
           || rules;
}

/* Runs 'call' in a child with allocations that fail after the first 'n'.
 * Returns its exit status, FINISHED if it has aborted. */
static int
run_with(bool (*call)(void), unsigned int n)
{
    pid_t pid = fork();
    int status;

    if (!pid) {
        const struct rlimit no_core = { 0, 0 };
        bool is_true;

        setrlimit(RLIMIT_CORE, &no_core);
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(EXIT_FAILURE);
        }
        signal(SIGABRT, SIG_DFL);
        n_left = n;
        fails = true;
        is_true = call();
        fails = false;
        _exit(!is_true ? FALSE_SUCCESS : n_failed ? FINISHED : ALL_ALLOCATED);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGABRT);
        return FINISHED;
    }
    return WEXITSTATUS(status);
}

UNIT_TEST(no_failed_allocation_reads_as_success)
{
    static const struct {
        const char *name;
        bool (*call)(void);
    } calls[] = {
        { "opens a capture", opens_a_capture },
        { "reports a missing capture", reports_a_missing_capture },
        { "creates a capture", creates_a_capture },
        { "reports a bad socket", reports_a_bad_socket },
        { "reports a bad port", reports_a_bad_port },
        { "reports a bad option", reports_a_bad_option },
        { "reports a missing shim", reports_a_missing_shim },
        { "reads rules", reads_rules },
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int status = FINISHED;

        for (unsigned int n = 0; status != ALL_ALLOCATED; n++) {
            status = run_with(calls[i].call, n);
            if ((status != FINISHED && status != ALL_ALLOCATED)
                || n == MAX_ALLOCATIONS) {
                fail_msg("%s: status %d if %u allocations succeed",
                         calls[i].name, status, n);
            }
        }
    }
}

int
unit_test_set_up(void **state)
{
    static const uint8_t data[60] = { 0 };
    const struct capture_frame frame = {
        .time = 1, .data = data, .captured = sizeof data,
        .length = sizeof data,
    };
    struct capture_writer *w;

    if (!mkdtemp(dir)) {
        return -1;
    }
    snprintf(in, sizeof in, "%s/in", dir);
    snprintf(out, sizeof out, "%s/out", dir);
    if (capture_create(in, &w)) {
        return -1;
    }
    capture_write(w, &frame);
    return capture_finish(w) ? -1 : 0;
}

int
unit_test_tear_down(void **state)
{
    unlink(in);
    unlink(out);
    return rmdir(dir);
}
