/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the cost of sleeping: "naps MS" sleeps a millisecond at a time for
 * MS milliseconds, and prints the CPU time in permille of a CPU. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t
ns_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int
main(int argc, char *argv[])
{
    int64_t ms = argc == 2 ? atoi(argv[1]) : 0;
    int64_t end = ns_of(CLOCK_MONOTONIC) + ms * 1000000;
    int64_t cpu = ns_of(CLOCK_PROCESS_CPUTIME_ID);

    if (ms < 1) {
        fputs("usage: naps MS\n", stderr);
        return 2;
    }
    while (ns_of(CLOCK_MONOTONIC) < end) {
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    }
    cpu = ns_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%d\n", (int) (cpu / 1000 / ms));
    return 0;
}
