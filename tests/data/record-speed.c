/* SPDX-License-Identifier: Apache-2.0 */

/* record-speed ITERATIONS: how fast this machine computes while others use it.
 *
 * An iteration is some fixed arithmetic, about 40 ms of it on a free core,
 * then 20 ms of sleep, as a worker waits for its parameter server.  In these
 * 20 ms the tasks that want a CPU are counted a few times.  Each line of the
 * output is one iteration: its speed (1,000 is the arithmetic in 40 ms),
 * then the CPU that others would take of a task that begins now and the
 * memory that is used, both in thousandths, as they are after it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNIT_S 0.040
#define N_LOOKS 5
#define LOOK_US 4000

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Some 10^6 dependent additions and multiplications for each of 'n'. */
static double
compute(int n)
{
    static volatile double sink;
    double x = 0.5;

    for (int i = 0; i < n * 1000000; i++) {
        x = x * 0.999999 + 1e-7;
    }
    sink = x;
    return sink;
}

/* Returns the number after 'key' in 'file', 0 without one. */
static double
read_number(const char *file, const char *key)
{
    FILE *stream = fopen(file, "r");
    char line[1024];
    double value = 0;

    while (stream && fgets(line, sizeof line, stream)) {
        if (!strncmp(line, key, strlen(key))) {
            value = strtod(line + strlen(key), NULL);
            break;
        }
    }
    if (stream) {
        fclose(stream);
    }
    return value;
}

/* Sleeps, and returns the share of a CPU that others would take. */
static double
busy_share(void)
{
    double n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    double used = 0;

    for (int i = 0; i < N_LOOKS; i++) {
        double running;

        usleep(LOOK_US);
        running = read_number("/proc/stat", "procs_running ");
        used += running > n_cpus ? 1 - n_cpus / running : 0;
    }
    return used / N_LOOKS;
}

/* How many times compute(1) fills UNIT_S at this machine's best. */
static double
calibrate(void)
{
    double best = 1e9;

    for (int i = 0; i < 200; i++) {
        double began = now();

        compute(1);
        if (now() - began < best) {
            best = now() - began;
        }
    }
    return UNIT_S / best;
}

int
main(int argc, char *argv[])
{
    int n = argc > 1 ? atoi(argv[1]) : 0;
    int work;

    if (n <= 0) {
        fprintf(stderr, "usage: record-speed ITERATIONS\n");
        return 2;
    }
    work = calibrate() + 0.5;
    for (int i = 0; i < n; i++) {
        double began = now(), seconds, cpu, memory;

        compute(work);
        seconds = now() - began;
        cpu = busy_share();
        memory = 1 - read_number("/proc/meminfo", "MemAvailable:")
                 / read_number("/proc/meminfo", "MemTotal:");
        printf("%.0f %.0f %.0f\n", 1000 * UNIT_S / seconds, 1000 * cpu,
               1000 * memory);
        fflush(stdout);
    }
    return 0;
}
