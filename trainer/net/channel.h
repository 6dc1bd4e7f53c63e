/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CHANNEL_H
#define CHANNEL_H 1

/* A worker's data connection to one server: connect, hello, welcome, and the
 * same again after the connection was lost.
 *
 *    channel_init(&channel, "h0:4000", &hello, congestion, control, watch);
 *    error = channel_open(&channel, timeout_us);
 *    ...use channel.link; when it breaks...
 *    error = channel_open(&channel, reconnect_timeout_us);
 *    if (channel.welcome.epoch == epoch) {
 *        ...send again what is newer than channel.welcome.sequence...
 *    }
 *    channel_end(&channel);
 *
 * 'congestion', 'control' and 'watch' are the caller's.  channel_open() blocks
 * until a signal, at most.  One thread.  Times are of clock_monotonic_us(). */

#include <stdint.h>

#include "trainer/net/frame.h"
#include "trainer/net/link.h"

struct control;
struct server_watch;

struct channel {
    struct link link;
    char *name;                 /* "HOST:PORT". */
    const char *congestion;     /* TCP congestion control, or NULL. */
    struct control *control;    /* Or NULL. */
    struct server_watch *watch; /* Gets each welcome; or NULL. */
    struct frame_hello hello;   /* The client updates its last three members
                                 * before it opens the channel again. */
    struct frame_welcome welcome;       /* The last one. */
};

void channel_init(struct channel *, const char *name,
                  const struct frame_hello *, const char *congestion,
                  struct control *, struct server_watch *);

/* Connects, or connects again.  Retries for 'timeout_us', unless the server
 * refuses the hello.  Sets the epoch of 'hello'.  Returns NULL or a message
 * that names the server. */
char *channel_open(struct channel *, int64_t timeout_us);

/* Sends the queue, and a bye if the kernel takes all, closes, and frees all.
 */
void channel_end(struct channel *);

/* Returns a message that names the server; takes ownership of 'why'. */
char *channel_failure(const struct channel *, char *why);

#endif /* trainer/net/channel.h */
