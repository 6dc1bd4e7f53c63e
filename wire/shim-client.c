/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/shim-client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/buffer.h"

struct shim_client {
    int fd;
    int error;                  /* Error of the connection, 0: it works. */
    uint32_t xid;               /* xid of the last request. */
    struct buffer rx, tx;
    struct shim_msg msg;        /* Last message received. */
    char *body;                 /* Body of 'msg'. */
};

int
shim_client_open(const char *path, struct shim_client **cp)
{
    struct shim_client *c = calloc(1, sizeof *c);
    int error = c ? unix_connect(path, &c->fd) : ENOMEM;

    if (error) {
        free(c);
        c = NULL;
    }
    *cp = c;
    return error;
}

void
shim_client_close(struct shim_client *c)
{
    if (c) {
        close(c->fd);
        buffer_uninit(&c->rx);
        buffer_uninit(&c->tx);
        free(c->body);
        free(c);
    }
}

int
shim_client_fd(const struct shim_client *c)
{
    return c->fd;
}

bool
shim_client_wants_write(const struct shim_client *c)
{
    return buffer_size(&c->tx) > 0;
}

int
shim_client_run(struct shim_client *c)
{
    if (!c->error) {
        c->error = buffer_write(&c->tx, c->fd);
    }
    if (!c->error) {
        c->error = buffer_read(&c->rx, c->fd, 2 * SHIM_MAX_MESSAGE);
    }
    return c->error;
}

int
shim_client_send(struct shim_client *c, uint16_t type, const void *body,
                 size_t size, uint32_t *xid)
{
    struct shim_msg msg = {
        .length = sizeof msg + size, .version = SHIM_PROTOCOL_VERSION,
        .type = type, .xid = c->xid + 1 ? c->xid + 1 : 1
    };
    int error;

    if (c->error) {
        return c->error;
    }
    if (size > SHIM_MAX_MESSAGE - sizeof msg) {
        return EMSGSIZE;
    }
    error = buffer_append(&c->tx, &msg, sizeof msg);
    error = error ? error : buffer_append(&c->tx, body, size);
    error = error ? error : buffer_write(&c->tx, c->fd);
    c->error = error;
    c->xid = msg.xid;
    if (xid) {
        *xid = msg.xid;
    }
    return error;
}

int
shim_client_receive(struct shim_client *c, const struct shim_msg **msg,
                    const void **body)
{
    int error = protocol_next(buffer_data(&c->rx), buffer_size(&c->rx),
                              &c->msg);
    size_t size;

    *msg = NULL;
    *body = NULL;
    if (error) {
        return error == EAGAIN && c->error ? c->error : error;
    }
    size = c->msg.length - sizeof c->msg;
    free(c->body);
    c->body = malloc(size ? size : 1);
    if (!c->body) {
        return ENOMEM;
    }
    memcpy(c->body, buffer_data(&c->rx) + sizeof c->msg, size);
    buffer_consume(&c->rx, c->msg.length);
    *msg = &c->msg;
    *body = c->body;
    return 0;
}

int
shim_client_transact(struct shim_client *c, uint16_t type, const void *body,
                     size_t size, int timeout_ms, const void **reply,
                     size_t *reply_size)
{
    int64_t deadline = clock_monotonic_ms() + timeout_ms;
    const struct shim_msg *msg;
    const void *data;
    uint32_t xid;
    int error = shim_client_send(c, type, body, size, &xid);

    while (!error) {
        shim_client_run(c);
        while (!(error = shim_client_receive(c, &msg, &data))) {
            if (msg->xid == xid && msg->type == type) {
                if (reply) {
                    *reply = data;
                    *reply_size = msg->length - sizeof *msg;
                }
                return msg->status;
            }
        }
        if (error == EAGAIN) {
            error = unix_wait(c->fd, POLLIN | (shim_client_wants_write(c)
                                               ? POLLOUT : 0), deadline);
        }
    }
    return error;
}
