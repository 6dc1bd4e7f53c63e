/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

#define BACKLOG 256             /* All others of a job may connect at once. */

static char *
resolve_host(const char *host, const char *port, int flags,
             struct addrinfo **ai)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
        .ai_flags = flags | AI_NUMERICSERV
    };
    int error = getaddrinfo(host, port, &hints, ai);

    return error ? message("%s: %s", host, gai_strerror(error)) : NULL;
}

static char *
listen_at(const struct addrinfo *ai, const char *name, int *fdp,
          uint16_t *portp)
{
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    0);
    struct sockaddr_storage ss;
    socklen_t length = sizeof ss;
    char service[8];
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on)
        || bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, BACKLOG)
        || getsockname(fd, (struct sockaddr *) &ss, &length)
        || getnameinfo((struct sockaddr *) &ss, length, NULL, 0, service,
                       sizeof service, NI_NUMERICSERV)) {
        char *error = message("%s: cannot listen (%s)", name, strerror(errno));

        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    *fdp = fd;
    *portp = atoi(service);
    return NULL;
}

char *
address_listen(const char *address, uint16_t port, int *fdp, uint16_t *portp)
{
    struct addrinfo *ai;
    char service[8];
    char *error;

    *fdp = -1;
    snprintf(service, sizeof service, "%u", port);
    error = resolve_host(address, service, AI_PASSIVE, &ai);
    if (!error) {
        error = listen_at(ai, address, fdp, portp);
        freeaddrinfo(ai);
    }
    return error;
}

/* Splits "HOST:PORT" or "[HOST]:PORT" in place. */
static bool
split_target(char *target, char **host, char **port)
{
    char *colon = strrchr(target, ':');
    long number;

    if (!colon || colon == target) {
        return false;
    }
    *colon = '\0';
    *host = target;
    *port = colon + 1;
    if (target[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        (*host)++;
    }
    number = strtol(*port, &colon, 10);
    return !*colon && **host && number > 0 && number < 65536;
}

char *
address_connect(const char *target, int *fdp)
{
    char *copy = duplicate(target), *host, *port;
    struct addrinfo *ai;
    char *error = split_target(copy, &host, &port)
                  ? resolve_host(host, port, 0, &ai)
                  : message("\"%s\" is not HOST:PORT", target);
    int fd;

    *fdp = -1;
    free(copy);
    if (error) {
        return error;
    }
    fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (!connect(fd, ai->ai_addr, ai->ai_addrlen)
                    || errno == EINPROGRESS)) {
        *fdp = fd;
    } else {
        error = message("%s: %s", target, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
    }
    freeaddrinfo(ai);
    return error;
}

int
address_connected(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length)
           ? errno : error;
}

char *
address_of_peer(int fd)
{
    struct sockaddr_storage ss;
    socklen_t length = sizeof ss;
    char host[64], port[8];

    if (getpeername(fd, (struct sockaddr *) &ss, &length)
        || getnameinfo((struct sockaddr *) &ss, length, host, sizeof host,
                       port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV)) {
        return duplicate("unknown address");
    }
    return message("%s:%s", host, port);
}

char *
address_list(const char *text, int port, int max, char *names[], int *np)
{
    char *copy = duplicate(text), *save = NULL, *error = NULL;

    *np = 0;
    for (char *word = strtok_r(copy, ",", &save); word && !error;
         word = strtok_r(NULL, ",", &save)) {
        const char *colon = strrchr(word, ':'), *bracket = strrchr(word, ']');

        if (*np == max) {
            error = message("more than %d", max);
        } else if (colon && (!bracket || colon > bracket)) {
            names[(*np)++] = duplicate(word);
        } else {
            names[(*np)++] = message("%s:%d", word, port);
        }
    }
    free(copy);
    return error;
}

int
address_port(const char *name)
{
    return atoi(strrchr(name, ':') + 1);
}
