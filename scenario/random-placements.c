/* SPDX-License-Identifier: Apache-2.0 */

#include "scenario/random-placements.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "scenario/scenario.h"
#include "trainer/data/seeded.h"

#define MAX_TRIALS 1024

void
random_placements_read(const struct json_at *at, int n_hosts,
                       struct random_placements *rp)
{
    rp->seed = json_integer_or(at, "seed", 0, RANDOM_PLACEMENTS_MAX_SEED, 1);
    rp->n_workers = json_integer(at, "workers", 1, SCENARIO_MAX_HOSTS);
    rp->n_servers = json_integer(at, "servers", 0, SCENARIO_MAX_HOSTS);
    if (rp->n_workers + rp->n_servers > n_hosts) {
        json_fail(at, NULL, "%d workers and %d servers on different hosts, "
                  "at most %d hosts are there", rp->n_workers, rp->n_servers,
                  n_hosts);
    }
}

/* The first steps of a shuffle of all hosts (Fisher and Yates). */
void
random_placements_draw(const struct random_placements *rp, int n_hosts,
                       int search, int trial, int hosts[])
{
    int all[SCENARIO_MAX_HOSTS];
    struct seeded rs;

    seeded_init(&rs, rp->seed, (uint64_t) search * MAX_TRIALS + trial);
    for (int i = 0; i < n_hosts; i++) {
        all[i] = i;
    }
    for (int i = 0; i < rp->n_workers + rp->n_servers; i++) {
        int j = i + seeded_below(&rs, n_hosts - i);

        hosts[i] = all[j];
        all[j] = all[i];
    }
}

static void
add_hosts(cJSON *placement, const char *member, const int *hosts, int n)
{
    cJSON *array = cJSON_AddArrayToObject(placement, member);

    for (int i = 0; i < n; i++) {
        char *name = message("h%d", hosts[i]);

        cJSON_AddItemToArray(array, cJSON_CreateString(name));
        free(name);
    }
}

bool
random_placements_add(cJSON *search, const struct random_placements *rp,
                      int n_hosts, int index)
{
    double n = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(
        search, "trials"));
    cJSON *placements;

    if (!cJSON_IsObject(search) || !(n >= 1 && n <= MAX_TRIALS)
        || cJSON_GetObjectItemCaseSensitive(search, "placements")) {
        return false;
    }
    placements = cJSON_AddArrayToObject(search, "placements");
    for (int trial = 0; trial < n; trial++) {
        cJSON *placement = cJSON_CreateObject();
        int hosts[SCENARIO_MAX_HOSTS];

        random_placements_draw(rp, n_hosts, index, trial, hosts);
        add_hosts(placement, "workers", hosts, rp->n_workers);
        if (rp->n_servers) {
            add_hosts(placement, "servers", hosts + rp->n_workers,
                      rp->n_servers);
        }
        cJSON_AddItemToArray(placements, placement);
    }
    return true;
}

/* Returns false unless 'text' has a valid member "random_placements". */
static bool
read_text(const char *text, struct random_placements *rp, int *n_hosts)
{
    struct json_check *jc = json_check_open("", text);
    const struct json_at *top = json_check_top(jc);
    const struct json_at *at = json_object_or_null(top, "random_placements");
    bool ok;

    *n_hosts = json_integer(top, "hosts", 1, SCENARIO_MAX_HOSTS);
    if (at) {
        random_placements_read(at, *n_hosts, rp);
    }
    ok = at && json_ok(jc);
    free(json_check_close(jc));
    return ok;
}

char *
random_placements_expand(const char *text, const int64_t *seed,
                         size_t *n_placed)
{
    struct random_placements rp;
    cJSON *top, *item;
    int n_hosts, index = 0;
    char *expanded;

    *n_placed = 0;
    if (!read_text(text, &rp, &n_hosts)) {
        return duplicate(text);
    }
    top = cJSON_Parse(text);
    if (seed) {
        item = cJSON_GetObjectItemCaseSensitive(top, "random_placements");
        cJSON_DeleteItemFromObjectCaseSensitive(item, "seed");
        cJSON_AddNumberToObject(item, "seed", *seed);
        rp.seed = *seed;
    }
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(top,
                                                               "searches")) {
        *n_placed += random_placements_add(
            cJSON_GetObjectItemCaseSensitive(item, "search"), &rp, n_hosts,
            index++);
    }
    expanded = must(cJSON_Print(top));
    cJSON_Delete(top);
    return expanded;
}
