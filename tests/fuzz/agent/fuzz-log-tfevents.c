/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes TensorBoard event files: once with the input as the file, and once
 * with the input as the contents of records, with valid checksums, which a
 * fuzzer cannot guess. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>

#include "crc32c.h"
#include "tests/fuzz/agent/fuzz-log-decoder.h"

static size_t
put_sum(uint8_t *to, const uint8_t *data, size_t size)
{
    ovs_be32 be = crc32c(data, size);
    uint8_t b[4];
    uint32_t crc;

    memcpy(b, &be, sizeof b);
    crc = b[0] | b[1] << 8 | b[2] << 16 | (uint32_t) b[3] << 24;
    crc = ((crc >> 15) | (crc << 17)) + 0xa282ead8;
    for (int i = 0; i < 4; i++) {
        to[i] = crc >> 8 * i;
    }
    return 4;
}

/* Converts 'data' to records: a byte of length, that many bytes of event, and
 * so on.  Returns the size of the records. */
static size_t
make_records(const uint8_t *data, size_t size, uint8_t *file)
{
    size_t n = 0;

    while (size) {
        size_t length = data[0] < size ? data[0] : size - 1;

        memset(file + n, 0, 8);
        file[n] = length;
        n += 8;
        n += put_sum(file + n, file + n - 8, 8);
        memcpy(file + n, data + 1, length);
        n += length;
        n += put_sum(file + n, file + n - length, length);
        data += length + 1;
        size -= length + 1;
    }
    return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *file = malloc(17 * size + 1);

    must(file);
    fuzz_log("tfevents:/x,metric=loss", data, size);
    fuzz_log("tfevents:/x,metric=loss", file, make_records(data, size, file));
    fuzz_log("tfevents:/x", file, make_records(data, size, file));
    free(file);
    return 0;
}
