/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/unit/unit-test.h"
#include "trainer/net/frame.h"
#include "trainer/net/link.h"
#include "trainer/net/token.h"
#include "trainer/schemes/shard.h"

static const struct frame push = {
    .type = FRAME_PUSH, .sequence = 77,
    .gradient = {
        .iteration = UINT64_C(1) << 40, .first = 12345, .n = 678,
        .n_samples = 9, .loss = 1.5,
    },
};

static size_t
encode(struct frame frame, uint8_t head[FRAME_MAX_HEAD])
{
    frame_encode(&frame, head);
    return frame_head_length(frame.type);
}

static char *
decode(const uint8_t *head, struct frame *frame)
{
    size_t length;
    char *error = frame_check_envelope(head, &length);

    return error ? error : frame_decode(head, frame);
}

/* Makes 'text' the token of this process; NULL: it has none. */
static void
set_token(const char *text)
{
    if (text) {
        setenv(TOKEN_VARIABLE, text, 1);
    } else {
        unsetenv(TOKEN_VARIABLE);
    }
    assert_null(token_load(NULL));
}

UNIT_TEST(decodes_what_was_encoded)
{
    uint8_t head[FRAME_MAX_HEAD];
    struct frame out;

    assert_int_equal(encode(push, head), FRAME_ENVELOPE_LENGTH + 28);
    assert_null(decode(head, &out));
    assert_int_equal(out.type, push.type);
    assert_int_equal(out.sequence, push.sequence);
    assert_memory_equal(&out.gradient, &push.gradient, 28);
    assert_int_equal(out.payload_length, 678 * 4);
}

/* Every byte of a head belongs to a field: none is padding. */
UNIT_TEST(bodies_have_no_padding)
{
    static const size_t lengths[FRAME_N_TYPES] = {
        [FRAME_HELLO] = 160,    [FRAME_WELCOME] = 40,   [FRAME_INIT] = 12,
        [FRAME_PART] = 28,      [FRAME_PUSH] = 28,      [FRAME_WEIGHTS] = 24,
        [FRAME_HEARTBEAT] = 8,  [FRAME_ENLIST] = 24,    [FRAME_GROUP] = 20,
        [FRAME_PAUSED] = 12,    [FRAME_MEAN] = 20,      [FRAME_MOVE] = 16,
        [FRAME_JOIN] = 32,      [FRAME_LOST] = 8,       [FRAME_PEER] = 44,
        [FRAME_KEY_ITEMS] = 28, [FRAME_STATISTICS] = 4,
    };

    for (int i = FRAME_HELLO; i < FRAME_N_TYPES; i++) {
        assert_int_equal(frame_type_name(i) == NULL, i >= 7 && i < 13);
        assert_int_equal(frame_head_length(i),
                         FRAME_ENVELOPE_LENGTH + lengths[i]);
    }
}

static void
assert_refused(const uint8_t *head)
{
    struct frame frame;
    char *error = decode(head, &frame);

    assert_non_null(error);
    free(error);
}

/* The check sum covers every byte, so no single one can change unseen. */
UNIT_TEST(refuses_every_changed_byte)
{
    struct frame frame = {
        .type = FRAME_WEIGHTS, .weights = { .iteration = 3, .n = 10 },
    };
    uint8_t head[FRAME_MAX_HEAD];

    for (size_t i = 0; i < frame_head_length(FRAME_WEIGHTS); i++) {
        for (int bit = 0; bit < 8; bit++) {
            encode(frame, head);
            head[i] ^= 1 << bit;
            assert_refused(head);
        }
    }
}

