/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H 1

/* Fuzzes file formats of several kinds: the first byte selects the kind, the
 * other bytes are the file.  The parser rejects the file with a message of one
 * line, or 'read' checks the result. */

#include <stdio.h>

#include "tests/fuzz/must.h"

static inline void
fuzz_file(const uint8_t *data, size_t size, char *(*read)(int kind, FILE *))
{
    FILE *stream;
    char *error;
    void *copy;

    if (size < 2) {
        return;                 /* fmemopen() refuses nothing at all. */
    }
    copy = copy_bytes(data + 1, size - 1);
    stream = fmemopen(copy, size - 1, "r");
    must(stream);
    error = read(data[0], stream);
    if (error) {
        must_be_message(error, "f:");
    }
    free(error);
    fclose(stream);
    free(copy);
}

#endif /* tests/fuzz/fuzz-file.h */
