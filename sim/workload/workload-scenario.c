/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-scenario.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json-check.h"
#include "order/problem/memory.h"
#include "sim/fabric/line-reader.h"
#include "sim/workload/trial-curve.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "wire/rungs.h"

#define MAX_HOSTS 20000
#define MAX_COJOBS 10000
#define MAX_JOBS 1024           /* Of a cojob. */
#define MAX_JOB_HOSTS 1024
#define MAX_TRANSFERS 10000000  /* Of a scenario: about 500 MB. */
#define MAX_BYTES 1e15
#define MAX_PARTS 1024 /* Shards, and phases. */

static const char *const kinds[] = { "sim", NULL };

struct reader {
    struct json_check *jc;
    struct workload *w;
    size_t n_transfers;
};

/* Returns the host that 'name' is, which it frees.  It stands in 'member' of
 * 'at', or is 'at' itself if 'member' is null. */
static int
to_host(const struct reader *r, const struct json_at *at, const char *member,
        char *name)
{
    int n_hosts = r->w->fabric->n_hosts;
    char expected[16] = "";
    int host = 0;

    if (name) {
        host = name[0] == 'h' ? atoi(name + 1) : -1;
        snprintf(expected, sizeof expected, "h%d", host);
        if (host < 0 || host >= n_hosts || strcmp(name, expected)) {
            json_fail(at, member,
                      "\"%s\" is not a host; expected \"h0\" to "
                      "\"h%d\"",
                      line_reader_shown(name), n_hosts - 1);
            host = 0;
        }
        free(name);
    }
    return host;
}

/* Reads array 'member', of different hosts if 'differ', and stores their
 * number in '*np'.  The caller frees it. */
static int *
read_hosts(const struct reader *r, const struct json_at *at,
           const char *member, size_t min_n, bool differ, size_t *np)
{
    const struct json_at *array = json_array(at, member, min_n, MAX_JOB_HOSTS);
    size_t n = json_n(array);
    int *hosts = order_alloc(n, sizeof *hosts);

    for (size_t i = 0; i < n && json_ok(r->jc); i++) {
        const struct json_at *element = json_element(array, i);

        hosts[i] = to_host(r, element, NULL, json_at_string(element));
        for (size_t j = 0; differ && j < i; j++) {
            if (hosts[j] == hosts[i]) {
                json_fail(element, NULL,
                          "h%d is there already; expected each host once",
                          hosts[i]);
            }
        }
    }
    *np = n;
    return hosts;
}

/* Returns true if 'n' more transfers are allowed, or reports at 'at' that they
 * are not. */
static bool
count_transfers(struct reader *r, const struct json_at *at, size_t n)
{
    r->n_transfers += n;
    if (r->n_transfers > MAX_TRANSFERS) {
        json_fail(at, NULL,
                  "with those before it %zu transfers; expected at most %d",
                  r->n_transfers, MAX_TRANSFERS);
    }
    return json_ok(r->jc);
}

static void
read_ps(struct reader *r, const struct json_at *ps, struct workload_job *job)
{
    size_t n_workers, n_servers;
    int *workers = read_hosts(r, ps, "workers", 1, false, &n_workers);
    int *servers = read_hosts(r, ps, "servers", 1, false, &n_servers);
    double bytes = json_number(ps, "bytes", 1, MAX_BYTES);

    job->devices = n_workers;
    if (count_transfers(r, ps, 2 * n_workers * n_servers)) {
        workload_add_ps(job, workers, n_workers, servers, n_servers, bytes);
    }
    free(workers);
    free(servers);
}

static void
read_ring(struct reader *r, const struct json_at *ring,
          struct workload_job *job)
{
    size_t n;
    int *hosts = read_hosts(r, ring, "hosts", 2, true, &n);
    double bytes = json_number(ring, "bytes", 1, MAX_BYTES);

    job->devices = n;
    if (count_transfers(r, ring, n)) {
        workload_add_ring(job, hosts, n, bytes);
    }
    free(hosts);
}

