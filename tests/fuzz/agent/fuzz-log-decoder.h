/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FUZZ_LOG_DECODER_H
#define FUZZ_LOG_DECODER_H 1

/* Fuzzes the decoder of one log format.  Decodes the log as a whole, in pieces
 * and from the middle: the result must be valid progress, and the same for
 * pieces as for the whole. */

#include <math.h>
#include <string.h>

#include "agent/tail/log-decoder.h"
#include "base/name.h"
#include "tests/fuzz/must.h"
#include "wire/log-spec.h"

static inline bool
fuzz_log_take(struct log_decoder *d, struct progress *p)
{
    bool told = log_decoder_take(d, p);

    must(d->malformed <= d->records);
    if (told) {
        must(p->iteration >= 0 && p->stage >= -1);
        must(memchr(p->metric, '\0', sizeof p->metric));
        must(!*p->metric || name_is_valid_metric(p->metric));
        must(!p->has_value || isfinite(p->value));
        must(!log_decoder_take(d, p));
    }
    return told;
}

static inline void
fuzz_log(const char *text, const uint8_t *data, size_t size)
{
    char *copy = copy_bytes(data, size);
    struct progress whole = { .iteration = -7 }, pieces = whole, middle;
    struct log_decoder *d;
    struct log_spec spec;
    size_t step = size ? data[0] % 61 + 1 : 1;

    must(!log_spec_parse("spec", text, &spec));
    d = log_decoder_create(&spec);
    log_decoder_restart(d, copy, size, false);
    log_decoder_feed(d, copy, size);
    fuzz_log_take(d, &whole);

    log_decoder_restart(d, NULL, 0, false);
    for (size_t i = 0; i < size; i += step) {
        char *piece = copy_bytes(data + i, size - i < step ? size - i : step);

        log_decoder_feed(d, piece, size - i < step ? size - i : step);
        free(piece);
    }
    fuzz_log_take(d, &pieces);
    must(whole.iteration == pieces.iteration
         && whole.has_value == pieces.has_value
         && !memcmp(&whole.value, &pieces.value, sizeof whole.value));

    log_decoder_restart(d, copy, size, true);
    log_decoder_feed(d, copy + size / 2, size - size / 2);
    fuzz_log_take(d, &middle);
    log_decoder_destroy(d);
    log_spec_uninit(&spec);
    free(copy);
}

#endif /* tests/fuzz/agent/fuzz-log-decoder.h */
