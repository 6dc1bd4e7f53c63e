/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/dial.h"

#include <errno.h>
#include <stdlib.h>

#include "openflow/openflow-common.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vconn.h"
#include "openvswitch/vlog.h"
#include "socket-util.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"
#include "vconn-provider.h"

VLOG_DEFINE_THIS_MODULE(dial);

#define TRY_MSEC 5000           /* Timeout of TLS and OpenFlow setup. */
#define FIRST_BACKOFF_MSEC 1000
#define MAX_BACKOFF_MSEC 8000
#define FIRST_SIZE 1564         /* Buffer; most messages are shorter. */

/* OpenFlow over a stream that the caller has opened.  libopenvswitch's own
 * connections do not give access to the peer's certificate. */
struct switch_stream {
    struct vconn up;
    struct stream *stream;
    struct ofpbuf *in;          /* Part of a received message, or NULL. */
    struct ofpbuf *out;         /* Unsent part of a message, or NULL. */
};

static struct switch_stream *
switch_stream_cast(struct vconn *vconn)
{
    return CONTAINER_OF(vconn, struct switch_stream, up);
}

static void
switch_stream_close(struct vconn *vconn)
{
    struct switch_stream *ss = switch_stream_cast(vconn);

    stream_close(ss->stream);
    ofpbuf_delete(ss->in);
    ofpbuf_delete(ss->out);
    free(ss);
}

/* Receives until 'in' has 'size' bytes. */
static int
fill(struct switch_stream *ss, size_t size)
{
    while (ss->in->size < size) {
        size_t n = size - ss->in->size;
        int retval;

        ofpbuf_prealloc_tailroom(ss->in, n);
        retval = stream_recv(ss->stream, ofpbuf_tail(ss->in), n);
        if (retval <= 0) {
            return retval ? -retval : ss->in->size ? EPROTO : EOF;
        }
        ss->in->size += retval;
    }
    return 0;
}

static int
switch_stream_recv(struct vconn *vconn, struct ofpbuf **msgp)
{
    struct switch_stream *ss = switch_stream_cast(vconn);
    const struct ofp_header *oh;
    size_t length;
    int error;

    if (!ss->in) {
        ss->in = ofpbuf_new(FIRST_SIZE);
    }
    error = fill(ss, sizeof *oh);
    if (error) {
        return error;
    }
    oh = ss->in->data;
    length = ntohs(oh->length);
    error = length < sizeof *oh ? EPROTO : fill(ss, length);
    if (!error) {
        *msgp = ss->in;
        ss->in = NULL;
    }
    return error;
}

static int
flush(struct switch_stream *ss)
{
    int retval = stream_send(ss->stream, ss->out->data, ss->out->size);

    if (retval > 0) {
        ofpbuf_pull(ss->out, retval);
        if (!ss->out->size) {
            ofpbuf_delete(ss->out);
            ss->out = NULL;
        }
    }
    return retval < 0 && retval != -EAGAIN ? -retval : 0;
}

static int
switch_stream_send(struct vconn *vconn, struct ofpbuf *msg)
{
    struct switch_stream *ss = switch_stream_cast(vconn);
    int error;

    if (ss->out) {
        return EAGAIN;
    }
    ss->out = msg;
    error = flush(ss);
    if (error) {
        ss->out = NULL;         /* The caller keeps 'msg'. */
    }
    return error;
}

/* An error is reported again by the next receive. */
static void
switch_stream_run(struct vconn *vconn)
{
    struct switch_stream *ss = switch_stream_cast(vconn);

    stream_run(ss->stream);
    if (ss->out && flush(ss)) {
        ofpbuf_delete(ss->out);
        ss->out = NULL;
    }
}

static void
switch_stream_run_wait(struct vconn *vconn)
{
    struct switch_stream *ss = switch_stream_cast(vconn);

    stream_run_wait(ss->stream);
    if (ss->out) {
        stream_send_wait(ss->stream);
    }
}

static void
switch_stream_wait(struct vconn *vconn, enum vconn_wait_type wait)
{
    struct switch_stream *ss = switch_stream_cast(vconn);

    if (wait == WAIT_RECV) {
        stream_recv_wait(ss->stream);
    } else if (wait == WAIT_SEND && !ss->out) {
        stream_send_wait(ss->stream);
    }
}

