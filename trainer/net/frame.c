/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/frame.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "trainer/net/keys.h"
#include "trainer/schemes/optimiser.h"

#define SUMMED (FRAME_HEADER_LENGTH - 4)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Frames are sent as they lie in memory, least significant byte first."
#endif

static void
put(uint8_t *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}

static uint64_t
get(const uint8_t *from, size_t n)
{
    uint64_t value = 0;

    memcpy(&value, from, n);
    return value;
}

/* Finds a stream that has lost its place; TCP guards the bits. */
static uint32_t
check_sum(const uint8_t header[FRAME_HEADER_LENGTH])
{
    return XXH3_64bits(header, SUMMED);
}

static bool
is_of_store(enum frame_type type)
{
    return type >= FRAME_UPDATE && type <= FRAME_ACK;
}

static const char *const names[FRAME_N_TYPES] = {
    [FRAME_HELLO] = "hello", [FRAME_INIT] = "init", [FRAME_PUSH] = "push",
    [FRAME_WEIGHTS] = "weights", [FRAME_BYE] = "bye",
    [FRAME_ABORT] = "abort", [FRAME_UPDATE] = "update",
    [FRAME_READ] = "read", [FRAME_UPDATE_KEYS] = "update_keys",
    [FRAME_READ_KEYS] = "read_keys", [FRAME_VALUES] = "values",
    [FRAME_ACK] = "ack", [FRAME_WELCOME] = "welcome",
    [FRAME_HEARTBEAT] = "heartbeat", [FRAME_PART] = "part",
    [FRAME_SCHEME] = "scheme", [FRAME_ENLIST] = "enlist",
    [FRAME_GROUP] = "group", [FRAME_MOVE] = "move", [FRAME_JOIN] = "join",
    [FRAME_PULL] = "pull", [FRAME_LOST] = "lost", [FRAME_PEER] = "peer",
    [FRAME_REST] = "rest", [FRAME_RESTS] = "rests",
};

const char *
frame_type_name(enum frame_type type)
{
    return names[type];
}

/* The only length of a body of 'frame', or 'length' if several are right.
 * SIZE_MAX for a type that there is not. */
static size_t
right_body_length(const struct frame *frame, size_t length)
{
    size_t keys = keys_length(frame->n, frame->key_size);

    switch (frame->type) {
    case FRAME_HELLO:
        return FRAME_HELLO_LENGTH;
    case FRAME_WELCOME:
        return FRAME_WELCOME_LENGTH;
    case FRAME_INIT:
    case FRAME_PART:
    case FRAME_PUSH:
    case FRAME_WEIGHTS:
    case FRAME_UPDATE:
    case FRAME_VALUES:
    case FRAME_GROUP:
    case FRAME_PEER:
    case FRAME_RESTS:
        return (size_t) frame->n * sizeof(float);
    case FRAME_UPDATE_KEYS:
        return keys + (size_t) frame->n * frame->width * sizeof(float);
    case FRAME_READ_KEYS:
        return keys;
    case FRAME_ABORT:
    case FRAME_ENLIST:
    case FRAME_MOVE:
        return length < FRAME_MAX_TEXT ? length : FRAME_MAX_TEXT;
    case FRAME_SCHEME:
        return FRAME_SCHEME_LENGTH;
    case FRAME_BYE:
    case FRAME_READ:
    case FRAME_ACK:
    case FRAME_HEARTBEAT:
    case FRAME_JOIN:
    case FRAME_PULL:
    case FRAME_LOST:
    case FRAME_REST:
        return 0;
    case FRAME_N_TYPES:
        break;
    }
    return SIZE_MAX;
}

