/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "trainer/net/frame.h"
#include "trainer/net/link.h"
#include "trainer/schemes/shard.h"

static void
encode(struct frame frame, uint8_t header[FRAME_HEADER_LENGTH])
{
    frame_encode(&frame, header);
}

static void
decodes_what_was_encoded(void **state)
{
    struct frame in = {
        .type = FRAME_PUSH, .iteration = UINT64_C(1) << 40, .first = 12345,
        .n = 678, .samples = 9, .value = 1.5,
    };
    uint8_t header[FRAME_HEADER_LENGTH];
    struct frame out;

    encode(in, header);
    assert_null(frame_decode(header, &out));
    assert_int_equal(out.type, in.type);
    assert_int_equal(out.iteration, in.iteration);
    assert_int_equal(out.first, in.first);
    assert_int_equal(out.n, in.n);
    assert_int_equal(out.samples, in.samples);
    assert_true(out.value == in.value);
    assert_int_equal(out.body_length, 678 * 4);
}

static void
assert_refused(const uint8_t header[FRAME_HEADER_LENGTH])
{
    struct frame frame;
    char *error = frame_decode(header, &frame);

    assert_non_null(error);
    free(error);
}

/* The check sum covers every byte, so no single one can change unseen. */
static void
refuses_every_changed_byte(void **state)
{
    struct frame frame = { .type = FRAME_WEIGHTS, .iteration = 3, .n = 10 };
    uint8_t header[FRAME_HEADER_LENGTH];

    for (int i = 0; i < FRAME_HEADER_LENGTH; i++) {
        for (int bit = 0; bit < 8; bit++) {
            encode(frame, header);
            header[i] ^= 1 << bit;
            assert_refused(header);
        }
    }
}

/* Writes the sum that makes a header of any content formally right. */
static void
sign(uint8_t header[FRAME_HEADER_LENGTH])
{
    uint32_t sum = XXH3_64bits(header, FRAME_HEADER_LENGTH - 4);

    memcpy(header + FRAME_HEADER_LENGTH - 4, &sum, 4);
}

static void
refuses_lengths_that_do_not_fit(void **state)
{
    static const uint32_t lengths[] = {
        0, 1, FRAME_HEADER_LENGTH - 1, FRAME_HEADER_LENGTH,
        FRAME_HEADER_LENGTH + 39, FRAME_HEADER_LENGTH + 41, UINT32_MAX,
    };
    uint8_t header[FRAME_HEADER_LENGTH];

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        encode((struct frame) { .type = FRAME_PUSH, .n = 10 }, header);
        memcpy(header, &lengths[i], 4);
        sign(header);
        assert_refused(header);
    }
    encode((struct frame) { .type = FRAME_PUSH, .n = 10 }, header);
    sign(header);
    assert_null(frame_decode(header, &(struct frame) { .n = 0 }));
}

static void
refuses_more_values_than_fit_into_memory(void **state)
{
    uint32_t n = FRAME_MAX_FLOATS + 1, length = FRAME_HEADER_LENGTH + 4 * n;
    uint8_t header[FRAME_HEADER_LENGTH];

    encode((struct frame) { .type = FRAME_PUSH, .n = 1 }, header);
    memcpy(header, &length, 4);
    memcpy(header + 32, &n, 4);
    sign(header);
    assert_refused(header);
}

static void
refuses_long_texts(void **state)
{
    uint32_t length = FRAME_HEADER_LENGTH + FRAME_MAX_TEXT;
    uint8_t header[FRAME_HEADER_LENGTH];
    struct frame frame;

    encode((struct frame) { .type = FRAME_ABORT, .body_length = 5 }, header);
    memcpy(header, &length, 4);
    sign(header);
    assert_null(frame_decode(header, &frame));
    length++;
    memcpy(header, &length, 4);
    sign(header);
    assert_refused(header);
}

static void
random_headers_are_refused_or_bounded(void **state)
{
    uint64_t x = 88172645463325252ULL;

    for (int i = 0; i < 100000; i++) {
        uint8_t header[FRAME_HEADER_LENGTH];
        uint16_t magic = FRAME_MAGIC;
        struct frame frame;
        char *error;

        for (int j = 0; j < FRAME_HEADER_LENGTH; j++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            header[j] = x >> 24;
        }
        memcpy(header + 4, &magic, 2);
        header[6] = FRAME_VERSION;
        header[7] %= FRAME_N_TYPES + 1;
        sign(header);
        error = frame_decode(header, &frame);
        if (!error) {
            assert_true(frame.body_length <= (size_t) FRAME_MAX_FLOATS * 4);
        }
        free(error);
    }
}

