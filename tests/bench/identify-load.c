/* SPDX-License-Identifier: Apache-2.0 */

/* Creates sockets for tests/bench/identify.sh.
 *
 * usage: identify-load hold ADDRESS PORT N | flows ADDRESS PORT N RATE
 *        | probe ADDRESS PORT TAGS N GAP
 *
 * "hold" creates N sockets, half of them at each end, in as many processes as
 * the limit of open files requires, on PORT and the following ports; prints
 * "ready"; and keeps them until it is killed.
 *
 * "flows" sends N datagrams, RATE a second, each from a new socket.
 *
 * "probe" opens a connection N times, GAP milliseconds apart, sends a byte on
 * it twice a millisecond, and waits until TAGS, written by take-tags.py, has a
 * slot of its port.  Prints the milliseconds from before the connection until
 * then, one number per line; -1 for more than a second. */

#include <arpa/inet.h>
#include <errno.h>
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

/* Makes 'n' pairs on 'port'. */
static void
hold(const char *address, int port, int n, int ready)
{
    int listener = make_listener(address, port), own;
    char byte = 0;

    for (int i = 0; i < n; i++) {
        make_connection(address, port, &own);
        if (accept(listener, NULL, NULL) < 0) {
            die("accept");
        }
    }
    if (write(ready, &byte, 1) != 1) {
        die("pipe");
    }
    for (;;) {
        pause();
    }
}

static int
run_hold(char *argv[])
{
    int port = atoi(argv[3]), n = atoi(argv[4]) / 2;
    int ready[2], n_processes, pairs;
    struct rlimit limit;
    char byte;

    if (getrlimit(RLIMIT_NOFILE, &limit) || pipe(ready)) {
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
            hold(argv[2], port + i, n / n_processes, ready[1]);
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
    for (;;) {
        pause();
    }
}

static int
run_flows(char *argv[])
{
    struct sockaddr_in to = make_address(argv[2], atoi(argv[3]));
    double next = now_ms(), gap = 1e3 / atof(argv[5]);

    for (int i = 0; i < atoi(argv[4]); i++) {
        int fd = socket(AF_INET, SOCK_DGRAM, 0);

        if (fd < 0
            || sendto(fd, "", 1, 0, (struct sockaddr *) &to, sizeof to) < 0) {
            die("flow");
        }
        close(fd);
        next += gap;
        sleep_ms(next - now_ms());
    }
    return 0;
}

/* Sends on 'fd' until 'tags' has a slot for packets from 'port'.  Returns
 * false after a second. */
static bool
wait_for_slot(FILE *tags, int fd, int port)
{
    double until = now_ms() + 1000;
    char line[64];
    int from, slot;

    while (now_ms() < until) {
        if (!fgets(line, sizeof line, tags)) {
            clearerr(tags);
            send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
            sleep_ms(0.5);
        } else if (sscanf(line, "%d %d", &from, &slot) == 2 && from == port
                   && slot) {
            return true;
        }
    }
    return false;
}

static int
run_probe(char *argv[])
{
    int n = atoi(argv[5]), gap = atoi(argv[6]);
    FILE *tags = fopen(argv[4], "r");

    if (!tags) {
        die(argv[4]);
    }
    for (int i = 0; i < n; i++) {
        double start = now_ms();
        int fd, own;

        fseek(tags, 0, SEEK_END);
        fd = make_connection(argv[2], atoi(argv[3]), &own);
        printf("%.2f\n",
               wait_for_slot(tags, fd, own) ? now_ms() - start : -1.0);
        fflush(stdout);
        close(fd);
        sleep_ms(start + gap - now_ms());
    }
    return 0;
}

int
main(int argc, char *argv[])
{
    if (argc == 5 && !strcmp(argv[1], "hold")) {
        return run_hold(argv);
    } else if (argc == 6 && !strcmp(argv[1], "flows")) {
        return run_flows(argv);
    } else if (argc == 7 && !strcmp(argv[1], "probe")) {
        return run_probe(argv);
    }
    fprintf(stderr, "usage: identify-load hold|flows|probe ...\n");
    return 2;
}