/* Version 4 had 48 bytes of header with the same first 8 bytes. */
UNIT_TEST(another_version_is_refused_by_one_line_that_names_both)
{
    uint8_t old[48] = { 48, 0, 0, 0, 0x0a, 0x5c, 4, FRAME_HELLO };
    struct link link;
    char *error;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
                                fds), 0);
    link_init(&link, fds[0]);
    assert_int_equal(write(fds[1], old, sizeof old), sizeof old);
    assert_int_equal(link_receive(&link, &error), LINK_END);
    assert_is(error, "frame: wire version 4; expected version 9");
    link_close(&link);
    close(fds[1]);
}

/* Writes the sum that makes a head of any content formally right. */
static void
sign(uint8_t *head)
{
    size_t length = frame_head_length(head[7] < FRAME_N_TYPES ? head[7] : 0);
    uint8_t bytes[FRAME_MAX_HEAD];
    uint32_t sum;

    if (length < FRAME_ENVELOPE_LENGTH) {
        length = FRAME_ENVELOPE_LENGTH;
    }
    memcpy(bytes, head, FRAME_ENVELOPE_LENGTH - 4);
    memcpy(bytes + FRAME_ENVELOPE_LENGTH - 4, head + FRAME_ENVELOPE_LENGTH,
           length - FRAME_ENVELOPE_LENGTH);
    sum = XXH3_64bits(bytes, length - 4);
    memcpy(head + FRAME_ENVELOPE_LENGTH - 4, &sum, 4);
}

UNIT_TEST(refuses_lengths_that_do_not_fit)
{
    uint32_t head_length = frame_head_length(FRAME_PUSH);
    const uint32_t lengths[] = {
        0, 1, FRAME_ENVELOPE_LENGTH, head_length - 1, head_length,
        head_length + 39, head_length + 41, UINT32_MAX,
    };
    struct frame frame = { .type = FRAME_PUSH, .gradient.n = 10 };
    uint8_t head[FRAME_MAX_HEAD];

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        encode(frame, head);
        memcpy(head, &lengths[i], 4);
        sign(head);
        assert_refused(head);
    }
    encode(frame, head);
    sign(head);
    assert_null(decode(head, &frame));
}

UNIT_TEST(refuses_more_values_than_fit_into_memory)
{
    static const enum frame_type types[] = {
        FRAME_INIT, FRAME_PUSH, FRAME_WEIGHTS,   FRAME_GROUP,
        FRAME_MEAN, FRAME_PEER, FRAME_KEY_ITEMS, FRAME_STATISTICS,
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct frame frame = { .type = types[i] };
        uint8_t head[FRAME_MAX_HEAD];

        /* 0xff in every byte: 'n', wherever it is, is 2^32 - 1. */
        memset(&frame.hello, 0xff, sizeof frame.hello);
        encode(frame, head);
        assert_refused(head);
    }
}

UNIT_TEST(refuses_long_texts)
{
    uint32_t length = FRAME_ENVELOPE_LENGTH + FRAME_MAX_TEXT;
    uint8_t head[FRAME_MAX_HEAD];
    struct frame frame;

    encode((struct frame) { .type = FRAME_ABORT, .payload_length = 5 }, head);
    memcpy(head, &length, 4);
    sign(head);
    assert_null(decode(head, &frame));
    length++;
    memcpy(head, &length, 4);
    sign(head);
    assert_refused(head);
}

UNIT_TEST(random_heads_are_refused_or_bounded)
{
    uint64_t x = 88172645463325252ULL;

    for (int i = 0; i < 100000; i++) {
        uint8_t head[FRAME_MAX_HEAD];
        uint16_t magic = FRAME_MAGIC;
        struct frame frame;
        char *error;

        for (int j = 0; j < FRAME_MAX_HEAD; j++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            head[j] = x >> 24;
        }
        memcpy(head + 4, &magic, 2);
        head[6] = FRAME_VERSION;
        head[7] %= FRAME_N_TYPES + 1;
        sign(head);
        error = decode(head, &frame);
        if (!error) {
            assert_true(frame.payload_length
                        <= (size_t) FRAME_MAX_FLOATS * 4);
        }
        free(error);
    }
}

