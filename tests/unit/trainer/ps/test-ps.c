/* SPDX-License-Identifier: Apache-2.0 */

/* Servers and workers, each a process, over the loopback interface. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit-test.h"

#define MAX_LINE 512
#define TIMEOUT_S 20            /* Of a whole test. */

struct process {
    pid_t pid;
    int in;                     /* Its standard input. */
    FILE *out;                  /* Its standard output. */
    int port;                   /* Where a server listens. */
};

/* The trainer lies in the build folder, as this test does. */
static void
exec_trainer(const char *const args[])
{
    char path[4096], *slash;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    const char *argv[64];
    int argc = 0;

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash) {
        strcpy(slash, "/../../trainer/stagecoach-trainer");
    }
    argv[argc++] = path;
    while (*args && argc < 63) {
        argv[argc++] = *args++;
    }
    argv[argc] = NULL;
    execv(path, (char **) argv);
    perror(path);
    _exit(127);
}

static struct process
start(const char *const args[])
{
    struct process p = { .port = 0 };
    int in[2], out[2];

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    p.pid = fork();
    assert_true(p.pid >= 0);
    if (!p.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        alarm(TIMEOUT_S);       /* Survives exec(): nothing hangs. */
        exec_trainer(args);
    }
    close(in[0]);
    close(out[1]);
    p.in = in[1];
    p.out = fdopen(out[0], "r");
    return p;
}

/* Reads lines until one of 'event', which it stores in 'line'. */
static bool
await(struct process *p, const char *event, char line[MAX_LINE])
{
    char wanted[64];

    snprintf(wanted, sizeof wanted, "{\"event\": \"%s\"", event);
    while (fgets(line, MAX_LINE, p->out)) {
        if (!strncmp(line, wanted, strlen(wanted))) {
            return true;
        }
    }
    return false;
}

static double
value(const char *line, const char *name)
{
    char wanted[64];
    const char *at;

    snprintf(wanted, sizeof wanted, "\"%s\": ", name);
    at = strstr(line, wanted);
    assert_non_null(at);
    return strtod(at + strlen(wanted), NULL);
}

