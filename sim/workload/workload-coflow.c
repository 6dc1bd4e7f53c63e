/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-coflow.h"

#include <errno.h>
#include <stdbool.h>

#include "base/text-file.h"
#include "order/problem/memory.h"
#include "sim/fabric/line-reader.h"
#include "sim/workload/workload.h"

#define MEGABYTE (1024.0 * 1024)
#define LINK_CAPACITY (128 * MEGABYTE)  /* Bytes per second. */
#define MAX_PORTS 10000
#define MAX_COFLOWS 10000000
#define MAX_FLOWS 20000000      /* Of a trace: about 1 GB of transfers. */
#define MAX_MS 1e12
#define MAX_MB 1e9

/* A trace as it is read. */
struct trace {
    struct line_reader lr;
    int n_hosts;
    size_t n_flows;
};

static int
next_integer(struct trace *t, const char *what, int min, int max)
{
    return line_reader_number(&t->lr, line_reader_word(&t->lr, what), what,
                              min, max, true);
}

static double
next_number(struct trace *t, const char *what, double min, double max)
{
    return line_reader_number(&t->lr, line_reader_word(&t->lr, what), what,
                              min, max, false);
}

/* Reads "REDUCER:MB" and adds its flows. */
static void
read_reducer(struct trace *t, struct workload_job *job, const int *mappers,
             int n_mappers)
{
    char *word = line_reader_word(&t->lr, "a reducer");
    char *colon = word ? strchr(word, ':') : NULL;
    int reducer;
    double mb;

    if (!colon) {
        if (word) {
            line_reader_fail(&t->lr, "\"%s\" is not a reducer such as "
                             "\"65:1.0\"", line_reader_shown(word));
        }
        return;
    }
    *colon = '\0';
    reducer = line_reader_number(&t->lr, word, "reducer", 0, t->n_hosts - 1,
                                 true);
    mb = line_reader_number(&t->lr, colon + 1, "size in MB", 0, MAX_MB, false);
    for (int i = 0; i < n_mappers && !t->lr.error; i++) {
        workload_add_transfer(job, mappers[i], reducer,
                              mb * MEGABYTE / n_mappers, 0, 0);
    }
}

static void
read_coflow(struct trace *t, struct workload *w)
{
    char *id = line_reader_word(&t->lr, "an ID");
    double ms = next_number(t, "arrival in ms", 0, MAX_MS);
    int n_mappers = next_integer(t, "number of mappers", 1, t->n_hosts);
    int *mappers = order_alloc(n_mappers, sizeof *mappers);
    struct workload_cojob *cojob;
    struct workload_job *job;
    int n_reducers;

    cojob = workload_add_cojob(w, id ? line_reader_shown(id) : "", 1,
                               ms / 1000);
    job = workload_add_job(cojob, cojob->name, 0);
    for (int i = 0; i < n_mappers && !t->lr.error; i++) {
        mappers[i] = next_integer(t, "mapper", 0, t->n_hosts - 1);
    }
    n_reducers = next_integer(t, "number of reducers", 1, t->n_hosts);
    t->n_flows += (size_t) n_mappers * n_reducers;
    if (t->n_flows > MAX_FLOWS) {
        line_reader_fail(&t->lr, "flow %zu; expected at most %d", t->n_flows,
                         MAX_FLOWS);
    }
    for (int i = 0; i < n_reducers && !t->lr.error; i++) {
        read_reducer(t, job, mappers, n_mappers);
    }
    line_reader_end(&t->lr, "the last reducer");
    workload_add_rung(w, cojob, 1, 1);
    free(mappers);
}

char *
workload_coflow_read(const char *name, FILE *stream, size_t max_coflows,
                     struct workload **wp)
{
    struct trace t = { .lr = { .name = name } };
    struct workload *w = NULL;
    size_t n_coflows = 0;

    if (!line_reader_next(&t.lr, stream)) {
        line_reader_fail(&t.lr,
                         "no \"PORTS COFLOWS\", the first line of a trace");
    }
    t.n_hosts = next_integer(&t, "number of ports", 1, MAX_PORTS);
    n_coflows = next_integer(&t, "number of coflows", 1, MAX_COFLOWS);
    line_reader_end(&t.lr, "the number of coflows");
    if (max_coflows && max_coflows < n_coflows) {
        n_coflows = max_coflows;
    }
    if (!t.lr.error) {
        w = workload_create("coflow",
                            sim_fabric_create(t.n_hosts, LINK_CAPACITY));
    }
    while (!t.lr.error && w->n_cojobs < n_coflows) {
        if (!line_reader_next(&t.lr, stream)) {
            line_reader_fail(&t.lr, "the trace ends after %zu of %zu coflows",
                             w->n_cojobs, n_coflows);
        } else {
            read_coflow(&t, w);
        }
    }
    if (!t.lr.error && !max_coflows && line_reader_next(&t.lr, stream)) {
        line_reader_fail(&t.lr,
                         "one more coflow than the %zu that line 1 "
                         "says",
                         n_coflows);
    }
    if (t.lr.error) {
        workload_destroy(w);
        w = NULL;
    }
    line_reader_uninit(&t.lr);
    *wp = w;
    return t.lr.error;
}

char *
workload_coflow_from_file(const char *file, struct workload **wp)
{
    FILE *stream = text_file_open(file);
    char *error;

    *wp = NULL;
    if (!stream) {
        if (asprintf(&error, "%s: %s", file, strerror(errno)) < 0) {
            abort();
        }
        return error;
    }
    error = workload_coflow_read(file, stream, 0, wp);
    fclose(stream);
    return error;
}