static const struct vconn_class switch_stream_class = {
    .name = "switch",
    .close = switch_stream_close,
    .recv = switch_stream_recv,
    .send = switch_stream_send,
    .run = switch_stream_run,
    .run_wait = switch_stream_run_wait,
    .wait = switch_stream_wait,
};

struct dial {
    char *target;
    uint32_t versions;          /* Bitmap of OpenFlow versions. */
    struct stream *stream;      /* Stream during its setup, or NULL. */
    struct vconn *vconn;        /* Connection during its setup, or NULL. */
    char *peer;                 /* See dial_peer(). */
    long long int next;         /* time_msec() of the next attempt. */
    long long int deadline;     /* time_msec() when the attempt times out. */
    int backoff;                /* Delay after the next attempt, in ms. */
};

struct dial *
dial_create(const char *target, uint32_t versions)
{
    struct dial *d = xzalloc(sizeof *d);

    d->target = xstrdup(target);
    d->versions = versions;
    d->backoff = FIRST_BACKOFF_MSEC;
    return d;
}

static void
hang_up(struct dial *d)
{
    stream_close(d->stream);
    vconn_close(d->vconn);
    d->stream = NULL;
    d->vconn = NULL;
}

void
dial_destroy(struct dial *d)
{
    if (d) {
        hang_up(d);
        free(d->peer);
        free(d->target);
        free(d);
    }
}

void
dial_settled(struct dial *d)
{
    d->backoff = FIRST_BACKOFF_MSEC;
    d->next = 0;
}

void
dial_restart(struct dial *d)
{
    hang_up(d);
    dial_settled(d);
}

const char *
dial_peer(const struct dial *d)
{
    return d->peer;
}

static int
start_attempt(struct dial *d)
{
    d->deadline = time_msec() + TRY_MSEC;
    d->next = time_msec() + d->backoff;
    d->backoff = MIN(2 * d->backoff, MAX_BACKOFF_MSEC);
    free(d->peer);
    d->peer = NULL;
    return stream_open_with_default_port(d->target, OFP_PORT, &d->stream,
                                         DSCP_DEFAULT);
}

static void
start_openflow(struct dial *d)
{
    struct switch_stream *ss = xzalloc(sizeof *ss);

    vconn_init(&ss->up, &switch_stream_class, 0, stream_get_name(d->stream),
               d->versions);
    ss->stream = d->stream;
    d->peer = nullable_xstrdup(stream_get_peer_id(d->stream));
    d->vconn = &ss->up;
    d->stream = NULL;
}

/* Continues an attempt.  Returns 0 when connected, EAGAIN while it lasts, or
 * another errno value. */
static int
continue_attempt(struct dial *d)
{
    if (d->stream) {
        int error;

        stream_run(d->stream);
        error = stream_connect(d->stream);
        if (error) {
            return error;
        }
        start_openflow(d);
    }
    vconn_run(d->vconn);
    return vconn_connect(d->vconn);
}

struct vconn *
dial_run(struct dial *d)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 20);
    struct vconn *vconn = NULL;
    int error = EAGAIN;

    if (d->stream || d->vconn) {
        error = continue_attempt(d);
    } else if (time_msec() >= d->next) {
        error = start_attempt(d);
        error = error ? error : continue_attempt(d);
    }
    if (!error) {
        vconn = d->vconn;
        d->vconn = NULL;
    } else if (error != EAGAIN
               || ((d->stream || d->vconn) && time_msec() >= d->deadline)) {
        VLOG_INFO_RL(&rl, "%s: connection failed (%s)", d->target,
                     ovs_retval_to_string(error == EAGAIN ? ETIMEDOUT
                                          : error));
        hang_up(d);
    }
    return vconn;
}

void
dial_wait(const struct dial *d)
{
    if (d->stream) {
        stream_run_wait(d->stream);
        stream_connect_wait(d->stream);
    } else if (d->vconn) {
        vconn_run_wait(d->vconn);
        vconn_connect_wait(d->vconn);
    }
    poll_timer_wait_until(d->stream || d->vconn ? d->deadline : d->next);
}
