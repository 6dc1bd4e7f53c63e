/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trainer/message.h"

void
link_init(struct link *link, int fd)
{
    memset(link, 0, sizeof *link);
    link->fd = fd;
}

void
link_close(struct link *link)
{
    if (link->fd >= 0) {
        close(link->fd);
        link->fd = -1;
    }
}

int
link_tune(int fd, const char *congestion)
{
    int on = 1, flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK)
        || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on)
        || setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on)) {
        return errno;
    }
    if (congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                                 strlen(congestion))) {
        return errno;
    }
    return 0;
}

/* Receives up to 'wanted' bytes in all at 'to', of which 'link->have' are
 * there. */
static enum link_state
fill(struct link *link, uint8_t *to, size_t wanted, char **errorp)
{
    while (link->have < wanted) {
        ssize_t n = recv(link->fd, to + link->have, wanted - link->have, 0);

        if (n > 0) {
            link->have += n;
            link->n_received += n;
        } else if (!n) {
            if (link->in_body || link->have) {
                *errorp = message("closed in the middle of a frame");
            }
            return LINK_END;
        } else if (errno == EAGAIN) {
            return LINK_AGAIN;
        } else if (errno != EINTR) {
            *errorp = message("%s", strerror(errno));
            return LINK_END;
        }
    }
    return LINK_FRAME;
}

enum link_state
link_receive(struct link *link, char **errorp)
{
    enum link_state state;

    *errorp = NULL;
    if (!link->in_body) {
        state = fill(link, link->header, sizeof link->header, errorp);
        if (state != LINK_FRAME) {
            return state;
        }
        *errorp = frame_decode(link->header, &link->frame);
        if (*errorp) {
            return LINK_END;
        }
        link->in_body = true;
        link->have = 0;
        link->body = NULL;
        return LINK_HEADER;
    }
    assert(link->body || !link->frame.body_length);
    state = fill(link, link->body, link->frame.body_length, errorp);
    if (state == LINK_FRAME) {
        link->in_body = false;
        link->have = 0;
    }
    return state;
}

void
link_set_body(struct link *link, void *body)
{
    link->body = body;
}

void
link_send(struct link *link, struct frame *frame, const void *body)
{
    assert(link_idle(link));
    frame_encode(frame, link->out_header);
    link->out_body = body;
    link->out_length = FRAME_HEADER_LENGTH + frame->body_length;
    link->out_sent = 0;
}

/* 'frame' says the length of its body. */
bool
link_post(struct link *link, struct frame *frame, const void *body)
{
    uint8_t *to = link->posts + link->posts_length;
    size_t length = FRAME_HEADER_LENGTH + frame->body_length;

    if (length > LINK_POSTS_LENGTH - link->posts_length) {
        return false;
    }
    frame_encode(frame, to);
    memcpy(to + FRAME_HEADER_LENGTH, body, frame->body_length);
    link->posts_length += length;
    return true;
}

/* Sends once what 'msg' says.  Returns the bytes sent, or a negative errno. */
static ssize_t
send_some(struct link *link, const struct msghdr *msg)
{
    ssize_t n;

    do {
        n = sendmsg(link->fd, msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    link->n_sent += n > 0 ? n : 0;
    return n < 0 ? -errno : n;
}

static ssize_t
send_posts(struct link *link)
{
    struct iovec iov = {
        .iov_base = link->posts + link->posts_sent,
        .iov_len = link->posts_length - link->posts_sent,
    };
    ssize_t n = send_some(link, &(struct msghdr) {
        .msg_iov = &iov, .msg_iovlen = 1,
    });

    link->posts_sent += n > 0 ? n : 0;
    if (link->posts_sent == link->posts_length) {
        link->posts_sent = link->posts_length = 0;
    }
    return n;
}

static ssize_t
send_frame(struct link *link)
{
    size_t done = link->out_sent, in_header = 0;
    struct iovec iov[2];
    struct msghdr msg = { .msg_iov = iov };
    ssize_t n;

    if (done < FRAME_HEADER_LENGTH) {
        in_header = FRAME_HEADER_LENGTH - done;
        iov[msg.msg_iovlen].iov_base = link->out_header + done;
        iov[msg.msg_iovlen++].iov_len = in_header;
    }
    if (link->out_length > FRAME_HEADER_LENGTH) {
        size_t skip = in_header ? 0 : done - FRAME_HEADER_LENGTH;

        iov[msg.msg_iovlen].iov_base = (void *) (link->out_body + skip);
        iov[msg.msg_iovlen++].iov_len =
            link->out_length - FRAME_HEADER_LENGTH - skip;
    }
    n = send_some(link, &msg);
    link->out_sent += n > 0 ? n : 0;
    return n;
}

int
link_flush(struct link *link)
{
    for (;;) {
        bool begun = link->out_sent && !link_idle(link);
        ssize_t n;

        if (link->posts_length && !begun) {
            n = send_posts(link);
        } else if (!link_idle(link)) {
            n = send_frame(link);
        } else {
            return 0;
        }
        if (n < 0) {
            return n == -EAGAIN ? 0 : -n;
        }
    }
}

bool
link_idle(const struct link *link)
{
    return link->out_sent == link->out_length;
}

short
link_events(const struct link *link)
{
    return POLLIN | (link_idle(link) && !link->posts_length ? 0 : POLLOUT);
}
