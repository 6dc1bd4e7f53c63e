/* SPDX-License-Identifier: Apache-2.0 */

#include "scenario/scenario.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "trainer/search/hosts.h"
#include "trainer/search/spec.h"

/* Limits of a software switch, see docs/numbers.md.  Above them a run would
 * measure the processor, not the order. */
#define MAX_RATE_SMALL_MTU 200000000LL
#define MAX_RATE 500000000LL
#define SMALL_MTU 1500

const char *const fabric_names[] = { "ovs", "bridge", NULL };

/* The simulator reads scenarios too, and links without libopenvswitch. */
static void *
zalloc_array(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    if (!p) {
        abort();
    }
    return p;
}

static void
read_policies(struct scenario *s, const struct json_at *top)
{
    const struct json_at *policies = json_array(top, "policies", 1, 16);

    s->n_policies = json_n(policies);
    s->policies = zalloc_array(s->n_policies + 1, sizeof *s->policies);
    for (size_t i = 0; i < s->n_policies; i++) {
        s->policies[i] = json_at_string(json_element(policies, i));
        for (size_t j = 0; j < i; j++) {
            if (s->policies[i] && s->policies[j]
                && !strcmp(s->policies[i], s->policies[j])) {
                json_fail(json_element(policies, i), NULL,
                          "policy \"%s\" is named twice", s->policies[i]);
            }
        }
    }
}

static void
read_rate(struct scenario *s, const struct json_at *top)
{
    long long max;

    s->rate_bps = json_rate(top, "rate");
    s->mtu = json_integer_or(top, "mtu", 576, 9000, 9000);
    max = s->mtu <= SMALL_MTU ? MAX_RATE_SMALL_MTU : MAX_RATE;
    if (s->rate_bps > max) {
        json_fail(top, "rate", "%lld Mbit/s, at most %lld Mbit/s are allowed "
                  "with an MTU of %d", s->rate_bps / 1000000LL,
                  max / 1000000, s->mtu);
    }
}

/* The hosts of a scenario as a search knows them. */
static struct search_hosts *
make_hosts(const struct scenario *s)
{
    struct search_hosts *hosts = zalloc_array(1, sizeof *hosts);

    hosts->n = s->n_hosts;
    hosts->hosts = zalloc_array(hosts->n, sizeof *hosts->hosts);
    for (size_t i = 0; i < hosts->n; i++) {
        if (asprintf(&hosts->hosts[i].name, "h%zu", i) < 0) {
            abort();
        }
        hosts->hosts[i].slots = s->slots;
    }
    return hosts;
}

int
scenario_processes(const struct scenario *s, int host, size_t n_searches,
                   size_t n_cojobs)
{
    char name[16];
    int n = 0;

    snprintf(name, sizeof name, "h%d", host);
    for (size_t i = 0; i < n_searches; i++) {
        n += search_spec_processes(s->searches[i].spec, name);
    }
    for (size_t i = 0; i < n_cojobs; i++) {
        n += scenario_cojob_processes(&s->cojobs[i], host);
    }
    return n;
}

/* Reports a host that search 'i' and those before it overfill together. */
static void
check_slots(const struct scenario *s, size_t i, const struct json_at *search)
{
    for (int host = 0; host < s->n_hosts; host++) {
        int n = scenario_processes(s, host, i + 1, 0);

        if (n > s->slots) {
            json_fail(search, "placements", "with the searches before it "
                      "this makes %d processes on h%d, at most %d are "
                      "allowed", n, host, s->slots);
        }
    }
}

static void
read_search(struct scenario *s, size_t i, const struct json_at *at,
            const cJSON *item, const struct search_hosts *hosts)
{
    struct scenario_search *ss = &s->searches[i];
    const struct json_at *search;

    ss->start_s = json_number_or(at, "start_s", 0, 3600, 0);
    search = json_object(at, "search");
    search_spec_from_json(search, &ss->spec);
    search_spec_check(search, ss->spec, hosts);
    ss->cojob = ss->spec->name ? strdup(ss->spec->name) : NULL;
    ss->text = cJSON_Print(cJSON_GetObjectItem(item, "search"));
    for (size_t j = 0; j < i; j++) {
        if (ss->cojob && s->searches[j].cojob
            && !strcmp(ss->cojob, s->searches[j].cojob)) {
            json_fail(search, "name", "\"%s\" is the name of another search",
                      ss->cojob);
        }
    }
    check_slots(s, i, search);
}

static void
read_searches(struct scenario *s, const struct json_at *top, const char *text)
{
    const struct json_at *searches
        = (json_has(top, "cojobs")
           ? json_array_or_null(top, "searches", 1, 64)
           : json_array(top, "searches", 1, 64));
    cJSON *root = cJSON_Parse(text);
    const cJSON *items = cJSON_GetObjectItem(root, "searches");
    struct search_hosts *hosts = make_hosts(s);

    s->n_searches = json_n(searches);
    s->searches = zalloc_array(s->n_searches + 1, sizeof *s->searches);
    for (size_t i = 0; i < s->n_searches; i++) {
        read_search(s, i, json_element_object(searches, i),
                    cJSON_GetArrayItem(items, i), hosts);
    }
    search_hosts_destroy(hosts);
    cJSON_Delete(root);
}

/* Returns the folder of 'file', which need not exist. */
static char *
folder(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *dir = (!slash ? strdup(".")
                 : strndup(file, slash > file ? slash - file : 1));

    if (!dir) {
        abort();
    }
    return dir;
}

char *
scenario_from_string(const char *name, const char *text,
                     struct scenario **scenariop)
{
    struct json_check *jc = json_check_open(name, text);
    const struct json_at *top = json_check_top(jc);
    struct scenario *s = zalloc_array(1, sizeof *s);
    char *error;

    json_ignore(top, "$schema");
    s->name = json_name(top, "name");
    s->dir = folder(name);
    s->description = json_string_or(top, "description", NULL);
    s->n_hosts = json_integer(top, "hosts", 1, SCENARIO_MAX_HOSTS);
    s->slots = json_integer_or(top, "slots", 1, 64, 4);
    read_rate(s, top);
    s->cc = json_bool_or(top, "cc", false);
    s->fabric = json_enum_or(top, "fabric", fabric_names, FABRIC_OVS);
    s->timeout_s = json_number_or(top, "timeout_s", 1, 86400, 150);
    read_policies(s, top);
    read_searches(s, top, text);
    scenario_read_cojobs(s, top);
    error = json_check_close(jc);

    if (error) {
        scenario_destroy(s);
        s = NULL;
    }
    *scenariop = s;
    return error;
}

char *
scenario_from_file(const char *file, struct scenario **scenariop)
{
    char *text;
    char *error = json_read_file(file, &text);

    *scenariop = NULL;
    if (!error) {
        error = scenario_from_string(file, text, scenariop);
        free(text);
    }
    return error;
}

void
scenario_destroy(struct scenario *s)
{
    if (s) {
        free_strings(s->policies, s->n_policies);
        for (size_t i = 0; i < s->n_searches; i++) {
            free(s->searches[i].cojob);
            free(s->searches[i].text);
            search_spec_destroy(s->searches[i].spec);
        }
        free(s->searches);
        for (size_t i = 0; i < s->n_cojobs; i++) {
            scenario_cojob_uninit(&s->cojobs[i]);
        }
        free(s->cojobs);
        free(s->dir);
        free(s->name);
        free(s->description);
        free(s);
    }
}