UNIT_TEST(refuses_hellos_that_make_no_sense)
{
    const struct frame_hello right = {
        .rank = 1,
        .n_workers = 2,
        .shard = 0,
        .n_shards = 1,
        .n_parameters = 10,
        .learning_rate = 0.1f,
        .momentum = 0.9f,
        .channel = FRAME_NODES,
    };
    struct frame_hello wrong[10] = {
        right, right, right, right, right, right, right, right, right, right,
    };
    uint8_t head[FRAME_MAX_HEAD];
    struct frame out;

    encode((struct frame) { .type = FRAME_HELLO, .hello = right }, head);
    assert_null(decode(head, &out));
    assert_memory_equal(&out.hello, &right, sizeof right);
    wrong[0].rank = 2;
    wrong[1].shard = 1;
    wrong[2].n_parameters = 0;
    wrong[2].channel = FRAME_TRAINING;
    wrong[3].n_parameters = SHARD_MAX_TOTAL + 1;
    wrong[4].learning_rate = NAN;
    wrong[5].n_shards = 0;
    wrong[6].optimiser = 99;
    wrong[7].channel = FRAME_N_CHANNELS;
    wrong[8].n_statistics = FRAME_MAX_UPDATE / 4 + 1;
    wrong[9].weight_decay = INFINITY;
    for (int i = 0; i < 10; i++) {
        encode((struct frame) { .type = FRAME_HELLO, .hello = wrong[i] },
               head);
        assert_refused(head);
    }
}

/* A model has at most 2^32 parameters, and a server 2^29 of them. */
UNIT_TEST(hellos_of_large_models_need_enough_servers)
{
    static const struct {
        uint64_t n_parameters;
        uint32_t n_shards, channel;
        const char *message;
    } cases[] = {
        { SHARD_MAX, 1, FRAME_TRAINING, NULL },
        { SHARD_MAX + 1, 1, FRAME_TRAINING,
          "hello: 536870913 parameters with 1 server; expected at least 2 "
          "servers" },
        { SHARD_MAX_TOTAL, 8, FRAME_TRAINING, NULL },
        { SHARD_MAX_TOTAL, 7, FRAME_TRAINING,
          "hello: 4294967296 parameters with 7 servers; expected at least 8 "
          "servers" },
        { SHARD_MAX_TOTAL, 1, FRAME_PEERS, NULL },
        { SHARD_MAX_TOTAL + 1, 64, FRAME_TRAINING,
          "hello: 4294967297 parameters; expected at most 4294967296" },
        { SHARD_MAX_TOTAL + 1, 64, FRAME_PEERS,
          "hello: 4294967297 parameters; expected at most 4294967296" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t head[FRAME_MAX_HEAD];
        struct frame out;
        char *error;

        encode((struct frame) {
            .type = FRAME_HELLO,
            .hello = {
                .n_workers = 1, .n_shards = cases[i].n_shards,
                .n_parameters = cases[i].n_parameters,
                .channel = cases[i].channel,
            },
        }, head);
        error = decode(head, &out);
        if (cases[i].message) {
            assert_string_equal(error, cases[i].message);
        } else {
            assert_null(error);
        }
        free(error);
    }
}

/* The longest frame has a length of less than 2^32 bytes. */
UNIT_TEST(the_largest_shard_is_one_frame)
{
    struct frame frame = {
        .type = FRAME_WEIGHTS, .weights.n = SHARD_MAX,
    }, out;
    uint8_t head[FRAME_MAX_HEAD];

    encode(frame, head);
    assert_null(decode(head, &out));
    assert_int_equal(out.payload_length, SHARD_MAX * sizeof(float));
    frame.weights.n++;
    encode(frame, head);
    assert_refused(head);
}

/* A frame whose bytes come one by one is still one frame. */
UNIT_TEST(links_take_frames_in_pieces)
{
    float body[3] = { 1, 2, 3 }, got[3] = { 0 };
    uint8_t bytes[FRAME_MAX_HEAD + sizeof body];
    size_t head_length;
    enum link_state last = LINK_AGAIN;
    struct link link;
    char *error;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
                                fds), 0);
    head_length = encode((struct frame) {
        .type = FRAME_PUSH, .gradient.n = 3,
    }, bytes);
    memcpy(bytes + head_length, body, sizeof body);
    link_init(&link, fds[0]);
    for (size_t i = 0; i < head_length + sizeof body; i++) {
        assert_int_equal(last, LINK_AGAIN);
        assert_int_equal(write(fds[1], bytes + i, 1), 1);
        last = link_receive(&link, &error);
        if (last == LINK_HEAD) {
            assert_int_equal(i, head_length - 1);
            link_set_payload(&link, got);
            last = link_receive(&link, &error);
        }
    }
    assert_int_equal(last, LINK_FRAME);
    assert_memory_equal(got, body, sizeof body);

    /* Half a head and then the end is an error with a message. */
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

