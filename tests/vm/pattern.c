/* SPDX-License-Identifier: Apache-2.0 */

/* Transfers a known byte pattern over TCP.
 *
 *    pattern take PORT BYTES SECONDS
 *        Accepts one connection to PORT and compares the received bytes.
 *        Exits 0 if they are exactly BYTES correct bytes, followed by the end
 *        of the connection, within SECONDS; otherwise prints the difference.
 *    pattern give ADDRESS PORT LOCAL-PORT BYTES SECONDS
 *        Connects, trying again while connections are refused, and sends.
 *        Exits 0 if the other end acknowledges all bytes within SECONDS. */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 65536             /* Bytes at a time, whole words. */

static int
die(const char *what)
{
    fprintf(stderr, "pattern: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* Goes on with the pattern, by xorshift: neither a piece that is there twice
 * nor one that is missing looks right. */
static void
fill(uint64_t *state, uint64_t words[PIECE / 8])
{
    uint64_t x = *state;

    for (size_t i = 0; i < PIECE / 8; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = x;
    }
    *state = x;
}

static int
bound_socket(uint16_t port)
{
    struct sockaddr_in any = { .sin_family = AF_INET,
                               .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *) &any, sizeof any)) {
        die("bind");
    }
    return fd;
}

static int
take(char *argv[])
{
    uint64_t expected = strtoull(argv[1], NULL, 10), at = 0, state = 1;
    uint8_t got[PIECE];
    uint64_t words[PIECE / 8];
    int listener = bound_socket(atoi(argv[0])), fd;
    ssize_t n;

    alarm(atoi(argv[2]));
    if (listen(listener, 1) || (fd = accept(listener, NULL, NULL)) < 0) {
        die("accept");
    }
    while ((n = read(fd, got, PIECE - at % PIECE)) > 0) {
        if (at % PIECE == 0) {
            fill(&state, words);
        }
        if (memcmp(got, (uint8_t *) words + at % PIECE, n)) {
            fprintf(stderr, "pattern: wrong within %zd bytes from %"PRIu64
                    " on\n", n, at);
            return EXIT_FAILURE;
        }
        at += n;
    }
    if (n || at != expected) {
        fprintf(stderr, "pattern: %"PRIu64" bytes came, of %"PRIu64"\n", at,
                expected);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static int
give(char *argv[])
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(atoi(argv[1])) };
    uint64_t left = strtoull(argv[3], NULL, 10), state = 1;
    uint64_t words[PIECE / 8];
    int fd;

    alarm(atoi(argv[4]));
    if (inet_pton(AF_INET, argv[0], &to.sin_addr) != 1) {
        die(argv[0]);
    }
    while (fd = bound_socket(atoi(argv[2])),
           connect(fd, (struct sockaddr *) &to, sizeof to)) {
        if (errno != ECONNREFUSED) {
            die("connect");
        }
        close(fd);
        usleep(50000);
    }
    while (left) {
        size_t size = left < PIECE ? left : PIECE, sent = 0;

        fill(&state, words);
        while (sent < size) {
            ssize_t n = send(fd, (uint8_t *) words + sent, size - sent,
                             MSG_NOSIGNAL);

            if (n < 0) {
                die("send");
            }
            sent += n;
        }
        left -= size;
    }
    /* The other end closes when it has read all of it. */
    shutdown(fd, SHUT_WR);
    return read(fd, words, 1) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main(int argc, char *argv[])
{
    if (argc == 5 && !strcmp(argv[1], "take")) {
        return take(argv + 2);
    } else if (argc == 7 && !strcmp(argv[1], "give")) {
        return give(argv + 2);
    }
    fprintf(stderr, "usage: pattern take PORT BYTES SECONDS\n"
            "       pattern give ADDRESS PORT LOCAL-PORT BYTES SECONDS\n");
    return EXIT_FAILURE;
}
