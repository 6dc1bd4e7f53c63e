/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the time of simulations.
 *
 * sim-speed trace FILE ORDER     a coflow trace, served exactly by an order
 * sim-speed searches HOSTS       searches on HOSTS hosts, ordered by stage
 *
 * Prints one JSON object.  There is one search per five hosts, of eight jobs
 * with a hundred iterations each: alternately jobs of four workers and two
 * parameter servers, and rings of four, on random hosts.  Their computation
 * takes as long as their communication alone. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "sim/run/simulate.h"
#include "sim/workload/workload-coflow.h"
#include "sim/workload/workload.h"

#define HOSTS_PER_SEARCH 5
#define N_JOBS 8
#define N_ITERATIONS 100
#define LINK 1.25e9             /* Bytes per second. */
#define N_WORKERS 4
#define N_SERVERS 2

/* Returns the next number of a fixed sequence, from 0 to 'n' - 1. */
static int
next_random(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*state >> 33) % n;
}

static void
add_parameter_servers(struct workload_job *job, const int *hosts,
                      double bytes)
{
    for (int w = 0; w < N_WORKERS; w++) {
        for (int s = 0; s < N_SERVERS; s++) {
            workload_add_transfer(job, hosts[w], hosts[N_WORKERS + s],
                                  bytes / N_SERVERS, s, 0);
            workload_add_transfer(job, hosts[N_WORKERS + s], hosts[w],
                                  bytes / N_SERVERS, s, 1);
        }
    }
}

static void
add_ring(struct workload_job *job, const int *hosts, double bytes)
{
    for (int w = 0; w < N_WORKERS; w++) {
        workload_add_transfer(job, hosts[w], hosts[(w + 1) % N_WORKERS],
                              2 * bytes * (N_WORKERS - 1) / N_WORKERS, 0, 0);
    }
}

static void
add_search(struct workload *w, uint64_t *seed, double arrival)
{
    struct workload_cojob *cojob = workload_add_cojob(w, "search", 1, arrival);
    double bytes = 1e6 * (10 + next_random(seed, 490));

    for (int j = 0; j < N_JOBS; j++) {
        struct workload_job *job = workload_add_job(cojob, "job", 0);
        int hosts[N_WORKERS + N_SERVERS];

        for (int i = 0; i < N_WORKERS + N_SERVERS; i++) {
            hosts[i] = next_random(seed, w->fabric->n_hosts);
        }
        if (j % 2) {
            add_parameter_servers(job, hosts, bytes);
        } else {
            add_ring(job, hosts, bytes);
        }
        job->compute = workload_exchange_time(job, w->fabric);
    }
    workload_add_rung(w, cojob, N_ITERATIONS, N_JOBS);
}

static struct workload *
make_searches(int n_hosts)
{
    struct workload *w = workload_create("stage",
                                         sim_fabric_create(n_hosts, LINK));
    uint64_t seed = 1;

    for (int i = 0; i < n_hosts / HOSTS_PER_SEARCH; i++) {
        add_search(w, &seed, next_random(&seed, 60000) / 1000.0);
    }
    return w;
}

static double
read_clock(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

static enum order_kind
find_order(const char *name)
{
    for (int i = 0; order_names[i]; i++) {
        if (!strcmp(name, order_names[i])) {
            return i;
        }
    }
    fprintf(stderr, "sim-speed: no order \"%s\"\n", name);
    exit(2);
}

int
main(int argc, char *argv[])
{
    bool is_trace = argc == 4 && !strcmp(argv[1], "trace");
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(is_trace ? find_order(argv[3])
                                    : ORDER_STAGE),
        .service = SIM_SERVICE_EXACT,
    };
    double begin = read_clock(CLOCK_MONOTONIC);
    struct sim_result result;
    struct workload *w;
    struct rusage usage;

    if (is_trace) {
        char *error = workload_coflow_from_file(argv[2], &w);

        if (error) {
            fprintf(stderr, "%s\n", error);
            free(error);
            return 1;
        }
    } else if (argc == 3 && !strcmp(argv[1], "searches")
               && atoi(argv[2]) >= HOSTS_PER_SEARCH) {
        w = make_searches(atoi(argv[2]));
    } else {
        fprintf(stderr, "usage: sim-speed trace FILE ORDER | "
                "searches HOSTS\n");
        return 2;
    }
    simulate(w, &options, &result);
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"seconds\": %.3f, \"cpu_seconds\": %.3f, \"rss_mib\": %.1f, "
           "\"stages\": %zu, "
           "\"decisions\": %zu, \"mean\": %.4f, \"gap\": %.4f}\n",
           read_clock(CLOCK_MONOTONIC) - begin,
           read_clock(CLOCK_PROCESS_CPUTIME_ID), usage.ru_maxrss / 1024.0,
           result.n_stages, result.decisions, result.mean, result.gap);
    sim_result_uninit(&result);
    workload_destroy(w);
    return 0;
}
