/* SPDX-License-Identifier: Apache-2.0 */

/* Creates sockets for tests/bench/identify.sh.
 *
 * usage: identify-load hold ADDRESS PORT N COMMANDS MISSES
 *        | probe ADDRESS PORT COMMANDS LOG N GAP
 *
 * "hold" creates N sockets, half of them at each end, in as many processes as
 * the limit of open files requires, on PORT and the following ports; prints
 * "ready"; and then reports MISSES of them per second to the fake shim's
 * COMMANDS, in turn, until it is killed.
 *
 * "probe" opens a connection N times, GAP milliseconds apart, reports it to
 * COMMANDS, and waits until the fake shim's LOG has the flow.  Prints the
 * milliseconds from before the connection until then, one number per line; -1
 * for more than a second. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SPARE_FILES 100         /* File descriptors for other uses. */
#define MAX_PAIRS 9000          /* Maximum per process; less than the number
                                 * of ports. */

static void
die(const char *what)
{
    fprintf(stderr, "identify-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double
now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static void
sleep_ms(double ms)
{
    struct timespec ts = { ms / 1e3, (long) (ms * 1e6) % 1000000000 };

    if (ms > 0) {
        nanosleep(&ts, NULL);
    }
}

static struct sockaddr_in
make_address(const char *address, int port)
{
    struct sockaddr_in sin = { .sin_family = AF_INET,
                               .sin_port = htons(port) };

    if (inet_pton(AF_INET, address, &sin.sin_addr) != 1) {
        die(address);
    }
    return sin;
}

static int
make_listener(const char *address, int port)
{
    struct sockaddr_in sin = make_address(address, port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *) &sin, sizeof sin)
        || listen(fd, 64)) {
        die("listen");
    }
    return fd;
}

/* Returns a connection to 'address' and stores its own port in '*portp'. */
static int
make_connection(const char *address, int port, int *portp)
{
    struct sockaddr_in sin = make_address(address, port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t n = sizeof sin;

    if (fd < 0 || connect(fd, (struct sockaddr *) &sin, sizeof sin)
        || getsockname(fd, (struct sockaddr *) &sin, &n)) {
        die("connect");
    }
    *portp = ntohs(sin.sin_port);
    return fd;
}

/* Runs one process: 'n' pairs on 'port', reported 'misses' times a second
 * after a byte arrives from 'start'. */
static void
hold(const char *address, int port, int n, const char *commands,
     double misses, int ready, int start)
{
    int listener = make_listener(address, port);
    int *ports = calloc(n, sizeof *ports);
    double next;
    char byte = 0;
    int fd;

    for (int i = 0; i < n; i++) {
        make_connection(address, port, &ports[i]);
        if (accept(listener, NULL, NULL) < 0) {
            die("accept");
        }
    }
    if (write(ready, &byte, 1) != 1 || read(start, &byte, 1) != 0) {
        die("pipe");
    }
    fd = open(commands, O_WRONLY);
    if (fd < 0) {
        die(commands);
    }
    next = now_ms();
    for (int i = 0; ; i = (i + 1) % n) {
        dprintf(fd, "miss %s %d %s %d\n", address, ports[i], address, port);
        next += 1e3 / misses;
        sleep_ms(next - now_ms());
    }
}

static int
run_hold(char *argv[])
{
    const char *address = argv[2], *commands = argv[5];
    int port = atoi(argv[3]), n = atoi(argv[4]) / 2;
    double misses = atof(argv[6]);
    int ready[2], start[2], n_processes, pairs;
    struct rlimit limit;
    char byte;

    if (getrlimit(RLIMIT_NOFILE, &limit) || pipe(ready) || pipe(start)) {
        die("pipe");
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    pairs = ((int) limit.rlim_cur - SPARE_FILES) / 2;
    pairs = pairs < MAX_PAIRS ? pairs : MAX_PAIRS;
    n_processes = (n + pairs - 1) / pairs;
    for (int i = 0; i < n_processes; i++) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(start[1]);
            hold(address, port + i, n / n_processes, commands,
                 misses / n_processes, ready[1], start[0]);
        }
    }
    close(ready[1]);
    for (int i = 0; i < n_processes; i++) {
        if (read(ready[0], &byte, 1) != 1) {
            return 1;           /* The process has printed the reason. */
        }
    }
    puts("ready");
    fflush(stdout);
    getchar();
    close(start[1]);
    for (;;) {
        pause();
    }
}

/* Waits until 'log' has a line for the flow from 'port'.  Returns false after
 * a second. */
static bool
wait_for_flow(FILE *log, const char *address, int port)
{
    double until = now_ms() + 1000;
    char line[256], wish[64];

    snprintf(wish, sizeof wish, " %s:%d ", address, port);
    while (now_ms() < until) {
        if (!fgets(line, sizeof line, log)) {
            clearerr(log);
            sleep_ms(0.2);
        } else if (!strncmp(line, "flow ", 5) && strstr(line, wish)) {
            return true;
        }
    }
    return false;
}

static int
run_probe(char *argv[])
{
    const char *address = argv[2];
    int port = atoi(argv[3]), n = atoi(argv[6]), gap = atoi(argv[7]);
    int commands = open(argv[4], O_WRONLY);
    FILE *log = fopen(argv[5], "r");

    if (commands < 0 || !log) {
        die("probe");
    }
    for (int i = 0; i < n; i++) {
        double start = now_ms();
        int own;
        int fd = make_connection(address, port, &own);

        fseek(log, 0, SEEK_END);
        dprintf(commands, "miss %s %d %s %d\n", address, own, address, port);
        printf("%.2f\n", wait_for_flow(log, address, own)
               ? now_ms() - start : -1.0);
        fflush(stdout);
        close(fd);
        sleep_ms(start + gap - now_ms());
    }
    return 0;
}

int
main(int argc, char *argv[])
{
    if (argc == 7 && !strcmp(argv[1], "hold")) {
        return run_hold(argv);
    }
    if (argc == 8 && !strcmp(argv[1], "probe")) {
        return run_probe(argv);
    }
    fprintf(stderr, "usage: identify-load hold|probe ...\n");
    return 2;
}
