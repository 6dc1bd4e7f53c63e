/* SPDX-License-Identifier: Apache-2.0 */

#include "ps-jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trainer/control.h"
#include "trainer/ps/optimiser.h"
#include "trainer/sync/sync.h"

int my_rank, n_workers = 1;

pid_t
start_process(void)
{
    pid_t parent = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        alarm(TIMEOUT_S);
    }
    return pid;
}

static void
server_main(struct ps_server_config config, int out, int errors)
{
    const struct sync_spec bsp = { .class = &sync_bsp };
    int null = open("/dev/null", O_RDWR);
    char *error;

    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
    config.address = "127.0.0.1";
    config.sync = config.sync ? config.sync : &bsp;
    config.n_threads = 1;
    config.control = control_create(0);
    error = ps_server_run(&config);
    if (error && write(errors, error, strlen(error)) < 0) {
        _exit(2);
    }
    _exit(error != NULL);
}

struct server
start_server(struct ps_server_config config)
{
    struct server server;
    char line[256];
    FILE *stream;
    int out[2], errors[2];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
    server.pid = start_process();
    if (!server.pid) {
        server_main(config, out[1], errors[1]);
    }
    close(out[1]);
    close(errors[1]);
    server.errors = errors[0];
    stream = fdopen(out[0], "r");
    assert_non_null(fgets(line, sizeof line, stream));
    assert_non_null(strstr(line, "\"port\": "));
    server.port = atoi(strstr(line, "\"port\": ") + 8);
    fclose(stream);
    return server;
}

int
await_end(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
await_server(const struct server *server, char error[256])
{
    int status = await_end(server->pid);
    ssize_t n = read(server->errors, error, 255);

    error[n > 0 ? n : 0] = '\0';
    close(server->errors);
    return status;
}

struct folder
make_folder(void)
{
    struct folder folder = { "/tmp/test-ps.XXXXXX" };

    assert_non_null(mkdtemp(folder.path));
    return folder;
}

int
remove_folder(const struct folder *folder, int shard)
{
    char path[128];
    int n = 0;

    for (int iteration = 0; iteration < 200; iteration++) {
        snprintf(path, sizeof path, "%s/shard-%d-of-2.%d", folder->path,
                 shard, iteration);
        n += !unlink(path);
    }
    rmdir(folder->path);
    return n;
}

char *
try_training(const struct server servers[], int n_servers,
             int64_t patience_us, int64_t deadline_us,
             struct ps_client **clientp)
{
    static char targets[2][32];
    static const char *names[2] = { targets[0], targets[1] };

    for (int i = 0; i < n_servers; i++) {
        snprintf(targets[i], sizeof targets[i], "127.0.0.1:%d",
                 servers[i].port);
    }
    return ps_client_create(&(struct ps_client_config) {
        .servers = names, .n_servers = n_servers, .rank = my_rank,
        .n_workers = n_workers, .n_parameters = N,
        .optimiser = optimiser_find("sum"), .patience_us = patience_us,
        .deadline_us = deadline_us,
    }, clientp);
}

struct ps_client *
connect_training(const struct server servers[], int n_servers,
                 int64_t deadline_us)
{
    struct ps_client *client;
    char *error = try_training(servers, n_servers, 10000000, deadline_us,
                               &client);

    if (error) {
        fail_msg("%s", error);
    }
    return client;
}

void
assert_counts(const float *weights, uint64_t iteration)
{
    for (int i = 0; i < N; i++) {
        assert_true(weights[i] == iteration);
    }
}

void
step(struct ps_client *client, uint64_t *iteration, float *weights)
{
    static float ones[N];
    double loss = 0.5;
    char *error;

    for (int i = 0; i < N; i++) {
        ones[i] = 1;
    }
    if (ps_client_exchange(client, iteration, ones, 1, &loss, weights,
                           &error) != PS_OK) {
        fail_msg("%s", error);
    }
    assert_counts(weights, *iteration);
}
