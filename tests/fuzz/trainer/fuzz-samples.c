/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the readers of sample files: they reject a file with a message of one
 * line, or the values are within their bounds.  The first byte selects the
 * kind of file. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/fuzz/fuzz-file.h"
#include "trainer/data/readers.h"

#define MAX_SAMPLES 50
#define N_INPUTS 1000

/* Reads every byte of the array. */
static char *
read_idx(FILE *stream, uint32_t n_dims)
{
    struct idx idx;
    char *error = idx_read("f", stream, n_dims, MAX_SAMPLES, &idx);

    if (!error) {
        size_t n = (size_t) idx.dims[0] * idx.dims[1] * idx.dims[2];
        volatile uint8_t last = idx.bytes[n - 1];

        (void) last;
        must(idx.dims[0] <= MAX_SAMPLES);
    }
    idx_uninit(&idx);
    return error;
}

static char *
read_cifar(FILE *stream)
{
    struct cifar cifar = { .n = 0 };
    char *error = cifar_read("f", stream, MAX_SAMPLES, &cifar);

    must(cifar.n <= MAX_SAMPLES);
    cifar_uninit(&cifar);
    return error;
}

static char *
read_libsvm(FILE *stream)
{
    struct libsvm f = { .n = 0 };
    char *error = libsvm_read("f", stream, MAX_SAMPLES, N_INPUTS, &f);

    must(f.n <= MAX_SAMPLES);
    for (size_t i = 0; !error && i < f.n; i++) {
        must(isfinite(f.labels[i]));
        must(f.rows.starts[i] <= f.rows.starts[i + 1]);
        for (size_t e = f.rows.starts[i]; e < f.rows.starts[i + 1]; e++) {
            must(f.rows.keys[e] < N_INPUTS && isfinite(f.rows.values[e]));
            must(e == f.rows.starts[i]
                 || f.rows.keys[e - 1] < f.rows.keys[e]);
        }
    }
    libsvm_uninit(&f);
    return error;
}

static char *
read_kind(int kind, FILE *stream)
{
    switch (kind % 4) {
    case 0:
        return read_idx(stream, 3);
    case 1:
        return read_idx(stream, 1);
    case 2:
        return read_cifar(stream);
    default:
        return read_libsvm(stream);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file(data, size, read_kind);
    return 0;
}