static void
read_transfer(struct reader *r, const struct json_at *t,
              struct workload_job *job)
{
    int src = to_host(r, t, "from", json_string(t, "from"));
    int dst = to_host(r, t, "to", json_string(t, "to"));
    double bytes = json_number(t, "bytes", 1, MAX_BYTES);
    int shard = json_integer_or(t, "shard", 0, MAX_PARTS - 1, 0);
    int phase = json_integer_or(t, "phase", 0, MAX_PARTS - 1, 0);

    if (json_ok(r->jc) && src == dst) {
        json_fail(t, "to", "h%d is the sender; expected another host", dst);
    } else if (count_transfers(r, t, 1)) {
        workload_add_transfer(job, src, dst, bytes, shard, phase);
    }
}

/* Reads what 'job' exchanges, in one of the three forms. */
static void
read_exchange(struct reader *r, const struct json_at *at,
              struct workload_job *job)
{
    const struct json_at *ps = json_object_or_null(at, "ps");
    const struct json_at *ring = json_object_or_null(at, "ring");
    const struct json_at *transfers = json_array_or_null(at, "transfers", 1,
                                                         MAX_TRANSFERS);
    int n = !!ps + !!ring + !!transfers;

    if (n != 1) {
        json_fail(at, NULL,
                  "%d exchanges; expected one of \"ps\", \"ring\" and "
                  "\"transfers\"",
                  n);
    } else if (ps) {
        read_ps(r, ps, job);
    } else if (ring) {
        read_ring(r, ring, job);
    }
    for (size_t i = 0; i < json_n(transfers) && json_ok(r->jc); i++) {
        read_transfer(r, json_element_object(transfers, i), job);
    }
}

static void
read_curve(const struct json_at *curve, struct workload_job *job)
{
    if (json_has(curve, "learning_rate")) {
        job->curve.recorded =
            trial_curve_find(json_integer(curve, "classes", 2, 1000000),
                             json_number(curve, "learning_rate", 1e-6, 1e6));
        job->curve.final = json_number_or(curve, "final", -1, 1, 0);
        job->curve.stretch = json_number_or(curve, "stretch", 1e-3, 1e3, 1);
    } else if (curve) {
        job->curve.final = json_number(curve, "final", 1e-9, 1e9);
        job->curve.span = json_number(curve, "span", 0, 1e9);
        job->curve.exponent = json_number(curve, "exponent", 0.01, 10);
    }
    if (curve) {
        job->curve.every =
            json_integer_or(curve, "every", 1, RUNG_MAX_ITERATIONS, 1);
    }
}

static void
read_job(struct reader *r, const struct json_at *at,
         struct workload_cojob *cojob)
{
    char *name = json_name(at, "name");
    double compute = json_number_or(at, "compute_s", 0, 1e6, 0);
    struct workload_job *job;

    for (size_t i = 0; name && i < cojob->n_jobs; i++) {
        if (!strcmp(cojob->jobs[i].name, name)) {
            json_fail(at, "name", "\"%s\" is the name of another job", name);
        }
    }
    job = workload_add_job(cojob, name ? name : "", compute);
    read_exchange(r, at, job);
    job->devices = json_integer_or(at, "devices", 1, 1000000, job->devices);
    read_curve(json_object_or_null(at, "curve"), job);
    free(name);
}

static void
read_rungs(struct reader *r, const struct json_at *at,
           struct workload_cojob *cojob)
{
    struct search_method method;
    size_t n;
    struct search_rung *rungs =
        search_method_read(at, cojob->n_jobs, &method, &n);

    if (json_ok(r->jc)) {
        workload_add_rungs(r->w, cojob, &method, rungs, n);
    }
    free(rungs);
}

static void
check_name(const struct reader *r, const struct json_at *at, const char *name)
{
    for (size_t i = 0; name && i < r->w->n_cojobs; i++) {
        if (!strcmp(r->w->cojobs[i].name, name)) {
            json_fail(at, "name", "\"%s\" is the name of another cojob", name);
        }
    }
}

