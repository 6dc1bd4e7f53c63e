/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the frames of a trainer's connection.  If the first byte is odd, the
 * headers and checksums of the frames are repaired, because random input would
 * never have valid ones. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/fuzz/must.h"
#include "trainer/net/link.h"

#define MAX_BODY 65536

static void
repair_frames(uint8_t *p, size_t size)
{
    while (size >= FRAME_ENVELOPE_LENGTH) {
        uint8_t bytes[FRAME_MAX_HEAD];
        size_t head_length;
        uint32_t sum, length;
        char *error;

        p[4] = FRAME_MAGIC & 0xff;
        p[5] = FRAME_MAGIC >> 8;
        p[6] = FRAME_VERSION;
        error = frame_check_envelope(p, &head_length);
        if (error) {
            free(error);
            return;
        }
        if (head_length > size) {
            return;
        }
        memcpy(bytes, p, FRAME_ENVELOPE_LENGTH - 4);
        memcpy(bytes + FRAME_ENVELOPE_LENGTH - 4, p + FRAME_ENVELOPE_LENGTH,
               head_length - FRAME_ENVELOPE_LENGTH);
        sum = XXH3_64bits(bytes, head_length - 4);
        memcpy(p + FRAME_ENVELOPE_LENGTH - 4, &sum, 4);
        memcpy(&length, p, 4);
        if (length < head_length || length > size) {
            return;
        }
        p += length;
        size -= length;
    }
}

/* Checks that an accepted frame can be sent again, with the same bytes. */
static void
check_frame(const struct link *link)
{
    struct frame frame = link->frame, again;
    uint8_t head[FRAME_MAX_HEAD];
    size_t head_length;

    must(frame.type >= FRAME_HELLO && frame.type < FRAME_N_TYPES);
    must(frame.payload_length <= (size_t) FRAME_MAX_FLOATS * sizeof(float));
    frame_encode(&frame, head);
    must(frame.payload_length == link->frame.payload_length);
    must(!frame_check_envelope(head, &head_length));
    must(head_length == frame_head_length(frame.type));
    must(!frame_decode(head, &again));
    must(!memcmp(&again, &link->frame, sizeof again));
    if (frame.type == FRAME_HELLO) {
        must(frame.hello.rank < frame.hello.n_workers);
        must(frame.hello.shard < frame.hello.n_shards);
        must(frame.hello.channel < FRAME_N_CHANNELS);
    }
}

static void
receive_all(struct link *link)
{
    uint8_t *body = NULL;
    int n_again = 0;
    char *error;

    for (;;) {
        switch (link_receive(link, &error)) {
        case LINK_HEAD:
            check_frame(link);
            if (link->frame.payload_length > MAX_BODY) {
                free(body);
                return;         /* As a server does that did not ask. */
            }
            free(body);
            body = malloc(link->frame.payload_length + 1);
            must(body);
            link_set_payload(link, body);
            break;
        case LINK_FRAME:
            n_again = 0;
            break;
        case LINK_AGAIN:
            must(++n_again < 3);        /* The other end is closed. */
            break;
        case LINK_END:
            must(!error || !strchr(error, '\n'));
            free(error);
            free(body);
            return;
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;
    struct link link;
    int fds[2];

    if (!size) {
        return 0;
    }
    copy = copy_bytes(data + 1, size - 1);
    if (data[0] & 1) {
        repair_frames(copy, size - 1);
    }
    must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
    must(send(fds[1], copy, size - 1, 0) == (ssize_t) (size - 1));
    close(fds[1]);
    link_init(&link, fds[0]);
    receive_all(&link);
    link_close(&link);
    free(copy);
    return 0;
}
