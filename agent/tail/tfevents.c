/* SPDX-License-Identifier: Apache-2.0 */

/* Event files of TensorBoard.
 *
 * A record consists of its length (64 bits, little endian), the checksum of
 * the length, the data, and the checksum of the data.  The data are a protocol
 * buffer:
 *
 *    Event    2 step (integer), 5 summary (message)
 *    Summary  1 value (message, repeated)
 *    Value    1 tag (string), 2 simple_value (float), 8 tensor (message)
 *    Tensor   1 dtype (1 float, 2 double), 4 content (bytes), 5 float_val,
 *             6 double_val
 *
 * Six fields are read and the others, which may be images of megabytes, are
 * skipped.  Reading them by hand is shorter than generated code, allocates
 * nothing, and needs no library. */

#include <config.h>

#include <math.h>
#include <string.h>

#include "agent/tail/log-decoder.h"
#include "crc32c.h"
#include "util.h"

#define HEADER 12               /* Length and its checksum. */
#define FOOTER 4
#define MAX_LENGTH (UINT64_C(1) << 40)  /* A larger number is not a valid
                                         * length. */

struct tfevents {
    struct log_decoder up;
    uint64_t skip;              /* Bytes still to be skipped. */
    bool seeking;               /* Searches the beginning of a record. */
};

static struct tfevents *
tfevents_cast(struct log_decoder *d)
{
    return CONTAINER_OF(d, struct tfevents, up);
}

static void
tfevents_restart(struct log_decoder *d, bool middle)
{
    struct tfevents *t = tfevents_cast(d);

    t->skip = 0;
    t->seeking = middle;
}

/* Numbers in a file are little endian. */

static uint32_t
get_u32(const char *p)
{
    const uint8_t *b = (const uint8_t *) p;

    return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t) b[3] << 24;
}

static uint64_t
get_u64(const char *p)
{
    return get_u32(p) | (uint64_t) get_u32(p + 4) << 32;
}