void
frame_encode(struct frame *frame, uint8_t header[FRAME_HEADER_LENGTH])
{
    uint32_t length, sum;
    uint16_t magic = FRAME_MAGIC;

    frame->body_length = right_body_length(frame, frame->body_length);
    length = FRAME_HEADER_LENGTH + frame->body_length;
    put(header, &length, 4);
    put(header + 4, &magic, 2);
    header[6] = FRAME_VERSION;
    header[7] = frame->type;
    put(header + 8, &frame->iteration, 8);
    put(header + 16, &frame->first, 8);
    put(header + 24, &frame->sequence, 8);
    put(header + 32, &frame->n, 4);
    if (is_of_store(frame->type)) {
        put(header + 36, &frame->width, 2);
        header[38] = frame->key_size;
        header[39] = frame->flags;
    } else {
        put(header + 36, &frame->samples, 4);
    }
    put(header + 40, &frame->value, 4);
    sum = check_sum(header);
    put(header + SUMMED, &sum, 4);
}

/* Reads the fields, whatever they say. */
static void
get_fields(const uint8_t *header, struct frame *frame)
{
    memset(frame, 0, sizeof *frame);
    frame->type = header[7];
    frame->iteration = get(header + 8, 8);
    frame->first = get(header + 16, 8);
    frame->sequence = get(header + 24, 8);
    frame->n = get(header + 32, 4);
    if (is_of_store(frame->type)) {
        frame->width = get(header + 36, 2);
        frame->key_size = header[38];
        frame->flags = header[39];
    } else {
        frame->samples = get(header + 36, 4);
    }
    memcpy(&frame->value, header + 40, 4);
}

static char *
check_fields(const struct frame *frame, size_t length)
{
    if (frame->n > FRAME_MAX_FLOATS) {
        return message("frame: %u values, at most %u are allowed", frame->n,
                       FRAME_MAX_FLOATS);
    }
    if (frame->key_size > 8 || frame->width > FRAME_MAX_WIDTH) {
        return message("frame: keys of %d bytes with %d values, at most 8 "
                       "and %d are allowed", frame->key_size, frame->width,
                       FRAME_MAX_WIDTH);
    }
    if (length < FRAME_HEADER_LENGTH
        || frame->body_length != right_body_length(frame,
                                                   frame->body_length)) {
        return message("frame: length %zu does not fit type %d with %u "
                       "values", length, frame->type, frame->n);
    }
    return NULL;
}

char *
frame_decode(const uint8_t header[FRAME_HEADER_LENGTH], struct frame *frame)
{
    size_t length = get(header, 4);

    if (get(header + 4, 2) != FRAME_MAGIC) {
        return message("frame: begins with %#06x, %#06x is allowed",
                       (unsigned int) get(header + 4, 2), FRAME_MAGIC);
    }
    if (header[6] != FRAME_VERSION) {
        return message("frame: version %d, %d is allowed", header[6],
                       FRAME_VERSION);
    }
    if (check_sum(header) != get(header + SUMMED, 4)) {
        return message("frame: check sum is wrong");
    }
    if (header[7] < FRAME_HELLO || header[7] >= FRAME_N_TYPES) {
        return message("frame: type %d, %d to %d are allowed", header[7],
                       FRAME_HELLO, FRAME_N_TYPES - 1);
    }
    get_fields(header, frame);
    frame->body_length = length - FRAME_HEADER_LENGTH;
    return check_fields(frame, length);
}

void
frame_hello_encode(const struct frame_hello *hello,
                   uint8_t body[FRAME_HELLO_LENGTH])
{
    put(body, &hello->rank, 4);
    put(body + 4, &hello->n_workers, 4);
    put(body + 8, &hello->shard, 4);
    put(body + 12, &hello->n_shards, 4);
    put(body + 16, &hello->n_parameters, 8);
    put(body + 24, &hello->learning_rate, 4);
    put(body + 28, &hello->momentum, 4);
    put(body + 32, &hello->seed, 8);
    put(body + 40, &hello->key_space, 8);
    put(body + 48, &hello->width, 4);
    put(body + 52, &hello->optimiser, 4);
    put(body + 56, &hello->channel, 4);
    memset(body + 60, 0, 4);
    put(body + 64, &hello->epoch, 8);
    put(body + 72, &hello->sequence, 8);
    put(body + 80, &hello->rewind, 8);
}

