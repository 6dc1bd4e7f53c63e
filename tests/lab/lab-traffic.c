/* SPDX-License-Identifier: Apache-2.0 */

/* lab-traffic sink ADDRESS PORT...
 * lab-traffic send ADDRESS PORT TOS SECONDS
 *
 * TCP as fast as it goes, with a given TOS byte.  "sink" reads and forgets
 * until it is killed, at most two minutes; "send" prints the bytes sent. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_FDS 64

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static struct sockaddr_in
address(const char *ip, const char *port)
{
    struct sockaddr_in sin = { .sin_family = AF_INET };

    sin.sin_port = htons(atoi(port));
    if (inet_pton(AF_INET, ip, &sin.sin_addr) != 1) {
        fprintf(stderr, "%s: not an IPv4 address\n", ip);
        exit(2);
    }
    return sin;
}

static int
sink(const char *ip, int n_ports, char *ports[])
{
    struct pollfd fds[MAX_FDS];
    static char buffer[1 << 16];
    int n = 0;

    for (; n < n_ports && n < MAX_FDS; n++) {
        struct sockaddr_in sin = address(ip, ports[n]);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int) { 1 }, sizeof(int));
        if (fd < 0 || bind(fd, (struct sockaddr *) &sin, sizeof sin)
            || listen(fd, 5)) {
            die("listen");
        }
        fds[n] = (struct pollfd) { .fd = fd, .events = POLLIN };
    }
    for (int n_listen = n; poll(fds, n, -1) >= 0;) {
        for (int i = n - 1; i >= 0; i--) {
            if (!fds[i].revents) {
                continue;
            }
            if (i < n_listen) {
                int fd = accept(fds[i].fd, NULL, NULL);

                if (fd >= 0 && n < MAX_FDS) {
                    fds[n++] = (struct pollfd) { .fd = fd, .events = POLLIN };
                } else if (fd >= 0) {
                    close(fd);
                }
            } else if (read(fds[i].fd, buffer, sizeof buffer) <= 0) {
                close(fds[i].fd);
                fds[i] = fds[--n];
            }
        }
    }
    return 1;
}

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int
send_for(const char *ip, const char *port, const char *tos_string,
         double seconds)
{
    static const char buffer[1 << 16];
    struct sockaddr_in sin = address(ip, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int tos = strtol(tos_string, NULL, 0);
    double end = now() + seconds;
    long long sent = 0;

    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos)
        || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5)
        || connect(fd, (struct sockaddr *) &sin, sizeof sin)) {
        die("connect");
    }
    while (now() < end) {
        struct pollfd pfd = { .fd = fd, .events = POLLOUT };
        ssize_t n = 0;

        if (poll(&pfd, 1, 100) > 0) {
            n = send(fd, buffer, sizeof buffer, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if (n < 0 && errno != EAGAIN) {
            die("send");
        }
        sent += n > 0 ? n : 0;
    }
    printf("%lld\n", sent);
    return 0;
}

int
main(int argc, char *argv[])
{
    alarm(120);
    if (argc >= 4 && !strcmp(argv[1], "sink")) {
        return sink(argv[2], argc - 3, argv + 3);
    } else if (argc == 6 && !strcmp(argv[1], "send")) {
        return send_for(argv[2], argv[3], argv[4], atof(argv[5]));
    }
    fputs("usage: lab-traffic sink ADDRESS PORT... | "
          "send ADDRESS PORT TOS SECONDS\n", stderr);
    return 2;
}