static uint32_t
masked_crc(const char *data, size_t size)
{
    ovs_be32 be = crc32c((const uint8_t *) data, size);
    uint32_t crc = get_u32((const char *) &be);

    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

/* Fields of a protocol buffer. */

struct field {
    uint32_t number;
    uint64_t integer;  /* Value of type 0. */
    const char *bytes; /* Value of other types, else NULL. */
    size_t size;
};

struct cursor {
    const char *p, *end;
};

static bool
get_varint(struct cursor *c, uint64_t *valuep)
{
    uint64_t value = 0;

    for (int shift = 0; shift < 64 && c->p < c->end; shift += 7) {
        uint8_t byte = *c->p++;

        value |= (uint64_t) (byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *valuep = value;
            return true;
        }
    }
    return false;
}

/* Returns false at the end, or if the rest cannot be decoded. */
static bool
get_field(struct cursor *c, struct field *f)
{
    static const uint8_t sizes[8] = { [1] = 8, [5] = 4 };
    uint64_t key, size;

    if (!get_varint(c, &key)) {
        return false;
    }
    *f = (struct field) { .number = key >> 3 };
    if (!(key & 7)) {
        return get_varint(c, &f->integer);
    }
    size = sizes[key & 7];
    if ((key & 7) == 2 ? !get_varint(c, &size) : !size) {
        return false;
    } else if (size > c->end - c->p) {
        return false;
    }
    f->bytes = c->p;
    f->size = size;
    c->p += size;
    return true;
}

/* Returns the first number of a field that is float or double, packed or not:
 * INFINITY if it is NaN, as when a loss diverges, NAN without a number. */
static double
first_number(const struct field *f, bool is_double)
{
    float value;
    double wide;

    if (f->size < (is_double ? 8 : 4)) {
        return NAN;
    } else if (is_double) {
        memcpy(&wide, &(uint64_t){ get_u64(f->bytes) }, sizeof wide);
        return isnan(wide) ? INFINITY : wide;
    }
    memcpy(&value, &(uint32_t){ get_u32(f->bytes) }, sizeof value);
    return isnan(value) ? INFINITY : value;
}

static double
read_tensor(const struct field *tensor)
{
    struct cursor c = { tensor->bytes, tensor->bytes + tensor->size };
    struct field content = { .bytes = NULL };
    double value = NAN;
    uint64_t dtype = 1;
    struct field f;

    while (get_field(&c, &f)) {
        if (f.number == 1 && !f.bytes) {
            dtype = f.integer;
        } else if (f.number == 4 && f.bytes) {
            content = f;
        } else if (f.number == 5 || f.number == 6) {
            value = first_number(&f, f.number == 6);
        }
    }
    if (content.bytes && content.size && (dtype == 1 || dtype == 2)) {
        value = first_number(&content, dtype == 2);
    }
    return value;
}

/* Returns the number of the value, NAN if its tag is not 'tag'. */
static double
read_value(const struct field *value, const char *tag)
{
    struct cursor c = { value->bytes, value->bytes + value->size };
    double number = NAN;
    bool mine = false;
    struct field f;

    while (get_field(&c, &f)) {
        if (f.number == 1 && f.bytes) {
            mine = f.size == strlen(tag) && !memcmp(f.bytes, tag, f.size);
        } else if (f.number == 2) {
            number = first_number(&f, false);
        } else if (f.number == 8 && f.bytes) {
            number = read_tensor(&f);
        }
    }
    return mine ? number : NAN;
}

static double
read_summary(const struct field *summary, const char *tag)
{
    struct cursor c = { summary->bytes, summary->bytes + summary->size };
    double number = NAN;
    struct field f;

    while (get_field(&c, &f)) {
        if (f.number == 1 && f.bytes) {
            double value = read_value(&f, tag);

            number = isnan(value) ? number : value;
        }
    }
    return number;
}

/* An event counts if it has the requested metric or, without one, any summary.
 * The first event of a file has neither step nor summary. */
static void
read_event(struct log_decoder *d, const char *data, size_t size)
{
    struct cursor c = { data, data + size };
    const char *tag = d->spec->keys[LOG_METRIC];
    double number = NAN;
    bool summary = false;
    uint64_t step = 0;
    struct field f;

    while (get_field(&c, &f)) {
        if (f.number == 2 && !f.bytes) {
            step = f.integer;
        } else if (f.number == 5 && f.bytes) {
            summary = true;
            number = tag ? read_summary(&f, tag) : NAN;
        }
    }
    d->records++;
    d->malformed += c.p != c.end;
    if ((tag ? !isnan(number) : summary) && log_report(d, LOG_ITERATION, step)
        && tag) {
        log_report(d, LOG_METRIC, number);
    }
}

/* Records. */

/* Reads a record of 'length' bytes.  As take_bytes(). */
static size_t
take_record(struct log_decoder *d, const char *p, uint64_t length, size_t left,
            bool *badp)
{
    if (left < HEADER + length + FOOTER) {
        return 0;
    }
    *badp = masked_crc(p + HEADER, length) != get_u32(p + HEADER + length);
    if (!*badp) {
        read_event(d, p + HEADER, length);
    }
    return HEADER + length + FOOTER;
}

/* Reads what 'left' bytes begin with.  Returns the number of bytes that are
 * not needed any more, 0 if further ones are, and sets '*badp' if they are no
 * record. */
static size_t
take_bytes(struct tfevents *t, const char *p, size_t left, bool *badp)
{
    size_t skipped;

    if (!t->skip) {
        if (left < HEADER) {
            return 0;
        } else if (get_u64(p) >= MAX_LENGTH
                   || masked_crc(p, 8) != get_u32(p + 8)) {
            *badp = !t->seeking;
            return 1;
        }
        t->seeking = false;
        if (get_u64(p) <= LOG_MAX_EVENT) {
            return take_record(&t->up, p, get_u64(p), left, badp);
        }
        t->skip = HEADER + get_u64(p) + FOOTER;
        t->up.records++;
    }
    skipped = MIN(t->skip, left);
    t->skip -= skipped;
    return skipped;
}

static bool
tfevents_feed(struct log_decoder *d, const char *bytes, size_t size)
{
    struct tfevents *t = tfevents_cast(d);
    struct ds *data = &d->data;
    size_t at = 0, n = size;
    bool bad = false;

    ds_put_buffer(data, bytes, size);
    while (n && !bad) {
        n = take_bytes(t, data->string + at, data->length - at, &bad);
        at += n;
    }
    if (at) {
        data->length -= at;
        memmove(data->string, data->string + at, data->length);
    }
    return !bad;
}

const struct log_format_class log_tfevents = {
    .size = sizeof(struct tfevents), .restart = tfevents_restart,
    .feed = tfevents_feed
};
