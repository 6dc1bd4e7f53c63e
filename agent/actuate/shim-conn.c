/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/shim-conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "openvswitch/ofpbuf.h"
#include "openvswitch/poll-loop.h"
#include "socket-util.h"
#include "util.h"

struct shim_conn {
    int fd;
    uint32_t last_xid;
    struct ofpbuf out;          /* To be sent. */
    struct ofpbuf in;           /* Received; may end within a message. */
    struct shim_msg *msg;       /* A copy of the message that the caller has,
                                 * since 'in' keeps no alignment. */
};

int
shim_conn_open(const char *path, struct shim_conn **connp)
{
    int fd = make_unix_socket(SOCK_STREAM, true, NULL, path);
    struct shim_conn *conn;

    *connp = NULL;
    if (fd < 0) {
        return -fd;
    }
    conn = xzalloc(sizeof *conn);
    conn->fd = fd;
    ofpbuf_init(&conn->out, 4096);
    ofpbuf_init(&conn->in, 4096);
    *connp = conn;
    return 0;
}

void
shim_conn_close(struct shim_conn *conn)
{
    if (conn) {
        close(conn->fd);
        ofpbuf_uninit(&conn->out);
        ofpbuf_uninit(&conn->in);
        free(conn->msg);
        free(conn);
    }
}

static void
flush(struct shim_conn *conn)
{
    while (conn->out.size) {
        ssize_t n = send(conn->fd, conn->out.data, conn->out.size,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n <= 0) {
            return;             /* An error shows when receiving. */
        }
        ofpbuf_pull(&conn->out, n);
    }
    ofpbuf_clear(&conn->out);
}

/* Sends a request with the 'size' bytes at 'body'.  Returns its xid, by which
 * the reply is known. */
uint32_t
shim_conn_send(struct shim_conn *conn, enum shim_msg_type type,
               const void *body, size_t size)
{
    struct shim_msg msg = {
        .length = sizeof msg + size,
        .version = SHIM_PROTOCOL_VERSION,
        .type = type,
    };

    ovs_assert(sizeof msg + size <= SHIM_MAX_MESSAGE);
    if (!++conn->last_xid) {
        conn->last_xid = 1;
    }
    msg.xid = conn->last_xid;
    ofpbuf_put(&conn->out, &msg, sizeof msg);
    if (size) {
        ofpbuf_put(&conn->out, body, size);
    }
    flush(conn);
    return msg.xid;
}

static int
read_more(struct shim_conn *conn)
{
    ssize_t n;

    ofpbuf_prealloc_tailroom(&conn->in, 65536);
    n = recv(conn->fd, ofpbuf_tail(&conn->in), 65536, MSG_DONTWAIT);
    if (n > 0) {
        conn->in.size += n;
        return 0;
    }
    return n ? errno : ECONNRESET;
}

/* Moves the first message of 'in', which is complete, to 'msg'. */
static void
take(struct shim_conn *conn, size_t length)
{
    free(conn->msg);
    conn->msg = xmemdup(conn->in.data, length);
    ofpbuf_pull(&conn->in, length);
    if (!conn->in.size) {
        ofpbuf_clear(&conn->in);
    }
}

/* Stores the next message in '*msgp' and its body in '*bodyp' and '*sizep'.
 * Returns EAGAIN if there is none now; after any other error the connection is
 * of no use. */
int
shim_conn_recv(struct shim_conn *conn, const struct shim_msg **msgp,
               const void **bodyp, size_t *sizep)
{
    flush(conn);
    for (;;) {
        struct shim_msg msg;
        int error;

        if (conn->in.size >= sizeof msg) {
            memcpy(&msg, conn->in.data, sizeof msg);
            if (msg.version != SHIM_PROTOCOL_VERSION
                || msg.length < sizeof msg || msg.length > SHIM_MAX_MESSAGE) {
                return EPROTO;
            }
            if (conn->in.size >= msg.length) {
                take(conn, msg.length);
                *msgp = conn->msg;
                *bodyp = conn->msg + 1;
                *sizep = msg.length - sizeof msg;
                return 0;
            }
        }
        error = read_more(conn);
        if (error) {
            return error == EINTR ? EAGAIN : error;
        }
    }
}

void
shim_conn_wait(struct shim_conn *conn)
{
    poll_fd_wait(conn->fd, POLLIN | (conn->out.size ? POLLOUT : 0));
}

size_t
shim_conn_backlog(const struct shim_conn *conn)
{
    return conn->out.size;
}
