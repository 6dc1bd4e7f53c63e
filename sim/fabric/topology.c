/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the topology of a cluster.
 *
 * The format is the one of Alibaba's Lingjun data set: a line
 * "ip,DSW,PSW,ASW", then one line a host: its name, and the core, aggregation
 * and access switches that it is under.  Switches have their names under the
 * switch above them, so that S1 under P1 and S1 under P2 are two.  A name may
 * be anything but empty.  What hosts can send is "oversubscription" times what
 * their access switch can send up, and so on for each tier. */

#include "sim/fabric/fabric.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/text-file.h"
#include "order/problem/memory.h"
#include "sim/fabric/line-reader.h"

#define HEADER "ip,DSW,PSW,ASW"
#define N_FIELDS 4
#define MAX_HOSTS 100000

/* A line of the file. */
struct host {
    int index;                  /* By line. */
    char *fields[N_FIELDS];     /* Name, core, aggregation, access. */
};

struct topology {
    struct line_reader lines;
    size_t n, allocated;
    struct host *hosts;
};

static void
add_host(struct topology *t)
{
    char *text = t->lines.text;
    struct host host = { .index = t->n };
    int n = 0;

    for (char *field; n <= N_FIELDS && (field = strsep(&text, ",")); n++) {
        if (n < N_FIELDS) {
            host.fields[n] = field;
            if (!*field) {
                line_reader_fail(&t->lines,
                                 "field %d is empty; expected a name", n + 1);
            }
        }
    }
    if (n != N_FIELDS) {
        line_reader_fail(&t->lines,
                         "%s fields than 4; expected \"" HEADER "\"",
                         n < N_FIELDS ? "less" : "more");
    } else if (t->n == MAX_HOSTS) {
        line_reader_fail(&t->lines, "one more host; expected at most %d",
                         MAX_HOSTS);
    }
    if (!t->lines.error) {
        t->hosts = order_grow(t->hosts, t->n + 1, &t->allocated,
                              sizeof *t->hosts);
        for (int k = 0; k < N_FIELDS; k++) {
            host.fields[k] = order_strdup(host.fields[k]);
        }
        t->hosts[t->n++] = host;
    }
}

static void
read_hosts(struct topology *t, FILE *stream)
{
    struct line_reader *lr = &t->lines;

    while (!lr->error && line_reader_next(lr, stream)) {
        lr->text[strcspn(lr->text, "\r\n")] = '\0';
        if (lr->line > 1) {
            add_host(t);
        } else if (strcmp(lr->text, HEADER)) {
            line_reader_fail(lr, "the first line is not \"" HEADER "\"");
        }
    }
    if (!t->n) {
        line_reader_fail(lr, "the file ends without a host");
    }
    line_reader_uninit(lr);
}

/* Orders hosts by core, then aggregation, then access switch. */
static int
compare_places(const void *a_, const void *b_)
{
    const struct host *a = a_, *b = b_;

    for (int k = 1; k < N_FIELDS; k++) {
        int c = strcmp(a->fields[k], b->fields[k]);

        if (c) {
            return c;
        }
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* Returns true if 'a' and 'b' are under the same switch of tier 'field'. */
static bool
are_together(const struct host *a, const struct host *b, int field)
{
    for (int k = 1; k <= field; k++) {
        if (strcmp(a->fields[k], b->fields[k])) {
            return false;
        }
    }
    return true;
}

/* Adds the switches of tier 'field'.  'node' has, for each of the sorted
 * hosts, its node in the tier below, and is updated to this tier. */
static void
add_tier(const struct topology *t, struct sim_fabric *fabric, int field,
         double oversubscription, int *node)
{
    int *above = order_alloc(t->n, sizeof *above);
    int n = 0;

    for (size_t i = 0; i < t->n; i++) {
        n += i && !are_together(&t->hosts[i - 1], &t->hosts[i], field);
        above[node[i]] = n;
        node[i] = n;
    }
    sim_fabric_add_tier(fabric, above, n + 1, oversubscription);
    free(above);
}

static struct sim_fabric *
make_fabric(const struct topology *t, double capacity, double oversubscription)
{
    struct sim_fabric *fabric = sim_fabric_create(t->n, capacity);
    int *node = order_alloc(t->n, sizeof *node);

    qsort(t->hosts, t->n, sizeof *t->hosts, compare_places);
    for (size_t i = 0; i < t->n; i++) {
        node[i] = t->hosts[i].index;
    }
    for (int field = N_FIELDS - 1; field > 0; field--) {
        add_tier(t, fabric, field, oversubscription, node);
    }
    free(node);
    return fabric;
}

char *
sim_fabric_from_csv(const char *file, double capacity,
                    double oversubscription, struct sim_fabric **fabricp)
{
    struct topology t = { .lines.name = file };
    FILE *stream = text_file_open(file);

    *fabricp = NULL;
    if (!stream) {
        if (asprintf(&t.lines.error, "%s: %s", file, strerror(errno)) < 0) {
            abort();
        }
        return t.lines.error;
    }
    read_hosts(&t, stream);
    fclose(stream);
    if (!t.lines.error) {
        *fabricp = make_fabric(&t, capacity, oversubscription);
    }
    for (size_t i = 0; i < t.n; i++) {
        for (int k = 0; k < N_FIELDS; k++) {
            free(t.hosts[i].fields[k]);
        }
    }
    free(t.hosts);
    return t.lines.error;
}