UNIT_TEST(shards_cover_everything_once)
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

/* The frames that begin a connection are refused without the token of the
 * job, whatever else they say; others have none. */
UNIT_TEST(a_stranger_is_refused)
{
    static const struct frame hello = {
        .type = FRAME_HELLO,
        .hello = { .n_workers = 2, .n_shards = 1, .n_parameters = 10,
                   .learning_rate = 0.1f },
    };
    static const struct frame enlist = {
        .type = FRAME_ENLIST, .payload_length = 3,
    };
    static const struct frame join = { .type = FRAME_JOIN };
    const struct frame *const first[] = { &hello, &enlist, &join };
    char *tokens[] = { token_create(), token_create(), NULL };

    assert_string_not_equal(tokens[0], tokens[1]);
    for (int ours = 0; ours < 3; ours++) {
        for (int theirs = 0; theirs < 3; theirs++) {
            uint8_t heads[4][FRAME_MAX_HEAD];
            struct frame out;

            set_token(tokens[theirs]);
            for (int i = 0; i < 3; i++) {
                encode(*first[i], heads[i]);
            }
            encode(push, heads[3]);
            set_token(tokens[ours]);
            for (int i = 0; i < 4; i++) {
                char *error = decode(heads[i], &out);

                if (i == 3 || ours == theirs) {
                    assert_null(error);
                } else {
                    assert_says(error, ": the token is not that of "
                                       "this job");
                }
            }
        }
    }
    set_token(NULL);
    free(tokens[0]);
    free(tokens[1]);
}

/* The hello that a process keeps of itself has no token, which is written when
 * it is sent. */
UNIT_TEST(a_job_with_a_token_agrees_with_itself)
{
    struct frame_hello sent = { .rank = 1, .n_workers = 2, .token = { 1 } };
    struct frame_hello kept = { .n_workers = 2 };

    assert_true(frame_hello_agrees(&sent, &kept));
    assert_true(frame_hello_agrees(&kept, &sent));
    sent.n_workers = 3;
    assert_false(frame_hello_agrees(&sent, &kept));
}

UNIT_TEST(a_token_is_hexadecimal)
{
    static const char *const wrong[] = {
        "0", "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdefa",
        "0123456789abcdef 123456789abcdef",
    };
    char file[] = "/tmp/test-token-XXXXXX";
    int fd = mkstemp(file);
    char *error;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv(TOKEN_VARIABLE, wrong[i], 1);
        error = token_load(NULL);
        assert_is(error, "STAGECOACH_TOKEN: not a token; expected 32 "
                         "hexadecimal digits");
    }
    dprintf(fd, "0123456789abcdef0123456789ABCDEF\nmore\n");
    close(fd);
    assert_null(token_load(file));      /* It counts, not the variable. */
    unlink(file);
    assert_says(token_load(file), "No such file");
    set_token(NULL);
}
