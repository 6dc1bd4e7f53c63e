/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/agent-call.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* Larger than the reply of an agent with a thousand jobs. */
#define MAX_REPLY (4 << 20)

long long
agent_call_until(int ms)
{
    return clock_monotonic_ms() + ms;
}

static void
put_string(FILE *stream, const char *s)
{
    putc('"', stream);
    for (; *s; s++) {
        unsigned char c = *s;

        if (c == '"' || c == '\\') {
            fprintf(stream, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(stream, "\\u%04x", c);
        } else {
            putc(c, stream);
        }
    }
    putc('"', stream);
}

/* Returns the JSON-RPC request for the 'n' 'words', the first of which is the
 * method.  The caller frees it; NULL if out of memory. */
char *
agent_call_request(const char *const words[], size_t n)
{
    char *request = NULL;
    size_t size;
    FILE *stream = open_memstream(&request, &size);

    if (!stream) {
        return NULL;
    }
    fputs("{\"id\":0,\"method\":", stream);
    put_string(stream, words[0]);
    fputs(",\"params\":[", stream);
    for (size_t i = 1; i < n; i++) {
        if (i > 1) {
            putc(',', stream);
        }
        put_string(stream, words[i]);
    }
    fputs("]}", stream);
    if (fclose(stream)) {
        free(request);
        return NULL;
    }
    return request;
}

size_t
agent_call_object_length(const char *text, size_t size)
{
    bool in_string = false;
    int depth = 0;

    for (size_t i = 0; i < size; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth <= 0) {
            return i + 1;
        }
    }
    return 0;
}

/* Waits until 'fd' has one of 'events', or 'until'. */
static int
wait_for(int fd, short events, long long until)
{
    for (;;) {
        struct pollfd pfd = { .fd = fd, .events = events };
        long long left = until - clock_monotonic_ms();
        int n = left > 0 ? poll(&pfd, 1, left) : 0;

        if (n > 0) {
            return 0;
        }
        if (n == 0) {
            return ETIMEDOUT;
        }
        if (errno != EINTR) {
            return errno;
        }
    }
}

static int
send_all(int fd, long long until, const char *text)
{
    size_t left = strlen(text);

    while (left) {
        ssize_t n = send(fd, text, left, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            text += n;
            left -= n;
        } else if (errno == EAGAIN) {
            int error = wait_for(fd, POLLOUT, until);

            if (error) {
                return error;
            }
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Reads from 'fd' until there is a complete object. */
static int
receive_object(int fd, long long until, char **objectp)
{
    size_t size = 0, allocated = 0;
    char *text = NULL;
    int error = 0;

    while (!error) {
        size_t length;
        ssize_t n;

        if (allocated - size < 4096) {
            char *larger = allocated < MAX_REPLY
                           ? realloc(text, 2 * allocated + 8192) : NULL;

            if (!larger) {
                error = EMSGSIZE;
                break;
            }
            text = larger;
            allocated = 2 * allocated + 8192;
        }
        error = wait_for(fd, POLLIN, until);
        if (error) {
            break;
        }
        n = recv(fd, text + size, allocated - size - 1, MSG_DONTWAIT);
        if (n <= 0) {
            error = !n ? ECONNRESET : errno == EAGAIN || errno == EINTR ? 0
                    : errno;
            continue;
        }
        size += n;
        length = agent_call_object_length(text, size);
        if (length) {
            text[length] = '\0';
            *objectp = text;
            return 0;
        }
    }
    free(text);
    return error;
}

static int
open_socket(const char *rundir, int *fdp)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int n = snprintf(sun.sun_path, sizeof sun.sun_path, "%s/agent.ctl",
                     rundir);
    int fd;

    if (n < 0 || n >= sizeof sun.sun_path) {
        return ENAMETOOLONG;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }

    /* EAGAIN: the backlog of the agent is full; a retry would wait too. */
    if (connect(fd, (struct sockaddr *) &sun, sizeof sun)) {
        int error = errno;

        close(fd);
        return error;
    }
    *fdp = fd;
    return 0;
}

/* Sends the 'n' 'words' to the agent of 'rundir' and waits for its reply,
 * until 'until' at most.  Returns 0 if it has replied, even with an error, or
 * an errno value.  Stores the JSON-RPC reply, which the caller frees, in
 * '*replyp' unless 'replyp' is NULL. */
int
agent_call(const char *rundir, long long until, const char *const words[],
           size_t n, char **replyp)
{
    char *request = agent_call_request(words, n);
    char *reply = NULL;
    int fd = -1;
    int error;

    if (!request) {
        return ENOMEM;
    }
    error = open_socket(rundir, &fd);
    if (!error) {
        error = send_all(fd, until, request);
        if (!error) {
            error = receive_object(fd, until, &reply);
        }
        close(fd);
    }
    free(request);
    if (!error && replyp) {
        *replyp = reply;
    } else {
        free(reply);
    }
    return error;
}
