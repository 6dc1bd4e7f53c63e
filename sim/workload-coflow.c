/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload-coflow.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>

#include "sim/memory.h"
#include "sim/workload.h"

#define MEGABYTE (1024.0 * 1024)
#define LINK_CAPACITY (128 * MEGABYTE)  /* Bytes per second. */
#define MAX_PORTS 10000
#define MAX_COFLOWS 10000000
#define MAX_FLOWS 20000000      /* Of a trace: about 1 GB of transfers. */
#define MAX_MS 1e12
#define MAX_MB 1e9
#define MAX_SHOWN 24            /* Characters of the text in a message. */

/* A trace as it is read.  The first error sticks: what is read after it is
 * a harmless default. */
struct trace {
    const char *name;
    int line;
    char *text;                 /* Of the line. */
    size_t allocated;
    char *at;                   /* What comes next in it. */
    char *error;
    int n_hosts;
    size_t n_flows;
};

static void __attribute__((__format__(printf, 2, 3)))
fail(struct trace *t, const char *format, ...)
{
    va_list args;
    char *what;

    if (t->error) {
        return;
    }
    va_start(args, format);
    if (vasprintf(&what, format, args) < 0
        || asprintf(&t->error, "%s:%d: %s", t->name, t->line, what) < 0) {
        abort();
    }
    va_end(args);
    free(what);
}

static bool
next_line(struct trace *t, FILE *stream)
{
    ssize_t n = getline(&t->text, &t->allocated, stream);

    if (n < 0) {
        return false;
    }
    t->line++;
    t->at = t->text;
    if (strlen(t->text) != (size_t) n) {
        fail(t, "a NUL byte, only text is allowed");
    }
    return true;
}

/* Returns the next word of the line and ends it with a NUL, or reports that
 * 'what' is missing and returns NULL. */
static char *
next_word(struct trace *t, const char *what)
{
    char *word;

    if (t->error) {
        return NULL;
    }
    t->at += strspn(t->at, " \t\r\n");
    if (!*t->at) {
        fail(t, "the line ends where %s is expected", what);
        return NULL;
    }
    word = t->at;
    t->at += strcspn(t->at, " \t\r\n");
    if (*t->at) {
        *t->at++ = '\0';
    }
    return word;
}

/* Makes 'word' fit for a message. */
static const char *
shown(char *word)
{
    for (char *c = word; *c; c++) {
        if (c - word >= MAX_SHOWN) {
            strcpy(c - 3, "...");
            break;
        }
        *c = isprint((unsigned char) *c) ? *c : '?';
    }
    return word;
}

/* Converts 'word' to a number from 'min' to 'max', or reports that 'what' is
 * none and returns 'min'. */
static double
to_number(struct trace *t, char *word, const char *what, double min,
          double max, bool integer)
{
    char *end;
    double x;

    if (!word) {
        return min;
    }
    x = strtod(word, &end);
    if (end == word || *end || word[strspn(word, "0123456789.")]
        || !(x >= min && x <= max) || (integer && x != floor(x))) {
        fail(t, "%s \"%s\" is not %s from %.0f to %.0f", what, shown(word),
             integer ? "an integer" : "a number", min, max);
        return min;
    }
    return x;
}

static int
next_integer(struct trace *t, const char *what, int min, int max)
{
    return to_number(t, next_word(t, what), what, min, max, true);
}

static double
next_number(struct trace *t, const char *what, double min, double max)
{
    return to_number(t, next_word(t, what), what, min, max, false);
}

/* Reports what stands after 'what', the last of the line. */
static void
end_line(struct trace *t, const char *what)
{
    if (!t->error) {
        t->at += strspn(t->at, " \t\r\n");
        t->at[strcspn(t->at, " \t\r\n")] = '\0';
        if (*t->at) {
            fail(t, "\"%s\" stands after %s", shown(t->at), what);
        }
    }
}

