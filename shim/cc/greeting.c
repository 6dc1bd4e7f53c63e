/* SPDX-License-Identifier: Apache-2.0 */

/* When the option of hello.h is said, and what follows from hearing it. */

#include "shim/cc/hello.h"
#include "shim/cc/state.h"

#define MS UINT64_C(1000000)
#define ASK_NS (100 * MS)       /* Between two hellos on acknowledgements... */
#define MAX_ASKS 5              /* ...and so many without an answer. */

static void
insert_hello(struct cc_frame *frame, struct segment *seg,
             const struct cc_peer *peer)
{
    struct hello hello = {
        .version = HELLO_VERSION,
        .flags = HELLO_ECN,
        .nonce = peer->own_nonce,
    };

    frame->data = hello_insert(frame->data, seg, &hello);
    frame->length += HELLO_ROOM;
    frame->room -= HELLO_ROOM;
}

/* Shows this shim to the peer's, if 'seg' is one to do it with: the first SYN
 * of a flow (one that is sent again goes without, in case that somebody on the
 * way does not like the option), its answer if the SYN had it, and some
 * acknowledgements if nobody has answered yet. */
void
greeting_say(struct cc_frame *frame, struct segment *seg,
             struct cc_flow *flow, struct cc_peer *peer, uint64_t now)
{
    bool is_syn = seg->flags & SEGMENT_SYN;

    if (frame->room < HELLO_ROOM || !hello_fits(seg)) {
        return;
    }
    if (is_syn) {
        if (!flow->said_hello
            && (!(seg->flags & SEGMENT_ACK) || peer->proven)) {
            flow->said_hello = true;
            insert_hello(frame, seg, peer);
        }
        return;
    }
    if (!peer->proven && !seg->payload && flow->in.bulk
        && peer->asks < MAX_ASKS && now - peer->asked > ASK_NS) {
        peer->asks++;
        peer->asked = now;
        insert_hello(frame, seg, peer);
    }
}

/* The shim of 'peer', which may be null, shows itself in 'seg'. */
void
greeting_hear(struct cc *cc, struct cc_frame *frame, struct segment *seg,
              const struct segment_options *o, struct cc_peer *peer)
{
    uint8_t *data = frame->data;
    struct hello hello;

    hello_read(data + o->hello_at, &hello);
    frame->data = hello_remove(data, seg, o);
    frame->length -= frame->data - data;
    frame->room += frame->data - data;
    if (!peer || hello.version != HELLO_VERSION) {
        return;
    }
    cc_peer_prove(peer, hello.flags, hello.nonce);
    if (!(seg->flags & SEGMENT_SYN) && peer->l2_size) {
        message_send(cc, peer, GRANT_HELLO);
    }
}
