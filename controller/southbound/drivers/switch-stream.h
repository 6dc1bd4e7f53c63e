/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SWITCH_STREAM_H
#define SWITCH_STREAM_H 1

/* OpenFlow over a stream that is ours.
 *
 * libopenvswitch opens streams for OpenFlow by itself and lets nobody ask
 * whose certificate is at the other end.  This makes a connection of a stream
 * that the caller has opened, and has looked at.
 *
 * The connection owns the stream.  Main thread only. */

#include <stdint.h>

struct stream;
struct vconn;

/* Makes a connection of 'stream', which is connected, for the OpenFlow
 * versions in the bitmap 'versions'. */
struct vconn *switch_stream_create(struct stream *, uint32_t versions);

#endif /* controller/southbound/drivers/switch-stream.h */
