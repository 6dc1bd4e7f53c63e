/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/shard.h"

#define SUM_AT (FRAME_ENVELOPE_LENGTH - 4)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Frames are sent as they lie in memory, least significant byte first."
#endif

/* How long the payload of a kind is. */
enum payload {
    PAYLOAD_NONE,
    PAYLOAD_WORDS, /* 'n' words of 4 bytes. */
    PAYLOAD_TEXT,
    PAYLOAD_SCHEME,
};

/* A kind's body is sent as it lies in memory, up to 'length': the end of its
 * last member, without the padding at the end of the structure. */
#define BODY(MEMBER, LAST)                                              \
    .length = offsetof(struct frame, MEMBER.LAST)                       \
              + sizeof ((struct frame *) NULL)->MEMBER.LAST             \
              - offsetof(struct frame, hello)
#define WORDS(MEMBER)                                                   \
    .payload = PAYLOAD_WORDS, .n_at = offsetof(struct frame, MEMBER.n)
#define TOKEN(MEMBER) .token_at = offsetof(struct frame, MEMBER.token)

static const struct kind {
    const char *name;
    size_t length;              /* Of the body, bytes. */
    enum payload payload;
    size_t n_at;                /* Of 'n' in struct frame, if it has one. */
    size_t token_at;            /* Of the token in struct frame, 0 if the kind
                                 * has none. */
} kinds[FRAME_N_TYPES] = {
    [FRAME_HELLO] = { "hello", BODY(hello, token), TOKEN(hello) },
    [FRAME_WELCOME] = { "welcome", BODY(welcome, control_port) },
    [FRAME_INIT] = { "init", BODY(range, n), WORDS(range) },
    [FRAME_PART] = { "part", BODY(gradient, loss), WORDS(gradient) },
    [FRAME_PUSH] = { "push", BODY(gradient, loss), WORDS(gradient) },
    [FRAME_WEIGHTS] = { "weights", BODY(weights, loss), WORDS(weights) },
    [FRAME_STATISTICS] = { "statistics", BODY(values, n), WORDS(values) },
    [FRAME_SCHEME] = { "scheme", .payload = PAYLOAD_SCHEME },
    [FRAME_HEARTBEAT] = { "heartbeat", BODY(heartbeat, iteration) },
    [FRAME_BYE] = { "bye" },
    [FRAME_ABORT] = { "abort", .payload = PAYLOAD_TEXT },
    [FRAME_ENLIST] = { "enlist", BODY(enlist, token), PAYLOAD_TEXT,
                       TOKEN(enlist) },
    [FRAME_GROUP] = { "group", BODY(group, n), WORDS(group) },
    [FRAME_PAUSED] = { "paused", BODY(paused, n), WORDS(paused) },
    [FRAME_MEAN] = { "mean", BODY(mean, loss), WORDS(mean) },
    [FRAME_MOVE] = { "move", BODY(move, n_counted), PAYLOAD_TEXT },
    [FRAME_JOIN] = { "join", BODY(join, token), TOKEN(join) },
    [FRAME_PULL] = { "pull" },
    [FRAME_LOST] = { "lost", BODY(lost, generation) },
    [FRAME_PAUSE] = { "rest" },
    [FRAME_PEER] = { "peer", BODY(peer, n), WORDS(peer) },
    [FRAME_KEY_ITEMS] = { "key_items", BODY(items, n), WORDS(items) },
};

/* The wire has no padding: members follow each other in descending alignment,
 * and the longest body fits into a head. */
_Static_assert(sizeof(struct frame_hello) == 160, "hello");
_Static_assert(sizeof(struct frame_welcome) == 40, "welcome");
_Static_assert(FRAME_ENVELOPE_LENGTH + sizeof(struct frame_hello)
               <= FRAME_MAX_HEAD, "head");

const char *
frame_type_name(enum frame_type type)
{
    return kinds[type].name;
}

size_t
frame_head_length(enum frame_type type)
{
    return FRAME_ENVELOPE_LENGTH + kinds[type].length;
}

/* The only right length of a payload, or 'length' if several are right. */
static size_t
right_payload_length(const struct frame *frame, size_t length)
{
    const struct kind *kind = &kinds[frame->type];
    uint32_t n;

    switch (kind->payload) {
    case PAYLOAD_WORDS:
        memcpy(&n, (const uint8_t *) frame + kind->n_at, sizeof n);
        return (size_t) n * sizeof(float);
    case PAYLOAD_TEXT:
        return length < FRAME_MAX_TEXT ? length : FRAME_MAX_TEXT;
    case PAYLOAD_SCHEME:
        return FRAME_SCHEME_LENGTH;
    default:
        return 0;
    }
}

/* Detects a stream that is out of step; TCP guards the bits. */
static uint32_t
check_sum(const uint8_t *head, size_t body_length)
{
    uint8_t bytes[FRAME_MAX_HEAD];

    memcpy(bytes, head, SUM_AT);
    memcpy(bytes + SUM_AT, head + FRAME_ENVELOPE_LENGTH, body_length);
    return XXH3_64bits(bytes, SUM_AT + body_length);
}

