/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/bench/search-families.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/workload/random.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"

/* Draws a search of the quickstart: three jobs, and one is kept. */
static void
add_lab_search(struct workload *w, struct sim_random *r, int width,
               int n_servers)
{
    double parameters = 64.0 * width + width + (double) width * width + width
                        + 10.0 * width + 10;
    struct workload_cojob *cojob;
    char name[16];

    snprintf(name, sizeof name, "s%zu", w->n_cojobs);
    cojob = workload_add_cojob(w, name, 1, 0);
    for (int i = 0; i < 3; i++) {
        struct workload_job *job;
        int hosts[4];

        snprintf(name, sizeof name, "t%d", i);
        job = workload_add_job(cojob, name, 0.0048);
        job->devices = 2;
        sim_random_pick(r, w->fabric->n_hosts, 2 + n_servers, hosts);
        workload_add_ps(job, hosts, 2, &hosts[2], n_servers, 4 * parameters);
    }
    workload_add_rung(w, cojob, 30, 3);
    workload_add_rung(w, cojob, 80, 1);
}

static struct workload *
make_lab(struct sim_random *r, int n_servers, int first_width, int step)
{
    struct workload *w =
        workload_create("stage", sim_fabric_create(6, 50e6 / 8));

    for (int i = 0; i < 4; i++) {
        add_lab_search(w, r, first_width + i * step, n_servers);
    }
    return w;
}

static struct workload *
make_spread(int seed)
{
    return make_lab(&(struct sim_random){ seed }, 2, 288, 32);
}

static struct workload *
make_one_server(int seed)
{
    return make_lab(&(struct sim_random){ seed }, 1, 288, 32);
}

static struct workload *
make_equal_widths(int seed)
{
    return make_lab(&(struct sim_random){ seed }, 2, 336, 0);
}

static struct workload *
make_generated(int seed, double load)
{
    struct generate_options options;

    generate_options_draw(&options, seed);
    options.n_hosts = 16;
    options.n_cojobs = 12;
    options.load = load;
    return workload_generate(&options);
}

static struct workload *
make_load_half(int seed)
{
    return make_generated(seed, 0.5);
}

static struct workload *
make_load_1(int seed)
{
    return make_generated(seed, 1);
}

static struct workload *
make_load_2(int seed)
{
    return make_generated(seed, 2);
}

/* Searches of wide rings, over a quarter of the hosts or more, beside searches
 * of narrow jobs. */
static struct workload *
make_narrow_wide(int seed, int n_hosts)
{
    struct workload *w =
        workload_create("stage", sim_fabric_create(n_hosts, 1.25e9));
    struct sim_random r = { seed };

    for (int i = 0; i < n_hosts / 4; i++) {
        bool wide = i % 4 == 0;
        int n = sim_random_integer(&r, 2, wide ? 3 : 6);
        int n_workers = wide ? 16 : sim_random_integer(&r, 2, 3);
        double bytes = sim_random_log_between(&r, 1e7, 1e8);
        int64_t iterations = sim_random_integer(&r, 6, 20);
        struct workload_cojob *cojob;
        char name[16];

        snprintf(name, sizeof name, "s%d", i);
        cojob = workload_add_cojob(w, name, 1, 0);
        for (int j = 0; j < n; j++) {
            struct workload_job *job;

            snprintf(name, sizeof name, "t%d", j);
            job = workload_add_job(cojob, name, 0);
            workload_draw_exchange(job, &r, n_hosts, n_workers, wide ? 0 : 1,
                                   bytes);
            workload_draw_rest(job, &r, w->fabric, 0.3);
        }
        workload_add_rung(w, cojob, iterations, n);
        workload_add_rung(w, cojob, 3 * iterations, (n + 1) / 2);
        workload_keep_best(cojob);
    }
    return w;
}

static struct workload *
make_narrow_wide_64(int seed)
{
    return make_narrow_wide(seed, 64);
}

static struct workload *
make_narrow_wide_128(int seed)
{
    return make_narrow_wide(seed, 128);
}

const struct search_family search_families[N_SEARCH_FAMILIES] = {
    { "spread", make_spread },
    { "one", make_one_server },
    { "equal", make_equal_widths },
    { "16_load05", make_load_half },
    { "16_load1", make_load_1 },
    { "16_load2", make_load_2 },
    { "narrow_wide_64", make_narrow_wide_64 },
    { "narrow_wide_128", make_narrow_wide_128 },
};
