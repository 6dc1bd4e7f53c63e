/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reader of speed profiles: it rejects the file with a message of
 * one line, or all batches take a positive time and all loads are between 0
 * and 1. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/must.h"
#include "trainer/balance/speed-profile.h"

static void
check_worker(const struct speed_profile_set *set, int rank)
{
    struct speed_profile *sp = speed_profile_create(set, rank, 1);
    double t = 0;

    for (int i = 0; i < 20; i++) {
        double seconds = speed_profile_seconds(sp, i * i * i, t);
        double cpu, memory;

        must(isfinite(seconds) && seconds >= 0);
        speed_profile_use(sp, t, t + seconds, &cpu, &memory);
        must(cpu >= 0 && cpu <= 1 && memory >= 0 && memory <= 1);
        t += seconds + i * 0.1;
    }
    speed_profile_destroy(sp);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct speed_profile_set *set;
    char *error = speed_profile_set_from_string("f", text, &set);

    must(!error == !!set);
    if (set) {
        size_t n = speed_profile_set_n(set);

        must(n >= 1);
        for (int rank = 0; rank < n && rank < 8; rank++) {
            check_worker(set, rank);
        }
        speed_profile_set_destroy(set);
    } else {
        must_be_message(error, "f:");
    }
    free(error);
    free(text);
    return 0;
}
