/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/ps-processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trainer/control.h"
#include "trainer/ps/address.h"
#include "trainer/sync/sync.h"

pid_t
ps_processes_fork(void)
{
    pid_t parent = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        alarm(PS_PROCESSES_LIMIT_S);
    }
    return pid;
}

static void
server_main(struct ps_server_config config, int out)
{
    const struct sync_spec bsp = { .class = &sync_bsp };
    int null = open("/dev/null", O_RDWR);

    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
    config.address = "127.0.0.1";
    config.sync = config.sync ? config.sync : &bsp;
    config.n_threads = 1;
    config.control = control_create(0);
    _exit(ps_server_run(&config) != NULL);
}

struct ps_process
ps_processes_server(struct ps_server_config config)
{
    struct ps_process server;
    const char *port;
    char line[256];
    FILE *stream;
    int out[2];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    server.pid = ps_processes_fork();
    if (!server.pid) {
        server_main(config, out[1]);
    }
    close(out[1]);
    stream = fdopen(out[0], "r");
    assert_non_null(fgets(line, sizeof line, stream));
    port = strstr(line, "\"port\": ");
    assert_non_null(port);
    server.port = atoi(port + 8);
    fclose(stream);
    return server;
}

int
ps_processes_await(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void
ps_processes_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    ps_processes_await(pid);
}

static bool
connect_to(const struct ps_process *server, int *fdp)
{
    struct pollfd writable = { .events = POLLOUT };
    char target[32];

    snprintf(target, sizeof target, "127.0.0.1:%d", server->port);
    if (address_connect(target, &writable.fd)) {
        return false;
    }
    poll(&writable, 1, -1);
    fcntl(writable.fd, F_SETFL, 0);
    *fdp = writable.fd;
    return true;
}

int
ps_processes_connect(const struct ps_process *server)
{
    int fd = -1;

    assert_true(connect_to(server, &fd));
    return fd;
}

/* Forwards once.  Returns false at the end of either side, or when the cut is
 * reached, which then has been carried exactly. */
static bool
forward(int from, int to, size_t *left)
{
    uint8_t bytes[16384];
    size_t most = left && *left < sizeof bytes ? *left : sizeof bytes;
    ssize_t n = recv(from, bytes, most, 0);

    if (n <= 0 || send(to, bytes, n, MSG_NOSIGNAL) != n) {
        return false;
    }
    if (left) {
        *left -= n;
    }
    return !left || *left;
}

static void
carry(int client, int server, struct ps_cut cut)
{
    struct pollfd fds[2] = {
        { .fd = client, .events = POLLIN }, { .fd = server, .events = POLLIN },
    };
    size_t *to_server = cut.to_server ? &cut.to_server : NULL;
    size_t *to_client = cut.to_client ? &cut.to_client : NULL;

    for (;;) {
        poll(fds, 2, -1);
        if (fds[0].revents && !forward(client, server, to_server)) {
            break;
        }
        if (fds[1].revents && !forward(server, client, to_client)) {
            break;
        }
    }
    close(client);
    close(server);
}

static void
proxy_main(const struct ps_process *server, int listener,
           const struct ps_cut cuts[], int n_cuts)
{
    for (int i = 0; ; i++) {
        struct ps_cut none = { 0, 0 };
        int client = accept(listener, NULL, NULL), fd;

        if (client < 0 || !connect_to(server, &fd)) {
            _exit(1);
        }
        carry(client, fd, i < n_cuts ? cuts[i] : none);
    }
}

struct ps_process
ps_processes_proxy(const struct ps_process *server,
                   const struct ps_cut cuts[], int n_cuts)
{
    struct ps_process proxy;
    uint16_t port;
    int listener;

    assert_null(address_listen("127.0.0.1", 0, &listener, &port));
    fcntl(listener, F_SETFL, 0);
    proxy.port = port;
    proxy.pid = ps_processes_fork();
    if (!proxy.pid) {
        proxy_main(server, listener, cuts, n_cuts);
    }
    close(listener);
    return proxy;
}
