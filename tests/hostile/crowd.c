/* SPDX-License-Identifier: Apache-2.0 */

/* A user that fills tables of its host.
 *
 *    crowd stay N ADDRESS PORT
 *        N processes, each with a socket that has sent a datagram, or without
 *        one to 0.0.0.0.  Prints "ready" and its own id; they stay until that
 *        one is killed.
 *    crowd storm MS ADDRESS PORT
 *        Such processes that end at once, one after the other, for MS
 *        milliseconds.  Prints their number.
 *    crowd flows N ADDRESS PORT
 *        N datagrams to the address, each of a flow of its own: to 20,000
 *        ports from PORT on for each socket.  To PORT alone if it is odd.
 *    crowd connect N ADDRESS PORT
 *        N connections, to the address if PORT is even, otherwise each to the
 *        address after the last one.  Prints "ready" and its own id; they stay
 *        until it is killed.
 *    crowd heir ADDRESS PORT
 *        A process without an environment inherits the socket of another one,
 *        and sends a datagram five times a second. */

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_PORTS 20000

static long long
now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Returns a socket that has sent a datagram, -1 if that has no address. */
static int
send_one(const struct sockaddr_in *to)
{
    int fd;

    if (!to->sin_addr.s_addr) {
        return -1;
    }
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    sendto(fd, "x", 1, 0, (const struct sockaddr *) to, sizeof *to);
    return fd;
}

static int
stay(int n, const struct sockaddr_in *to)
{
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            perror("fork");
            return 1;
        }
        if (!pid) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            send_one(to);
            for (;;) {
                pause();
            }
        }
    }
    printf("ready %d\n", (int) getpid());
    fflush(stdout);
    pause();
    return 0;
}

static int
storm(int ms, const struct sockaddr_in *to)
{
    long long until = now_ms() + ms;
    int n;

    for (n = 0; now_ms() < until; n++) {
        if (!fork()) {
            send_one(to);
            _exit(0);
        }
        while (waitpid(-1, NULL, n % 32 ? WNOHANG : 0) > 0) {
        }
    }
    printf("%d\n", n);
    return 0;
}

static int
flows(int n, struct sockaddr_in *to)
{
    int first = ntohs(to->sin_port), fd = -1;

    for (int i = 0; i < n; i++) {
        if (!(i % N_PORTS)) {
            close(fd);
            fd = socket(AF_INET, SOCK_DGRAM, 0);
        }
        to->sin_port = htons(first + (first % 2 ? 0 : i % N_PORTS));
        sendto(fd, "x", 1, 0, (struct sockaddr *) to, sizeof *to);
        if (!(i % 50)) {
            usleep(1000); /* No more than queues hold. */
        }
    }
    return 0;
}

static int
connect_all(int n, struct sockaddr_in *to)
{
    bool spreads = ntohs(to->sin_port) % 2;
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (int i = 0; i < n; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

        if (fd < 0) {
            perror("socket");
            return 1;
        }
        connect(fd, (const struct sockaddr *) to, sizeof *to);
        to->sin_addr.s_addr = htonl(ntohl(to->sin_addr.s_addr) + spreads);
        usleep(i % 20 ? 0 : 1000); /* No more than queues hold. */
    }
    printf("ready %d\n", (int) getpid());
    fflush(stdout);
    pause();
    return 0;
}

/* The second process has the claim of its parent only by the socket. */
static int
heir(char *argv[], int fd)
{
    char again[] = "again", *no_environment[] = { NULL };
    char *args[] = { argv[0], argv[1], argv[2], argv[3], again, NULL };

    dup2(fd, 0);
    sleep(2); /* Until the agent has claimed this process. */
    if (!fork()) {
        setsid();
        execve(argv[0], args, no_environment);
        _exit(1);
    }
    return 0;
}

int
main(int argc, char *argv[])
{
    bool is_heir = argc > 1 && !strcmp(argv[1], "heir");
    struct sockaddr_in to = { .sin_family = AF_INET };

    if (argc != 5 && !(is_heir && argc == 4)) {
        fprintf(stderr, "usage: crowd stay|storm|flows|connect|heir ...\n");
        return 2;
    }
    inet_pton(AF_INET, argv[is_heir ? 2 : 3], &to.sin_addr);
    to.sin_port = htons(atoi(argv[is_heir ? 3 : 4]));
    if (is_heir && argc == 4) {
        return heir(argv, send_one(&to));
    }
    while (is_heir) {
        sendto(0, "x", 1, 0, (struct sockaddr *) &to, sizeof to);
        usleep(200000);
    }
    return !strcmp(argv[1], "stay")      ? stay(atoi(argv[2]), &to)
           : !strcmp(argv[1], "storm")   ? storm(atoi(argv[2]), &to)
           : !strcmp(argv[1], "connect") ? connect_all(atoi(argv[2]), &to)
                                         : flows(atoi(argv[2]), &to);
}
