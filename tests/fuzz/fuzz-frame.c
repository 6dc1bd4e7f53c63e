/* SPDX-License-Identifier: Apache-2.0 */

/* What comes over a trainer's connection.  A first byte that is odd repairs
 * the beginnings and check sums of the frames after it, which chance would
 * never find. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/fuzz/must.h"
#include "trainer/net/keys.h"
#include "trainer/net/link.h"

#define MAX_BODY 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
repair_frames(uint8_t *p, size_t size)
{
    while (size >= FRAME_HEADER_LENGTH) {
        uint32_t sum, length;

        p[4] = FRAME_MAGIC & 0xff;
        p[5] = FRAME_MAGIC >> 8;
        p[6] = FRAME_VERSION;
        sum = XXH3_64bits(p, FRAME_HEADER_LENGTH - 4);
        memcpy(p + FRAME_HEADER_LENGTH - 4, &sum, 4);
        memcpy(&length, p, 4);
        if (length < FRAME_HEADER_LENGTH || length > size) {
            return;
        }
        p += length;
        size -= length;
    }
}

/* A frame that was taken can be said again. */
static void
check_frame(const struct link *link)
{
    struct frame frame = link->frame;
    uint8_t header[FRAME_HEADER_LENGTH];

    must(frame.type >= FRAME_HELLO && frame.type < FRAME_N_TYPES);
    must(frame.n <= FRAME_MAX_FLOATS);
    frame_encode(&frame, header);
    must(frame.body_length == link->frame.body_length);
    must(!memcmp(header, link->header, sizeof header));
}

static void
check_hello(const uint8_t *body)
{
    struct frame_hello hello;
    uint8_t again[FRAME_HELLO_LENGTH];
    char *error = frame_hello_decode(body, &hello);

    if (!error) {
        must(hello.rank < hello.n_workers);
        must(hello.shard < hello.n_shards);
        must(hello.width && hello.channel < FRAME_N_CHANNELS);
        frame_hello_encode(&hello, again);
        must(!memcmp(again, body, sizeof again));
    }
    free(error);
}

static void
check_welcome(const uint8_t *body)
{
    struct frame_welcome welcome;
    uint8_t again[FRAME_WELCOME_LENGTH];
    char *error = frame_welcome_decode(body, &welcome);

    if (!error) {
        frame_welcome_encode(&welcome, again);
        must(!memcmp(again, body, sizeof again));
    }
    free(error);
}

/* Keys that were taken ascend, and would be sent in as few bytes or fewer. */
static void
check_keys(const struct frame *frame, const uint8_t *body)
{
    uint64_t *keys;
    int size;

    if (frame->n > MAX_BODY) {
        return;                 /* As a server, which bounds the answer. */
    }
    keys = malloc((frame->n + 1) * sizeof *keys);
    must(keys);
    if (keys_decode(frame->first, body, frame->n, frame->key_size, keys)) {
        size = keys_choose(keys, frame->n);
        must(size != KEYS_UNSORTED && size <= frame->key_size);
        must(!frame->n || keys[0] == frame->first);
    }
    free(keys);
}

static void
check_body(const struct link *link, const uint8_t *body)
{
    switch (link->frame.type) {
    case FRAME_HELLO:
        check_hello(body);
        break;
    case FRAME_WELCOME:
        check_welcome(body);
        break;
    case FRAME_UPDATE_KEYS:
    case FRAME_READ_KEYS:
        check_keys(&link->frame, body);
        break;
    default:
        break;
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
        case LINK_HEADER:
            check_frame(link);
            if (link->frame.body_length > MAX_BODY) {
                free(body);
                return;         /* As a server does that did not ask. */
            }
            free(body);
            body = malloc(link->frame.body_length + 1);
            must(body);
            link_set_body(link, body);
            break;
        case LINK_FRAME:
            n_again = 0;
            check_body(link, body);
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
