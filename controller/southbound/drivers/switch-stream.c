/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/switch-stream.h"

#include <errno.h>
#include <stdlib.h>

#include "openflow/openflow-common.h"
#include "openvswitch/ofpbuf.h"
#include "openvswitch/vconn.h"
#include "stream.h"
#include "util.h"
#include "vconn-provider.h"

#define FIRST_SIZE 1564         /* Most messages are shorter. */

struct switch_stream {
    struct vconn up;
    struct stream *stream;
    struct ofpbuf *in;          /* A message's beginning, or NULL. */
    struct ofpbuf *out;         /* A message's rest, or NULL. */
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

/* Reads until 'in' has 'size' bytes. */
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

/* Sends what it can of 'out'. */
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
        ss->out = NULL;         /* It stays the caller's. */
    }
    return error;
}

/* An error shows again when something is received. */
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

struct vconn *
switch_stream_create(struct stream *stream, uint32_t versions)
{
    struct switch_stream *ss = xzalloc(sizeof *ss);

    vconn_init(&ss->up, &switch_stream_class, 0, stream_get_name(stream),
               versions);
    ss->stream = stream;
    return &ss->up;
}
