/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_CHANNEL_H
#define PS_CHANNEL_H 1

/* A worker's connection for data to one server, and the next one if it
 * breaks.
 *
 *
 * Motivation
 * ==========
 *
 * Clients of trainings and of stores differ in what they send, not in how
 * they come to be known: connect, hello, welcome.  A connection that breaks
 * may be opened again; the welcome then says what the server has, and whether
 * it is still the one that was talked to before.
 *
 *
 * Usage
 * =====
 *
 *    channel_init(&channel, "h0:4000", &hello, congestion, control);
 *    error = channel_open(&channel, timeout_us);
 *    ...use channel.link; when it breaks...
 *    error = channel_open(&channel, patience_us);
 *    if (channel.welcome.epoch == epoch) {
 *        ...send again what channel.welcome.sequence has not...
 *    }
 *    channel_end(&channel);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * 'congestion' and 'control' are the caller's.  channel_open() blocks,
 * but a signal ends it.  One thread. */

#include <stdint.h>

#include "trainer/net/dispatch.h"
#include "trainer/net/frame.h"
#include "trainer/net/link.h"

struct control;

struct channel {
    struct link link;
    char *name;                 /* "HOST:PORT". */
    const char *congestion;
    struct control *control;    /* Or NULL. */
    struct frame_hello hello;   /* Epoch, sequence and rewind are kept up to
                                 * date by the client. */
    struct frame_welcome welcome;       /* The last one. */
};

void channel_init(struct channel *, const char *name,
                  const struct frame_hello *, const char *congestion,
                  struct control *);

/* (Re)connects; tries again until 'timeout_us' are over unless the server
 * refuses.  Returns NULL or a message that names the server.  Sets 'hello's
 * epoch to the server's. */
char *channel_open(struct channel *, int64_t timeout_us);
void channel_close(struct channel *);

/* Says bye if it can, closes, and frees what the channel has. */
void channel_end(struct channel *);

/* Waits for 'events' of 'fd' until 'until_us'.  Returns 0 or an errno:
 * ECANCELED if 'control', which may be NULL, says to stop. */
int channel_wait(struct control *, int fd, short events, int64_t until_us);

/* Receives frames until a handler has set '*done'.  Returns NULL or a message;
 * then '*final' is set if the control says to stop. */
char *channel_await(struct control *, struct link *,
                    const struct dispatcher *, void *aux, const bool *done,
                    int64_t until_us, bool *final);

/* A message that names the server; takes ownership of 'why'. */
char *channel_failure(const struct channel *, char *why);

#endif /* trainer/net/channel.h */