static void
refuses_hellos_that_make_no_sense(void **state)
{
    const struct frame_hello right = {
        .rank = 1, .n_workers = 2, .shard = 0, .n_shards = 1,
        .n_parameters = 10, .learning_rate = 0.1f, .momentum = 0.9f,
        .width = 1,
    };
    struct frame_hello wrong[10] = {
        right, right, right, right, right, right, right, right, right, right,
    };
    uint8_t body[FRAME_HELLO_LENGTH];
    struct frame_hello out;

    frame_hello_encode(&right, body);
    assert_null(frame_hello_decode(body, &out));
    wrong[0].rank = 2;
    wrong[1].shard = 1;
    wrong[2].n_parameters = 0;
    wrong[3].n_parameters = (uint64_t) FRAME_MAX_FLOATS + 1;
    wrong[4].learning_rate = NAN;
    wrong[5].n_shards = 0;
    wrong[6].width = 0;
    wrong[7].width = FRAME_MAX_WIDTH + 1;
    wrong[8].optimiser = 99;
    wrong[9].channel = FRAME_N_CHANNELS;
    for (int i = 0; i < 10; i++) {
        char *error;

        frame_hello_encode(&wrong[i], body);
        error = frame_hello_decode(body, &out);
        assert_non_null(error);
        free(error);
    }
}

/* Heartbeats are those of the job, which may have no dense vector. */
static void
hellos_of_stores_may_have_keys_only(void **state)
{
    struct frame_hello hello = {
        .n_workers = 1, .n_shards = 1, .key_space = 10, .width = 1,
        .learning_rate = 0.1f, .channel = FRAME_STORE,
    };
    uint8_t body[FRAME_HELLO_LENGTH];
    struct frame_hello out;

    frame_hello_encode(&hello, body);
    assert_null(frame_hello_decode(body, &out));
    hello.channel = FRAME_CONTROL;
    frame_hello_encode(&hello, body);
    assert_null(frame_hello_decode(body, &out));
}

/* A frame whose bytes come one by one is still one frame. */
static void
links_take_frames_in_pieces(void **state)
{
    float body[3] = { 1, 2, 3 }, got[3] = { 0 };
    uint8_t bytes[FRAME_HEADER_LENGTH + sizeof body];
    enum link_state last = LINK_AGAIN;
    struct link link;
    char *error;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
                                fds), 0);
    encode((struct frame) { .type = FRAME_PUSH, .n = 3 }, bytes);
    memcpy(bytes + FRAME_HEADER_LENGTH, body, sizeof body);
    link_init(&link, fds[0]);
    for (size_t i = 0; i < sizeof bytes; i++) {
        assert_int_equal(last, LINK_AGAIN);
        assert_int_equal(write(fds[1], bytes + i, 1), 1);
        last = link_receive(&link, &error);
        if (last == LINK_HEADER) {
            assert_int_equal(i, FRAME_HEADER_LENGTH - 1);
            link_set_body(&link, got);
            last = link_receive(&link, &error);
        }
    }
    assert_int_equal(last, LINK_FRAME);
    assert_memory_equal(got, body, sizeof body);

    /* Half a header and then the end is an error, and says so. */
    assert_int_equal(write(fds[1], bytes, 7), 7);
    close(fds[1]);
    while ((last = link_receive(&link, &error)) == LINK_AGAIN) {
        continue;               /* poll() would return at once. */
    }
    assert_int_equal(last, LINK_END);
    assert_non_null(error);
    free(error);
    link_close(&link);
}

static void
shards_cover_everything_once(void **state)
{
    for (size_t total = 0; total < 40; total++) {
        for (size_t n = 1; n < 9; n++) {
            size_t next = 0;

            for (size_t i = 0; i < n; i++) {
                struct shard shard = shard_range(total, i, n);

                assert_int_equal(shard.first, next);
                assert_true(shard.n >= total / n && shard.n <= total / n + 1);
                next += shard.n;
            }
            assert_int_equal(next, total);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_was_encoded),
        cmocka_unit_test(refuses_every_changed_byte),
        cmocka_unit_test(refuses_lengths_that_do_not_fit),
        cmocka_unit_test(refuses_more_values_than_fit_into_memory),
        cmocka_unit_test(refuses_long_texts),
        cmocka_unit_test(random_headers_are_refused_or_bounded),
        cmocka_unit_test(refuses_hellos_that_make_no_sense),
        cmocka_unit_test(hellos_of_stores_may_have_keys_only),
        cmocka_unit_test(links_take_frames_in_pieces),
        cmocka_unit_test(shards_cover_everything_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
