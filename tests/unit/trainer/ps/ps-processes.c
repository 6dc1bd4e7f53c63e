/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/trainer/ps/ps-processes.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
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
#include "trainer/groups/group-server.h"
#include "trainer/net/address.h"
#include "trainer/process/control.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/sync.h"

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

/* The socket stays open, bound: without that, another test gets the port
 * before our process has started. */
uint16_t
reserve_port(void)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    socklen_t size = sizeof sin;

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on),
                     0);
    assert_int_equal(bind(fd, (struct sockaddr *) &sin, sizeof sin), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &sin, &size), 0);
    return ntohs(sin.sin_port);
}

/* Makes this process one without input that writes to 'out'. */
static struct control *
become_server(int out)
{
    int null = open("/dev/null", O_RDWR);

    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
    return control_create(0);
}

static void
server_main(struct ps_server_config config, int out, int errors)
{
    const struct sync_spec bsp = { .class = &sync_bsp };
    char *error;

    config.address = "127.0.0.1";
    config.sync = config.sync ? config.sync : &bsp;
    config.central = &central_server;
    config.n_threads = 1;
    config.control = become_server(out);
    error = ps_server_run(&config);
    if (error && write(errors, error, strlen(error)) < 0) {
        _exit(2);
    }
    _exit(error != NULL);
}

/* Reads from 'fd' at which port a server listens. */
static int
read_port(int fd)
{
    FILE *stream = fdopen(fd, "r");
    const char *port;
    char line[256];

    assert_non_null(fgets(line, sizeof line, stream));
    port = strstr(line, "\"port\": ");
    assert_non_null(port);
    fclose(stream);
    return atoi(port + 8);
}

struct server
start_server(struct ps_server_config config)
{
    struct server server;
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
    server.port = read_port(out[0]);
    return server;
}

struct server
start_group_server(const struct server *central)
{
    struct server server = { .errors = -1 };
    char target[32];
    int out[2];

    snprintf(target, sizeof target, "127.0.0.1:%d", central->port);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    server.pid = start_process();
    if (!server.pid) {
        _exit(group_server_run(&(struct group_server_config) {
            .central = target, .address = "127.0.0.1",
            .reconnect_timeout_us = 200000, .control = become_server(out[1]),
        }) != NULL);
    }
    close(out[1]);
    server.port = read_port(out[0]);
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

void
kill_process(pid_t pid)
{
    kill(pid, SIGKILL);
    await_end(pid);
}

static bool
connect_to(const struct server *server, int *fdp)
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
connect_blocking(const struct server *server)
{
    int fd = -1;

    assert_true(connect_to(server, &fd));
    return fd;
}

char *
try_client(const struct server servers[], int n_servers,
           struct ps_client_config config, struct ps_client **clientp)
{
    static char targets[2][32];
    static const char *names[2] = { targets[0], targets[1] };

    for (int i = 0; i < n_servers; i++) {
        snprintf(targets[i], sizeof targets[i], "127.0.0.1:%d",
                 servers[i].port);
    }
    config.servers = names;
    config.n_servers = n_servers;
    config.optimiser = optimiser_find("sum");
    return ps_client_create(&config, clientp);
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
carry(int client, int server, struct cut cut)
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
proxy_main(const struct server *server, int listener,
           const struct cut cuts[], int n_cuts)
{
    for (int i = 0; ; i++) {
        struct cut none = { 0, 0 };
        int client = accept(listener, NULL, NULL), fd;

        if (client < 0 || !connect_to(server, &fd)) {
            _exit(1);
        }
        carry(client, fd, i < n_cuts ? cuts[i] : none);
    }
}

struct server
start_proxy(const struct server *server, const struct cut cuts[], int n_cuts)
{
    struct server proxy = { .errors = -1 };
    uint16_t port;
    int listener;

    assert_null(address_listen("127.0.0.1", 0, &listener, &port));
    fcntl(listener, F_SETFL, 0);
    proxy.port = port;
    proxy.pid = start_process();
    if (!proxy.pid) {
        proxy_main(server, listener, cuts, n_cuts);
    }
    close(listener);
    return proxy;
}
