/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/bench-processes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/net/address.h"
#include "trainer/net/link.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/ps/server.h"
#include "trainer/ps/store-client.h"
#include "trainer/schemes/sync.h"

static bool
move_all(int fd, uint8_t *bytes, size_t n, bool out)
{
    while (n) {
        ssize_t moved = out ? send(fd, bytes, n, MSG_NOSIGNAL)
                            : recv(fd, bytes, n, 0);

        if (moved <= 0 && (!moved || errno != EINTR)) {
            return false;
        }
        bytes += moved > 0 ? moved : 0;
        n -= moved > 0 ? moved : 0;
    }
    return true;
}

/* Receives and sends bytes until the connection ends. */
static void
plain_main(int fd)
{
    const size_t size = BENCH_PROCESSES_VALUES * sizeof(float);
    uint8_t *bytes = allocate(size, 1);
    struct bench_request request;

    while (move_all(fd, (uint8_t *) &request, sizeof request, false)) {
        uint64_t left = request.to;

        while (left) {
            size_t n = left < size ? left : size;

            move_all(fd, bytes, n, false);
            left -= n;
        }
        move_all(fd, bytes, request.from, true);
    }
    free(bytes);
}

/* Pins this process to processor number 'place' of those that it may use, if
 * there are two: the client on one, the server and the plain process on the
 * other.  Otherwise the kernel may place one pair together and the other apart
 * for a whole run, and a message within a processor takes half the time. */
static void
pin_processor(int place)
{
    static cpu_set_t all;
    cpu_set_t one;

    if (!CPU_COUNT(&all) && sched_getaffinity(0, sizeof all, &all)) {
        return;
    }
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all) && !place--) {
            CPU_SET(i, &one);
        }
    }
    if (CPU_COUNT(&all) > 1 && sched_setaffinity(0, sizeof one, &one)) {
        fprintf(stderr, "bench: processors not chosen: %s\n",
                strerror(errno));
    }
}

static pid_t
start_process(void)
{
    pid_t parent = getpid(), pid;

    fflush(stdout);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        pin_processor(1);
    }
    return pid;
}

static char *
start_plain(pid_t *pidp, int *fdp)
{
    int listener;
    uint16_t port;
    char target[32], *error = address_listen("127.0.0.1", 0, &listener,
                                             &port);

    if (error) {
        return error;
    }
    *pidp = start_process();
    if (!*pidp) {
        int fd;

        fcntl(listener, F_SETFL, 0);
        fd = accept(listener, NULL, NULL);
        link_tune(fd, NULL);
        fcntl(fd, F_SETFL, 0);
        plain_main(fd);
        _exit(0);
    }
    close(listener);
    snprintf(target, sizeof target, "127.0.0.1:%u", port);
    error = address_connect(target, fdp);
    if (!error) {
        link_tune(*fdp, NULL);
        fcntl(*fdp, F_SETFL, 0);
    }
    return error;
}

/* Reads the port from the server's first line. */
static int
read_port(int fd)
{
    FILE *stream = fdopen(fd, "r");
    char line[256];
    const char *at = NULL;
    int port = 0;

    if (stream && fgets(line, sizeof line, stream)) {
        at = strstr(line, "\"port\": ");
    }
    if (at) {
        port = atoi(at + strlen("\"port\": "));
    }
    if (stream) {
        fclose(stream);
    }
    return port;
}

static void
server_main(int out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *error;

    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);   /* Its last line is not read. */
    error = ps_server_run(&(struct ps_server_config) {
        .address = "127.0.0.1", .n_workers = 1, .n_threads = 1,
        .sync = &(struct sync_spec) { .class = &sync_bsp },
        .reconnect_timeout_us = 1000000,
        .control = control_create(0),
    });
    if (error) {
        fprintf(stderr, "bench: %s\n", error);
    }
    _exit(error != NULL);
}

static char *
start_server(pid_t *pidp, struct store_client **clientp)
{
    const char *servers[1];
    char target[32];
    int out[2], port;

    if (pipe2(out, O_CLOEXEC)) {
        return message("pipe: %s", strerror(errno));
    }
    *pidp = start_process();
    if (!*pidp) {
        server_main(out[1]);
    }
    close(out[1]);
    port = read_port(out[0]);
    snprintf(target, sizeof target, "127.0.0.1:%d", port);
    servers[0] = target;
    return store_client_create(&(struct store_client_config) {
        .servers = servers, .n_servers = 1, .n_workers = 1,
        .n_parameters = BENCH_PROCESSES_VALUES, .key_space = UINT64_MAX,
        .width = 1, .optimiser = optimiser_find("sum"),
    }, clientp);
}

char *
bench_processes_start(struct bench_processes *p)
{
    char *error;

    *p = (struct bench_processes) { .plain = -1 };
    pin_processor(0);
    error = start_server(&p->server_pid, &p->client);
    return error ? error : start_plain(&p->plain_pid, &p->plain);
}

char *
bench_processes_exchange(const struct bench_processes *p, uint8_t *bytes,
                         size_t to, size_t from)
{
    struct bench_request request = { to - sizeof request, from };
    bool ok;

    memcpy(bytes, &request, sizeof request);
    ok = move_all(p->plain, bytes, to, true)
         && move_all(p->plain, bytes, from, false);
    return ok ? NULL : message("plain socket: %s", strerror(errno));
}

/* Both end with their connections. */
void
bench_processes_stop(struct bench_processes *p)
{
    store_client_destroy(p->client);
    if (p->plain >= 0) {
        close(p->plain);
    }
    for (int i = 0; i < 2; i++) {
        pid_t pid = i ? p->plain_pid : p->server_pid;

        if (pid > 0) {
            waitpid(pid, NULL, 0);
        }
    }
}