static void
read_cojob(struct reader *r, const struct json_at *at)
{
    char *name = json_name(at, "name");
    double weight = json_number_or(at, "weight", 0.001, 1e6, 1);
    double arrival = json_number_or(at, "arrival_s", 0, 1e9, 0);
    const struct json_at *jobs = json_array(at, "jobs", 1, MAX_JOBS);
    struct workload_cojob *cojob;

    check_name(r, at, name);
    cojob = workload_add_cojob(r->w, name ? name : "", weight, arrival);
    cojob->user = json_has(at, "user") ? json_name(at, "user") : NULL;
    for (size_t i = 0; i < json_n(jobs) && json_ok(r->jc); i++) {
        read_job(r, json_element_object(jobs, i), cojob);
    }
    if (json_ok(r->jc)) {
        read_rungs(r, at, cojob);
    }
    free(name);
}

/* Reads the topology in the file that "topology" names, relative to the folder
 * of 'scenario'.  Returns NULL after an error. */
static struct sim_fabric *
read_topology(const struct json_at *at, const char *scenario, double capacity)
{
    double over = json_number_or(at, "oversubscription", 0.1, 1000, 1);
    char *file = json_string(at, "topology");
    const char *slash = strrchr(scenario, '/');
    struct sim_fabric *fabric = NULL;
    char *path, *error;

    if (file && over > 0 && capacity > 0) {
        int n = slash && file[0] != '/' ? slash + 1 - scenario : 0;

        if (asprintf(&path, "%.*s%s", n, scenario, file) < 0) {
            abort();
        }
        error = sim_fabric_from_csv(path, capacity, over, &fabric);
        if (error) {
            json_fail(at, "topology", "%s", error);
        }
        free(error);
        free(path);
    }
    free(file);
    return fabric;
}

static struct sim_fabric *
read_leaf_spine(const struct json_at *at, int n_hosts, double capacity)
{
    int n = json_integer(at, "hosts_per_leaf", 1, MAX_HOSTS);
    double over = json_number_or(at, "oversubscription", 0.1, 1000, 1);

    return n_hosts > 0 && capacity > 0 && n > 0 && over > 0
           ? sim_fabric_create_leaf_spine(n_hosts, n, capacity, over) : NULL;
}

/* Reads "fabric"; after an error it is one of one host. */
static struct sim_fabric *
read_fabric(const struct json_at *at, const char *scenario)
{
    const struct json_at *leaves = json_object_or_null(at, "leaf_spine");
    double capacity = json_rate(at, "rate") / 8.0;
    struct sim_fabric *fabric = NULL;

    if (json_has(at, "topology")) {
        fabric = read_topology(at, scenario, capacity);
    } else {
        int n_hosts = json_integer(at, "hosts", 1, MAX_HOSTS);

        if (leaves) {
            fabric = read_leaf_spine(leaves, n_hosts, capacity);
        } else if (n_hosts > 0 && capacity > 0) {
            fabric = sim_fabric_create(n_hosts, capacity);
        }
    }
    return fabric ? fabric : sim_fabric_create(1, 1);
}

char *
workload_scenario_from_string(const char *name, const char *text,
                              struct workload **wp)
{
    struct reader r = { .jc = json_check_open(name, text) };
    const struct json_at *top = json_check_top(r.jc);
    const struct json_at *cojobs;
    char *error;

    json_ignore(top, "$schema");
    json_ignore(top, "description");
    json_enum(top, "kind", kinds);
    free(json_name(top, "name"));
    r.w = workload_create("stage", read_fabric(json_object(top, "fabric"),
                                               name));
    cojobs = json_array(top, "cojobs", 1, MAX_COJOBS);
    for (size_t i = 0; i < json_n(cojobs) && json_ok(r.jc); i++) {
        read_cojob(&r, json_element_object(cojobs, i));
    }
    error = json_check_close(r.jc);

    if (error) {
        workload_destroy(r.w);
        r.w = NULL;
    }
    *wp = r.w;
    return error;
}