void
frame_encode(struct frame *frame, uint8_t *head)
{
    const struct kind *kind = &kinds[frame->type];
    size_t body_length = kind->length;
    uint16_t magic = FRAME_MAGIC;
    uint32_t length, sum;

    frame->payload_length = right_payload_length(frame, frame->payload_length);
    if (kind->token_at) {
        token_put((uint8_t *) frame + kind->token_at);
    }
    length = FRAME_ENVELOPE_LENGTH + body_length + frame->payload_length;
    memcpy(head, &length, 4);
    memcpy(head + 4, &magic, 2);
    head[6] = FRAME_VERSION;
    head[7] = frame->type;
    memcpy(head + 8, &frame->sequence, 8);
    memcpy(head + FRAME_ENVELOPE_LENGTH, &frame->hello, body_length);
    sum = check_sum(head, body_length);
    memcpy(head + SUM_AT, &sum, 4);
}

char *
frame_check_envelope(const uint8_t envelope[FRAME_ENVELOPE_LENGTH],
                     size_t *head_length)
{
    uint16_t magic;

    memcpy(&magic, envelope + 4, 2);
    if (magic != FRAME_MAGIC) {
        return message("frame: begins with %#06x; expected %#06x", magic,
                       FRAME_MAGIC);
    }
    if (envelope[6] != FRAME_VERSION) {
        return message("frame: wire version %d; expected version %d",
                       envelope[6], FRAME_VERSION);
    }
    if (envelope[7] >= FRAME_N_TYPES || !kinds[envelope[7]].name) {
        return message("frame: there is no type %d", envelope[7]);
    }
    *head_length = frame_head_length(envelope[7]);
    return NULL;
}

static char *
check_hello(const struct frame_hello *hello)
{
    char *error;

    if (hello->rank >= hello->n_workers) {
        return message("hello: rank %u of %u workers", hello->rank,
                       hello->n_workers);
    }
    if (hello->shard >= hello->n_shards
        || (hello->channel != FRAME_NODES
            && hello->n_shards > hello->n_parameters)) {
        return message("hello: shard %u of %u of %llu parameters",
                       hello->shard, hello->n_shards,
                       (unsigned long long) hello->n_parameters);
    }
    error = shard_check(hello->n_parameters,
                        hello->channel == FRAME_TRAINING ? hello->n_shards
                                                         : UINT32_MAX);
    if (error) {
        char *why = error;

        error = message("hello: %s", why);
        free(why);
        return error;
    }
    if (!isfinite(hello->learning_rate) || !isfinite(hello->momentum)
        || !isfinite(hello->weight_decay)
        || !isfinite(hello->schedule.factor)) {
        return message("hello: learning rate, momentum or weight decay is "
                       "not a number");
    }
    if (hello->channel >= FRAME_N_CHANNELS
        || !optimiser_by_number(hello->optimiser)
        || hello->n_statistics > FRAME_MAX_UPDATE / sizeof(float)) {
        return message("hello: channel %u, optimiser %u, %llu statistics: not "
                       "known",
                       hello->channel, hello->optimiser,
                       (unsigned long long) hello->n_statistics);
    }
    return NULL;
}

static char *
check_body(const struct frame *frame)
{
    const struct frame_welcome *welcome = &frame->welcome;
    const struct kind *kind = &kinds[frame->type];
    uint32_t n = 0;

    if (kind->token_at
        && !token_is_right((const uint8_t *) frame + kind->token_at)) {
        return message("%s: the token is not that of this job", kind->name);
    }
    if (frame->type == FRAME_HELLO) {
        return check_hello(&frame->hello);
    }
    if (frame->type == FRAME_WELCOME) {
        return welcome->begun > 1 || welcome->control_port > UINT16_MAX
               || welcome->epoch == FRAME_NONE
               ? message("welcome: begun %u, control port %u: not allowed",
                         welcome->begun, welcome->control_port) : NULL;
    }
    if (kind->payload == PAYLOAD_WORDS) {
        memcpy(&n, (const uint8_t *) frame + kind->n_at, sizeof n);
    }
    return n > FRAME_MAX_FLOATS ? message("%s: %u values; expected at most %u",
                                          kind->name, n, FRAME_MAX_FLOATS)
                                : NULL;
}

char *
frame_decode(const uint8_t *head, struct frame *frame)
{
    size_t body_length = kinds[head[7]].length;
    uint32_t length, sum;
    char *error;

    memcpy(&length, head, 4);
    memcpy(&sum, head + SUM_AT, 4);
    if (check_sum(head, body_length) != sum) {
        return message("frame: check sum is wrong");
    }
    memset(frame, 0, sizeof *frame);
    frame->type = head[7];
    memcpy(&frame->sequence, head + 8, 8);
    memcpy(&frame->hello, head + FRAME_ENVELOPE_LENGTH, body_length);
    error = check_body(frame);
    if (error) {
        return error;
    }
    frame->payload_length = length - FRAME_ENVELOPE_LENGTH - body_length;
    if (length < FRAME_ENVELOPE_LENGTH + body_length
        || frame->payload_length
           != right_payload_length(frame, frame->payload_length)) {
        return message("%s: length %u does not fit the body",
                       kinds[frame->type].name, length);
    }
    return NULL;
}

bool
frame_hello_agrees(const struct frame_hello *a, const struct frame_hello *b)
{
    struct frame_hello same = *a;

    same.rank = b->rank;
    same.shard = b->shard;
    same.epoch = b->epoch;
    same.sequence = b->sequence;
    same.rewind = b->rewind;
    /* frame_decode() has checked it; the token of an own hello is not set. */
    memcpy(same.token, b->token, sizeof same.token);
    return !memcmp(&same, b, sizeof same);
}
