/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/dial.h"

#include <errno.h>
#include <stdlib.h>

#include "controller/southbound/drivers/switch-stream.h"
#include "openflow/openflow-common.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vconn.h"
#include "openvswitch/vlog.h"
#include "socket-util.h"
#include "stream.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(dial);

#define TRY_MSEC 5000           /* For TLS and hellos. */
#define FIRST_BACKOFF_MSEC 1000
#define MAX_BACKOFF_MSEC 8000

struct dial {
    char *target;
    uint32_t versions;
    struct stream *stream;      /* That is being connected, or NULL, */
    struct vconn *vconn;        /* then: over which hellos are said. */
    char *peer;
    long long int next;         /* When to try again. */
    long long int deadline;     /* Of this try. */
    int backoff;                /* Milliseconds, after the next try. */
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
start(struct dial *d)
{
    d->deadline = time_msec() + TRY_MSEC;
    d->next = time_msec() + d->backoff;
    d->backoff = MIN(2 * d->backoff, MAX_BACKOFF_MSEC);
    free(d->peer);
    d->peer = NULL;
    return stream_open_with_default_port(d->target, OFP_PORT, &d->stream,
                                         DSCP_DEFAULT);
}

/* The stream is connected: goes on to hellos. */
static void
begin_openflow(struct dial *d)
{
    d->peer = nullable_xstrdup(stream_get_peer_id(d->stream));
    d->vconn = switch_stream_create(d->stream, d->versions);
    d->stream = NULL;
}

/* Goes on with a try.  Returns 0 when it is done, EAGAIN if it goes on. */
static int
proceed(struct dial *d)
{
    if (d->stream) {
        int error;

        stream_run(d->stream);
        error = stream_connect(d->stream);
        if (error) {
            return error;
        }
        begin_openflow(d);
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
        error = proceed(d);
    } else if (time_msec() >= d->next) {
        error = start(d);
        error = error ? error : proceed(d);
    }
    if (!error) {
        vconn = d->vconn;
        d->vconn = NULL;
    } else if (error != EAGAIN
               || ((d->stream || d->vconn) && time_msec() >= d->deadline)) {
        VLOG_INFO_RL(&rl, "%s: cannot be connected to (%s)", d->target,
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