/* Closes the process's input and returns its exit status, or 128 + signal. */
static int
finish(struct process *p)
{
    int status;

    if (p->in >= 0) {
        close(p->in);
    }
    fclose(p->out);
    while (waitpid(p->pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static struct process
start_server(int n_workers)
{
    char workers[8], line[MAX_LINE];
    const char *const args[] = { "server", "--workers", workers, NULL };
    struct process p;

    snprintf(workers, sizeof workers, "%d", n_workers);
    p = start(args);
    assert_true(await(&p, "listening", line));
    p.port = value(line, "port");
    return p;
}

static struct process
start_worker(int rank, int n_workers, const struct process servers[],
             int n_servers, const char *until)
{
    char numbers[2][16], addresses[4][32];
    const char *args[32] = {
        "worker", "--rank", numbers[0], "--workers", numbers[1],
        "--shape", "16,48,48,5", "--batch", "30", "--learning-rate", "0.05",
        "--samples", "512", "--validation", "128", "--iterations", until,
    };
    int n = 17;

    snprintf(numbers[0], sizeof numbers[0], "%d", rank);
    snprintf(numbers[1], sizeof numbers[1], "%d", n_workers);
    for (int i = 0; i < n_servers; i++) {
        snprintf(addresses[i], sizeof addresses[i], "127.0.0.1:%d",
                 servers[i].port);
        args[n++] = "--server";
        args[n++] = addresses[i];
    }
    return start(args);
}

struct outcome {
    double first, last;         /* Loss of the first and the last line. */
    double sent;                /* Bytes, of rank 0. */
};

/* Trains 60 iterations, in two parts. */
static struct outcome
train(int n_workers, int n_servers)
{
    struct process servers[4], workers[4];
    struct outcome outcome;
    char line[MAX_LINE];

    for (int i = 0; i < n_servers; i++) {
        servers[i] = start_server(n_workers);
    }
    for (int i = 0; i < n_workers; i++) {
        workers[i] = start_worker(i, n_workers, servers, n_servers, "20");
    }
    assert_true(await(&workers[0], "progress", line));
    outcome.first = value(line, "loss");
    for (int i = 0; i < n_workers; i++) {
        assert_true(await(&workers[i], "paused", line));
        assert_int_equal(value(line, "iteration"), 20);
    }
    for (int i = 0; i < n_workers; i++) {
        assert_int_equal(write(workers[i].in, "until 60\n", 9), 9);
    }
    for (int i = 0; i < n_workers; i++) {
        assert_true(await(&workers[i], "paused", line));
        assert_int_equal(value(line, "iteration"), 60);
    }
    assert_int_equal(write(workers[0].in, "stop\n", 5), 5);
    assert_true(await(&workers[0], "done", line));
    outcome.last = value(line, "loss");
    outcome.sent = value(line, "bytes_sent");
    for (int i = 0; i < n_workers; i++) {
        assert_int_equal(finish(&workers[i]), 0);
    }
    for (int i = 0; i < n_servers; i++) {
        assert_true(await(&servers[i], "done", line));
        assert_int_equal(finish(&servers[i]), 0);
    }
    return outcome;
}

UNIT_TEST(loss_falls_alike_for_any_workers_and_servers)
{
    struct outcome alone = train(1, 1), many = train(3, 2);

    assert_true(alone.last < 0.8 * alone.first);
    assert_true(many.first - alone.first < 1e-4
                && alone.first - many.first < 1e-4);
    assert_true(many.last - alone.last < 1e-4
                && alone.last - many.last < 1e-4);

    /* 60 gradients, the first weights, and little else. */
    const double parameters = 16 * 48 + 48 + 48 * 48 + 48 + 48 * 5 + 5;
    const double model = parameters * sizeof(float);

    assert_true(many.sent > 61 * model);
    assert_true(many.sent < 61 * model + 20000);
}

UNIT_TEST(a_killed_worker_ends_everybody)
{
    struct process server = start_server(2), workers[2];
    char line[MAX_LINE];

    for (int i = 0; i < 2; i++) {
        workers[i] = start_worker(i, 2, &server, 1, "100000000");
    }
    assert_true(await(&workers[0], "progress", line));
    kill(workers[1].pid, SIGKILL);
    assert_int_equal(finish(&workers[1]), 128 + SIGKILL);
    assert_false(await(&workers[0], "done", line));
    assert_int_equal(finish(&workers[0]), 1);
    assert_int_equal(finish(&server), 1);
}

UNIT_TEST(a_killed_server_ends_its_workers)
{
    struct process server = start_server(1), worker;
    char line[MAX_LINE];

    worker = start_worker(0, 1, &server, 1, "5");
    assert_true(await(&worker, "paused", line));
    kill(server.pid, SIGKILL);
    assert_int_equal(finish(&server), 128 + SIGKILL);
    assert_false(await(&worker, "done", line));
    assert_int_equal(finish(&worker), 1);
}

/* Waits until the process has arranged to hear of SIGTERM. */
static void
await_signal_handling(const struct process *p)
{
    unsigned long long caught = 0;
    char path[64], line[256];

    snprintf(path, sizeof path, "/proc/%d/status", (int) p->pid);
    for (int i = 0; i < 5000 && !(caught & 1 << (SIGTERM - 1)); i++) {
        FILE *stream = fopen(path, "re");

        assert_non_null(stream);
        while (fgets(line, sizeof line, stream)) {
            sscanf(line, "SigCgt: %llx", &caught);
        }
        fclose(stream);
        usleep(1000);
    }
    assert_true(caught & 1 << (SIGTERM - 1));
}

UNIT_TEST(sigterm_ends_a_server_and_a_worker_in_good_order)
{
    struct process server = start_server(2), worker;
    char line[MAX_LINE];

    /* The worker waits for the other one, which never comes. */
    worker = start_worker(0, 2, &server, 1, "5");
    await_signal_handling(&worker);
    kill(worker.pid, SIGTERM);
    assert_int_equal(finish(&worker), 0);

    /* The server may not even have heard of the worker. */
    assert_int_equal(finish(&server), 0);

    server = start_server(1);
    kill(server.pid, SIGTERM);
    assert_true(await(&server, "done", line));
    assert_int_equal(finish(&server), 0);
}

static int
connect_to(const struct process *server)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = htons(server->port),
        .sin_addr = { htonl(INADDR_LOOPBACK) },
    };
    struct timeval timeout = { .tv_sec = 5 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *) &sin, sizeof sin), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return fd;
}

/* Bytes that are no frame cost their sender the connection, and the training
 * nothing. */
UNIT_TEST(unknown_connections_do_not_disturb)
{
    struct process server = start_server(1), worker;
    char line[MAX_LINE], rest[512];
    int garbage, silent;

    garbage = connect_to(&server);
    silent = connect_to(&server);
    assert_true(write(garbage, "GET / HTTP/1.1\r\nHost: h0\r\n"
                      "Accept: everything\r\n\r\n", 49) > 0);
    while (read(garbage, rest, sizeof rest) > 0) {
        continue;
    }
    worker = start_worker(0, 1, &server, 1, "5");
    assert_true(await(&worker, "paused", line));
    assert_int_equal(finish(&worker), 0);
    assert_int_equal(finish(&server), 0);
    close(garbage);
    close(silent);
}

/* The first line has what "auto" selected; a GPU that is not there is an
 * error, a word that is no backend is misuse. */
UNIT_TEST(says_which_backend_computes)
{
    static const struct {
        const char *backend, *name;
        int status;
    } backends[] = {
        { "auto", "\"name\": \"cpu\"", 0 },
        { "cpu", "\"name\": \"cpu\"", 0 },
        { "cuda", NULL, 1 },
        { "abacus", NULL, 2 },
    };

    setenv("CUDA_VISIBLE_DEVICES", "", 1);      /* As if there were none. */
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        const char *const args[] = {
            "local",
            "--iterations",
            "1",
            "--samples",
            "8",
            "--validation",
            "8",
            "--backend",
            backends[i].backend,
            NULL,
        };
        struct process p = start(args);
        char line[MAX_LINE];

        assert_int_equal(await(&p, "backend", line), !!backends[i].name);
        if (backends[i].name) {
            assert_non_null(strstr(line, backends[i].name));
        }
        assert_int_equal(finish(&p), backends[i].status);
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(2 * TIMEOUT_S);
    return 0;
}
