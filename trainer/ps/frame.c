/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/frame.h"

#include <math.h>
#include <string.h>

#include "trainer/message.h"

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

/* FNV-1a.  Finds a stream that has lost its place; TCP guards the bits. */
static uint32_t
check_sum(const uint8_t *p, size_t n)
{
    uint32_t sum = 0x811c9dc5;

    for (size_t i = 0; i < n; i++) {
        sum = (sum ^ p[i]) * 0x01000193;
    }
    return sum;
}

/* The only length of a body of 'frame', or 'length' if several are right. */
static size_t
right_body_length(const struct frame *frame, size_t length)
{
    switch (frame->type) {
    case FRAME_HELLO:
        return FRAME_HELLO_LENGTH;
    case FRAME_INIT:
    case FRAME_PUSH:
    case FRAME_WEIGHTS:
        return (size_t) frame->n * sizeof(float);
    case FRAME_ABORT:
        return length < FRAME_MAX_TEXT ? length : FRAME_MAX_TEXT;
    case FRAME_SCHEME:
        return FRAME_SCHEME_LENGTH;
    case FRAME_BYE:
    case FRAME_N_TYPES:
        break;
    }
    return 0;
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
    put(header + 24, &frame->n, 4);
    put(header + 28, &frame->samples, 4);
    put(header + 32, &frame->value, 4);
    sum = check_sum(header, 36);
    put(header + 36, &sum, 4);
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
    if (check_sum(header, 36) != get(header + 36, 4)) {
        return message("frame: check sum is wrong");
    }
    if ((header[7] < FRAME_HELLO || header[7] > FRAME_ABORT)
        && header[7] != FRAME_SCHEME) {
        return message("frame: type %d, %d to %d and %d are allowed",
                       header[7], FRAME_HELLO, FRAME_ABORT, FRAME_SCHEME);
    }
    frame->type = header[7];
    frame->iteration = get(header + 8, 8);
    frame->first = get(header + 16, 8);
    frame->n = get(header + 24, 4);
    frame->samples = get(header + 28, 4);
    memcpy(&frame->value, header + 32, 4);
    if (frame->n > FRAME_MAX_FLOATS) {
        return message("frame: %u values, at most %u are allowed", frame->n,
                       FRAME_MAX_FLOATS);
    }
    frame->body_length = length - FRAME_HEADER_LENGTH;
    if (length < FRAME_HEADER_LENGTH
        || frame->body_length != right_body_length(frame,
                                                   frame->body_length)) {
        return message("frame: length %zu does not fit type %d with %u "
                       "values", length, frame->type, frame->n);
    }
    return NULL;
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
    if (hello->rank >= hello->n_workers) {
        return message("hello: rank %u of %u workers", hello->rank,
                       hello->n_workers);
    }
    if (hello->shard >= hello->n_shards
        || hello->n_shards > hello->n_parameters) {
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
    return NULL;
}
