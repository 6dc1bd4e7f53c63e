/* SPDX-License-Identifier: Apache-2.0 */

#include "scenario/random-searches.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "scenario/random-placements.h"
#include "scenario/scenario.h"
#include "trainer/data/seeded.h"

#define MAX_SEARCHES 64
#define MIN_HOSTS 5 /* Three workers and two servers. */
#define WIDTH_UNIT 16
#define SEARCH_STREAM (UINT64_C(1) << 32)
#define ARRIVAL_STREAM (UINT64_C(1) << 33)

static const int rung_iterations[] = { 15, 25, 45 };

#define N_RUNGS (sizeof rung_iterations / sizeof *rung_iterations)

static struct random_range
read_range(const struct json_at *at, const char *member, double min,
           double max, double deflt_min, double deflt_max)
{
    const struct json_at *range = json_array_or_null(at, member, 2, 2);
    struct random_range r = { deflt_min, deflt_max };

    if (range) {
        r.min = json_at_number(json_element(range, 0), min, max);
        r.max = json_at_number(json_element(range, 1), r.min, max);
    }
    return r;
}

void
random_searches_read(const struct json_at *at, int n_hosts,
                     struct random_searches *d)
{
    d->seed = json_integer_or(at, "seed", 0, RANDOM_PLACEMENTS_MAX_SEED, 1);
    d->n = json_integer_or(at, "searches", 1, MAX_SEARCHES, 10);
    d->span_s = json_number_or(at, "span_s", 0, 3600, 60);
    d->rings = json_number_or(at, "rings", 0, 1, 0.33);
    d->length = read_range(at, "length", 0.01, 1e6, 0.5, 2);
    d->iteration_ms = read_range(at, "iteration_ms", 0.1, 1e6, 5, 80);
    d->width = read_range(at, "width", WIDTH_UNIT, 65536, 160, 448);
    d->batch = json_integer_or(at, "batch", 1, 65536, 32);
    d->samples = json_integer_or(at, "samples", 1, 1 << 24, 4000);
    if (n_hosts < MIN_HOSTS) {
        json_fail(at, NULL,
                  "the scenario has %d hosts, at least %d are "
                  "needed",
                  n_hosts, MIN_HOSTS);
    }
}

static double
draw_from(struct seeded *rs, struct random_range r)
{
    return r.min * pow(r.max / r.min, seeded_uniform(rs));
}

static int
draw_integer(struct seeded *rs, int min, int max)
{
    return min + seeded_below(rs, max - min + 1);
}

/* Stores the start of each search, in tenths of a second. */
static void
draw_starts(const struct random_searches *d, double start_s[])
{
    struct seeded rs;
    double last;

    seeded_init(&rs, d->seed, ARRIVAL_STREAM);
    start_s[0] = 0;
    for (int i = 1; i < d->n; i++) {
        start_s[i] = start_s[i - 1] - log(1 - seeded_uniform(&rs));
    }
    last = start_s[d->n - 1];
    for (int i = 1; i < d->n; i++) {
        start_s[i] = round(start_s[i] / last * d->span_s * 10) / 10;
    }
}

static void
add_rungs(cJSON *search, int trials, double length)
{
    cJSON *rungs = cJSON_AddArrayToObject(search, "rungs");
    int end = 0, keep = trials;

    for (size_t i = 0; i < N_RUNGS; i++) {
        cJSON *rung = cJSON_CreateObject();

        end += fmax(1, round(rung_iterations[i] * length));
        cJSON_AddNumberToObject(rung, "iterations", end);
        if (i < N_RUNGS - 1) {
            keep = (keep + 1) / 2;
            cJSON_AddNumberToObject(rung, "keep", keep);
        }
        cJSON_AddItemToArray(rungs, rung);
    }
}

/* Returns the drawn search 'i' with its start. */
static cJSON *
draw_search(const struct random_searches *d, int n_hosts, int i,
            double start_s)
{
    struct random_placements rp = { .seed = d->seed };
    struct seeded rs;
    double length, iteration_ms;
    int width, trials;
    bool ring;
    char *text;
    cJSON *item, *search;

    seeded_init(&rs, d->seed, SEARCH_STREAM + i);
    width = WIDTH_UNIT * (int) round(draw_from(&rs, d->width) / WIDTH_UNIT);
    trials = draw_integer(&rs, 2, 5);
    length = draw_from(&rs, d->length);
    ring = seeded_uniform(&rs) < d->rings;
    rp.n_workers = ring ? draw_integer(&rs, 2, 4) : draw_integer(&rs, 1, 3);
    rp.n_servers = ring ? 0 : draw_integer(&rs, 1, 2);
    iteration_ms = draw_from(&rs, d->iteration_ms);
    text = message("{\"start_s\": %.1f, \"search\": {\"name\": \"s%d\","
                   " \"seed\": %d, \"trials\": %d, \"space\":"
                   " {\"learning_rate\": {\"min\": 0.02, \"max\": 0.3,"
                   "  \"scale\": \"log\"}, \"width\": [%d], \"batch\": [%d]},"
                   " \"model\": {\"inputs\": 64, \"hidden_layers\": 2,"
                   "  \"classes\": 10},"
                   " \"data\": {\"kind\": \"generated\", \"samples\": %d},"
                   " \"backend\": \"cpu\", \"sample_cost_us\": %.0f,"
                   " \"sync\": \"%s\"}}",
                   start_s, i, i + 1, trials, width, d->batch, d->samples,
                   iteration_ms * 1000 * rp.n_workers / d->batch,
                   ring ? "allreduce" : "bsp");
    item = cJSON_Parse(text);
    free(text);
    search = cJSON_GetObjectItemCaseSensitive(item, "search");
    add_rungs(search, trials, length);
    random_placements_add(search, &rp, n_hosts, MAX_SEARCHES + i);
    return item;
}

/* Returns false unless 'text' has a valid member "random_searches", and an
 * array or nothing as "searches". */
static bool
read_text(const char *text, struct random_searches *d, int *n_hosts)
{
    struct json_check *jc = json_check_open("", text);
    const struct json_at *top = json_check_top(jc);
    const struct json_at *at = json_object_or_null(top, "random_searches");
    bool ok;

    *n_hosts = json_integer(top, "hosts", 1, SCENARIO_MAX_HOSTS);
    if (at) {
        random_searches_read(at, *n_hosts, d);
    }
    json_array_or_null(top, "searches", 1, MAX_SEARCHES);
    ok = at && json_ok(jc);
    free(json_check_close(jc));
    return ok;
}

char *
random_searches_expand(const char *text, const int64_t *seed)
{
    double start_s[MAX_SEARCHES];
    struct random_searches d;
    cJSON *top, *member, *searches;
    char *expanded;
    int n_hosts;

    if (!read_text(text, &d, &n_hosts)) {
        return duplicate(text);
    }
    top = cJSON_Parse(text);
    if (seed) {
        member = cJSON_GetObjectItemCaseSensitive(top, "random_searches");
        cJSON_DeleteItemFromObjectCaseSensitive(member, "seed");
        cJSON_AddNumberToObject(member, "seed", *seed);
        d.seed = *seed;
    }
    draw_starts(&d, start_s);
    searches = cJSON_GetObjectItemCaseSensitive(top, "searches");
    searches = searches ? searches : cJSON_AddArrayToObject(top, "searches");
    for (int i = 0; i < d.n; i++) {
        cJSON_AddItemToArray(searches,
                             draw_search(&d, n_hosts, i, start_s[i]));
    }
    expanded = must(cJSON_Print(top));
    cJSON_Delete(top);
    return expanded;
}