/* Reads "REDUCER:MB" and adds its flows. */
static void
read_reducer(struct trace *t, struct workload_job *job, const int *mappers,
             int n_mappers)
{
    char *word = next_word(t, "a reducer");
    char *colon = word ? strchr(word, ':') : NULL;
    int reducer;
    double mb;

    if (!colon) {
        if (word) {
            fail(t, "\"%s\" is not a reducer such as \"65:1.0\"", shown(word));
        }
        return;
    }
    *colon = '\0';
    reducer = to_number(t, word, "reducer", 0, t->n_hosts - 1, true);
    mb = to_number(t, colon + 1, "size in MB", 0, MAX_MB, false);
    for (int i = 0; i < n_mappers && !t->error; i++) {
        workload_add_transfer(job, mappers[i], reducer,
                              mb * MEGABYTE / n_mappers, 0, 0);
    }
}

static void
read_coflow(struct trace *t, struct workload *w)
{
    char *id = next_word(t, "an ID");
    double ms = next_number(t, "arrival in ms", 0, MAX_MS);
    int n_mappers = next_integer(t, "number of mappers", 1, t->n_hosts);
    int *mappers = sim_calloc(n_mappers, sizeof *mappers);
    struct workload_cojob *cojob;
    struct workload_job *job;
    int n_reducers;

    cojob = workload_add_cojob(w, id ? shown(id) : "", 1, ms / 1000);
    job = workload_add_job(cojob, cojob->name, 0);
    for (int i = 0; i < n_mappers && !t->error; i++) {
        mappers[i] = next_integer(t, "mapper", 0, t->n_hosts - 1);
    }
    n_reducers = next_integer(t, "number of reducers", 1, t->n_hosts);
    t->n_flows += (size_t) n_mappers * n_reducers;
    if (t->n_flows > MAX_FLOWS) {
        fail(t, "flow %zu, at most %d are allowed", t->n_flows, MAX_FLOWS);
    }
    for (int i = 0; i < n_reducers && !t->error; i++) {
        read_reducer(t, job, mappers, n_mappers);
    }
    end_line(t, "the last reducer");
    workload_add_rung(w, cojob, 1, 1);
    free(mappers);
}

/* Only blank lines may follow the last coflow. */
static void
end_trace(struct trace *t, FILE *stream, size_t n_coflows)
{
    while (!t->error && next_line(t, stream)) {
        if (t->at[strspn(t->at, " \t\r\n")]) {
            fail(t, "one more coflow than the %zu that line 1 says",
                 n_coflows);
        }
    }
}

char *
workload_coflow_read(const char *name, FILE *stream, size_t max_coflows,
                     struct workload **wp)
{
    struct trace t = { .name = name };
    struct workload *w = NULL;
    size_t n_coflows = 0;

    if (!next_line(&t, stream)) {
        t.line = 1;
        fail(&t, "%s", ferror(stream) ? strerror(errno)
             : "no \"PORTS COFLOWS\", the first line of a trace");
    }
    t.n_hosts = next_integer(&t, "number of ports", 1, MAX_PORTS);
    n_coflows = next_integer(&t, "number of coflows", 1, MAX_COFLOWS);
    end_line(&t, "the number of coflows");
    if (max_coflows && max_coflows < n_coflows) {
        n_coflows = max_coflows;
    }
    if (!t.error) {
        w = workload_create("coflow",
                            sim_fabric_create(t.n_hosts, LINK_CAPACITY));
    }
    while (!t.error && w->n_cojobs < n_coflows) {
        if (!next_line(&t, stream)) {
            t.line++;
            fail(&t, "the trace ends after %zu of %zu coflows", w->n_cojobs,
                 n_coflows);
        } else {
            read_coflow(&t, w);
        }
    }
    if (!t.error && !max_coflows) {
        end_trace(&t, stream, n_coflows);
    }
    if (t.error) {
        workload_destroy(w);
        w = NULL;
    }
    free(t.text);
    *wp = w;
    return t.error;
}

char *
workload_coflow_from_file(const char *file, struct workload **wp)
{
    FILE *stream = fopen(file, "r");
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
