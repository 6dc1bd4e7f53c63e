/* SPDX-License-Identifier: Apache-2.0 */

/* A process of a job that does nothing but hold what a test wants it to hold.
 *
 * usage: fake-job listen ADDRESS PORT | connect ADDRESS PORT
 *        | stay ADDRESS PORT | fork ADDRESS PORT [N] | progress SOCKET JSON
 *
 * "listen" accepts connections; "connect" makes one, prints its own port and
 * sends a byte five times a second; "stay" sends none; they stay until they
 * are killed.  "fork" waits for a line on its standard input and then starts N
 * processes (1) that each do as "connect", and end with it.  "progress" sends
 * one datagram and stays for 0.2 s, because the agent accepts no report of a
 * process that no longer exists. */

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int
progress(const char *path, const char *text)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    if (fd < 0 || strlen(path) >= sizeof sun.sun_path) {
        return 1;
    }
    strcpy(sun.sun_path, path);
    if (sendto(fd, text, strlen(text), MSG_DONTWAIT,
               (struct sockaddr *) &sun, sizeof sun) < 0) {
        return 1;
    }
    usleep(200000);
    return 0;
}

/* Returns true in each of the children. */
static int
start_children(const char *n)
{
    getchar();
    for (int i = 0; i < atoi(n); i++) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            return 1;
        }
    }
    return 0;
}

int
main(int argc, char *argv[])
{
    struct sockaddr_in sin = { .sin_family = AF_INET };
    socklen_t n = sizeof sin;
    int one = 1;
    int fd;

    if (argc != 4 && argc != 5) {
        fprintf(stderr,
                "usage: fake-job listen|connect|stay|fork|progress ...\n");
        return 2;
    }
    if (!strcmp(argv[1], "fork") &&
        !start_children(argc > 4 ? argv[4] : "1")) {
        for (;;) {
            pause();
        }
    }
    if (!strcmp(argv[1], "progress")) {
        return progress(argv[2], argv[3]);
    }
    fd = socket(AF_INET, SOCK_STREAM, 0);
    sin.sin_port = htons(atoi(argv[3]));
    if (fd < 0 || inet_pton(AF_INET, argv[2], &sin.sin_addr) != 1) {
        return 2;
    }
    if (!strcmp(argv[1], "listen")) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, (struct sockaddr *) &sin, sizeof sin) ||
            listen(fd, 4096)) {
            perror("fake-job");
            return 1;
        }
        puts("listening");
        fflush(stdout);
        for (;;) {
            if (accept(fd, NULL, NULL) < 0) {
                return 1;
            }
        }
    }
    if (connect(fd, (struct sockaddr *) &sin, sizeof sin)
        || getsockname(fd, (struct sockaddr *) &sin, &n)) {
        perror("fake-job");
        return 1;
    }
    printf("%u\n", ntohs(sin.sin_port));
    fflush(stdout);
    while (!strcmp(argv[1], "stay")) {
        pause();
    }
    for (;;) {
        send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        usleep(200000);
    }
}
