/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/agent-call.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/buffer.h"

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

/* Returns the JSON-RPC request for the 'n' 'words', beginning with the method.
 * The caller frees it; NULL if out of memory. */
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

/* Sends 'tx', and reads into 'rx' until it begins with a complete object.
 * Stores the length of the object in '*length'. */
static int
exchange(int fd, long long until, struct buffer *tx, struct buffer *rx,
         size_t *length)
{
    int error = buffer_write(tx, fd);

    while (!error && buffer_size(tx)) {
        error = unix_wait(fd, POLLOUT, until);
        error = error ? error : buffer_write(tx, fd);
    }
    while (!error) {
        error = unix_wait(fd, POLLIN, until);
        error = error ? error : buffer_read(rx, fd, MAX_REPLY);
        *length = agent_call_object_length(buffer_data(rx), buffer_size(rx));
        if (*length) {
            return 0;
        }
        if (!error && buffer_size(rx) >= MAX_REPLY) {
            error = EMSGSIZE;
        }
    }
    return error;
}

/* Sends the 'n' 'words' to the agent of 'rundir' and waits for its reply,
 * until 'until' at most.  Returns 0 if it has replied, even with an error, or
 * an errno value.  Stores the JSON-RPC reply, which the caller frees, in
 * '*replyp' unless 'replyp' is NULL. */
int
agent_call(const char *rundir, long long until, const char *const words[],
           size_t n, char **replyp)
{
    struct buffer tx = { .base = NULL }, rx = { .base = NULL };
    char *request = agent_call_request(words, n);
    char path[256];
    size_t length = 0;
    int fd = -1;
    int error;

    snprintf(path, sizeof path, "%s/agent.ctl", rundir);
    error = request ? unix_connect(path, &fd) : ENOMEM;
    if (!error) {
        error = buffer_append(&tx, request, strlen(request));
        error = error ? error : exchange(fd, until, &tx, &rx, &length);
        close(fd);
    }
    if (!error && replyp) {
        *replyp = strndup(buffer_data(&rx), length);
        error = *replyp ? 0 : ENOMEM;
    }
    buffer_uninit(&tx);
    buffer_uninit(&rx);
    free(request);
    return error;
}