/* Returns true if 'hello' may have fewer parameters than servers: values may
 * be those of keys.  Heartbeats have the numbers of the job that they are
 * for. */
static bool
may_lack_parameters(const struct frame_hello *hello)
{
    return hello->channel == FRAME_STORE || hello->channel == FRAME_NODES
           || (hello->channel == FRAME_CONTROL && hello->key_space);
}

static char *
check_hello(const struct frame_hello *hello)
{
    if (hello->rank >= hello->n_workers) {
        return message("hello: rank %u of %u workers", hello->rank,
                       hello->n_workers);
    }
    if (hello->shard >= hello->n_shards
        || (!may_lack_parameters(hello)
            && hello->n_shards > hello->n_parameters)) {
        return message("hello: shard %u of %u of %llu parameters",
                       hello->shard, hello->n_shards,
                       (unsigned long long) hello->n_parameters);
    }
    if (hello->n_parameters > FRAME_MAX_FLOATS) {
        return message("hello: %llu parameters, at most %u are allowed",
                       (unsigned long long) hello->n_parameters,
                       FRAME_MAX_FLOATS);
    }
    if (!isfinite(hello->learning_rate) || !isfinite(hello->momentum)) {
        return message("hello: learning rate or momentum is not a number");
    }
    if (hello->channel >= FRAME_N_CHANNELS
        || !optimiser_by_number(hello->optimiser)
        || !hello->width || hello->width > FRAME_MAX_WIDTH) {
        return message("hello: channel %u, optimiser %u, %u values a key: "
                       "not known", hello->channel, hello->optimiser,
                       hello->width);
    }
    return NULL;
}

char *
frame_hello_decode(const uint8_t body[FRAME_HELLO_LENGTH],
                   struct frame_hello *hello)
{
    hello->rank = get(body, 4);
    hello->n_workers = get(body + 4, 4);
    hello->shard = get(body + 8, 4);
    hello->n_shards = get(body + 12, 4);
    hello->n_parameters = get(body + 16, 8);
    memcpy(&hello->learning_rate, body + 24, 4);
    memcpy(&hello->momentum, body + 28, 4);
    hello->seed = get(body + 32, 8);
    hello->key_space = get(body + 40, 8);
    hello->width = get(body + 48, 4);
    hello->optimiser = get(body + 52, 4);
    hello->channel = get(body + 56, 4);
    hello->epoch = get(body + 64, 8);
    hello->sequence = get(body + 72, 8);
    hello->rewind = get(body + 80, 8);
    if (get(body + 60, 4)) {
        return message("hello: bytes that mean nothing are not 0");
    }
    return check_hello(hello);
}

void
frame_welcome_encode(const struct frame_welcome *welcome,
                     uint8_t body[FRAME_WELCOME_LENGTH])
{
    put(body, &welcome->epoch, 8);
    put(body + 8, &welcome->sequence, 8);
    put(body + 16, &welcome->iteration, 8);
    put(body + 24, &welcome->from, 8);
    put(body + 32, &welcome->begun, 4);
    put(body + 36, &welcome->control_port, 4);
}

char *
frame_welcome_decode(const uint8_t body[FRAME_WELCOME_LENGTH],
                     struct frame_welcome *welcome)
{
    welcome->epoch = get(body, 8);
    welcome->sequence = get(body + 8, 8);
    welcome->iteration = get(body + 16, 8);
    welcome->from = get(body + 24, 8);
    welcome->begun = get(body + 32, 4);
    welcome->control_port = get(body + 36, 4);
    if (welcome->begun > 1 || welcome->control_port > UINT16_MAX
        || welcome->epoch == FRAME_NONE) {
        return message("welcome: begun %u, control port %u: not allowed",
                       welcome->begun, welcome->control_port);
    }
    return NULL;
}
