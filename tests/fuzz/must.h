/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FUZZ_MUST_H
#define FUZZ_MUST_H 1

/* What each fuzz target defines, and assertions, independent of NDEBUG. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(CONDITION)         \
    do {                        \
        if (!(CONDITION)) {     \
            abort();            \
        }                       \
    } while (0)

/* Returns a copy of exactly 'size' bytes, so that sanitizers detect a read
 * beyond them. */
static inline void *
copy_bytes(const uint8_t *data, size_t size)
{
    void *copy = calloc(1, size ? size : 1);

    must(copy);
    if (size) {
        memcpy(copy, data, size);
    }
    return copy;
}

/* Returns a copy as a string.  A NUL byte in 'data' ends it early. */
static inline char *
copy_text(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);

    must(copy);
    if (size) {
        memcpy(copy, data, size);
    }
    copy[size] = '\0';
    return copy;
}

/* Checks that 'error' is one line that begins with 'beginning'. */
static inline void
must_be_message(const char *error, const char *beginning)
{
    must(error && !strncmp(error, beginning, strlen(beginning))
         && !strchr(error, '\n'));
}

#endif /* tests/fuzz/must.h */
