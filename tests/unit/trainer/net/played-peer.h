/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PLAYED_PEER_H
#define PLAYED_PEER_H 1

/* The other ends of a mesh's connections, which a test plays. */

#include "tests/unit/unit-test.h"
#include "trainer/net/link.h"

/* Waits for a whole frame, which must be of this type. */
static inline void
await_frame(struct link *link, enum frame_type type)
{
    enum link_state state;
    char *error;

    do {
        state = link_receive(link, &error);
        assert_int_not_equal(state, LINK_END);
        if (state == LINK_HEAD) {
            assert_int_equal(link->frame.type, type);
        }
    } while (state != LINK_FRAME);
}

static inline void
send_frame(struct link *link, struct frame *frame)
{
    link_send(link, frame, NULL);
    assert_int_equal(link_flush(link), 0);
}

/* Joins as 'rank' by 'fd', which is connected to the lower rank 'shard'. */
static inline void
play_higher_rank(struct link *link, int fd, const struct frame_hello *hello,
                 int rank, int shard)
{
    struct frame frame = { .type = FRAME_HELLO, .hello = *hello };

    frame.hello.rank = rank;
    frame.hello.shard = shard;
    link_init(link, fd);
    send_frame(link, &frame);
    await_frame(link, FRAME_WELCOME);
}

#endif /* tests/unit/trainer/net/played-peer.h */
