/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/top-frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/stage-name.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/table.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "svec.h"
#include "util.h"

/* A row of a table, with what it is sorted by. */
struct row {
    char *cells;                /* Separated by tabs. */
    const char *name;
    double weight;
};

struct rows {
    struct row *all;
    size_t n, allocated;
};

static void OVS_PRINTF_FORMAT(4, 5)
add_row(struct rows *rows, const char *name, double weight,
        const char *format, ...)
{
    va_list args;

    if (rows->n >= rows->allocated) {
        rows->all = x2nrealloc(rows->all, &rows->allocated, sizeof *rows->all);
    }
    va_start(args, format);
    rows->all[rows->n++] = (struct row) {
        .cells = xvasprintf(format, args), .name = name, .weight = weight,
    };
    va_end(args);
}

/* The largest weight first, then by name. */
static int
compare_weights(const void *a_, const void *b_)
{
    const struct row *a = a_, *b = b_;

    return (a->weight > b->weight   ? -1
            : a->weight < b->weight ? 1
                                    : strcmp(a->name, b->name));
}

static void
sort_rows(struct rows *rows)
{
    if (rows->n) {
        qsort(rows->all, rows->n, sizeof *rows->all, compare_weights);
    }
}

/* Returns the lines of a table of 'rows', which are freed. */
static struct svec
finish_rows(const char *headings, struct rows *rows)
{
    struct table *t = table_create(headings);
    struct svec lines = SVEC_EMPTY_INITIALIZER;
    struct ds text = DS_EMPTY_INITIALIZER;
    char *rest, *line;

    for (size_t i = 0; i < rows->n; i++) {
        table_add(t, "%s", rows->all[i].cells);
        free(rows->all[i].cells);
    }
    free(rows->all);
    table_put(t, &text);
    rest = ds_cstr(&text);
    while ((line = strsep(&rest, "\n")) && rest) {
        svec_add(&lines, line);
    }
    ds_destroy(&text);
    return lines;
}

/* Returns "35 s", "4 min" or "2 h 5 min". */
static char *
duration(double s)
{
    return (s < 120 ? xasprintf("%.0f s", s)
            : s < 7200 ? xasprintf("%.0f min", s / 60)
            : xasprintf("%d h %d min", (int) (s / 3600),
                        (int) (s / 60) % 60));
}

/* Returns the bit/s as "12.3 Mbit/s". */
static char *
rate(double bps)
{
    return (bps < 1e9 ? xasprintf("%.1f Mbit/s", bps / 1e6)
            : xasprintf("%.2f Gbit/s", bps / 1e9));
}

/* The parts. */

static struct svec
stage_lines(const struct top_sample *now)
{
    const struct json *order = member_array(now->views[TOP_ORDER], "order");
    struct rows rows = { NULL, 0, 0 };

    for (size_t i = 0; i < order->array.n; i++) {
        const struct json *row = order->array.elems[i];
        double all = member_number(row, "iterations");
        bool known = has_member(row, "iterations_left");
        double done = MAX(all - member_number(row, "iterations_left"), 0);
        char *count = (known ? xasprintf("%.0f/%.0f", done, all)
                             : xasprintf("unknown/%.0f", all));
        char *share = (known && all > 0 ? xasprintf("%.0f%%", 100 * done / all)
                                        : xstrdup("unknown"));
        char *eta = (!strcmp(member_string(row, "idle"), "-")
                         ? known ? duration(member_number(row, "completion_s"))
                                 : xstrdup("unknown")
                         : xstrdup(member_string(row, "idle")));

        add_row(&rows, "", 0,
                "%.0f\t" STAGE_NAME_FMT "\t%zu\t%.0f\t"
                "%s\t%s\t%s\t%s",
                member_number(row, "rank"), member_string(row, "cojob"),
                (int) member_number(row, "rung"),
                member_array(row, "jobs")->array.n,
                member_number(row, "level"), count, share, eta,
                member_string(row, "bottleneck"));
        free(count);
        free(share);
        free(eta);
    }
    return finish_rows("rank\tstage\tjobs\tlevel\titerations\tdone\tends in\t"
                       "bottleneck", &rows);
}

/* Makes a map of the elements of array 'name' by their member 'key'. */
static void
index_rows(const struct json *view, const char *name, const char *key,
           struct shash *map)
{
    const struct json *array = member_array(view, name);

    shash_init(map);
    for (size_t i = 0; i < array->array.n; i++) {
        shash_add_once(map, member_string(array->array.elems[i], key),
                       array->array.elems[i]);
    }
}

/* Returns the increase of a counter by the second; 0 after a restart, and
 * without an earlier value. */
static double
increase(double now, double before, double seconds)
{
    return seconds > 0 && now > before ? (now - before) / seconds : 0;
}

static double
moved_bps(const struct json *host, const struct json *before, const char *dir,
          double seconds)
{
    return before ? 8 * increase(
        member_number(member_object(host, "moved"), dir),
        member_number(member_object(before, "moved"), dir), seconds) : 0;
}

/* Returns the state as one word for operators. */
static const char *
host_state(const struct json *host)
{
    return (!member_number(host, "connected") ? "disconnected"
            : member_number(host, "bypass")   ? "bypass"
                                              : member_string(host, "state"));
}

static struct svec
host_lines(const struct top_sample *before, const struct top_sample *now)
{
    const struct json *hosts = member_array(now->views[TOP_HOSTS], "hosts");
    struct rows rows = { NULL, 0, 0 };
    double seconds = now->at - before->at;
    struct shash old;

    index_rows(before->views[TOP_HOSTS], "hosts", "host", &old);
    for (size_t i = 0; i < hosts->array.n; i++) {
        const struct json *host = hosts->array.elems[i];
        const char *name = member_string(host, "host");
        const struct json *was = shash_find_data(&old, name);
        double tx = moved_bps(host, was, "tx", seconds);
        double rx = moved_bps(host, was, "rx", seconds);
        char *tx_text = rate(tx), *rx_text = rate(rx);
        char *tagged = percentage(host, "coverage", 0);

        add_row(&rows, name, tx + rx, "%s\t%s\t%.0f\t%s\t%s\t%.0f kB\t%s",
                name, host_state(host), member_number(host, "applied"),
                tx_text, rx_text, member_number(host, "queued_bytes") / 1000,
                tagged);
        free(tagged);
        free(tx_text);
        free(rx_text);
    }
    shash_destroy(&old);
    sort_rows(&rows);
    return finish_rows("host\tstate\torder\tjobs send\tjobs receive\tqueued\t"
                       "tagged", &rows);
}

/* Returns the demand of all stages on 'port', in seconds. */
static double
port_demand(const struct top_sample *now, const char *port)
{
    const struct json *order = member_array(now->views[TOP_ORDER], "order");
    double seconds = 0;

    for (size_t i = 0; i < order->array.n; i++) {
        seconds += member_number(member_object(order->array.elems[i],
                                               "demand"), port);
    }
    return seconds;
}

static struct svec
port_lines(const struct top_sample *before, const struct top_sample *now)
{
    const struct json *ports = member_array(now->views[TOP_PORTS], "ports");
    struct rows rows = { NULL, 0, 0 };
    struct shash old;

    index_rows(before->views[TOP_PORTS], "ports", "port", &old);
    for (size_t i = 0; i < ports->array.n; i++) {
        const struct json *port = ports->array.elems[i];
        const char *name = member_string(port, "port");
        const struct json *was = shash_find_data(&old, name);
        double load = was ? increase(member_number(port, "busy_s"),
                                     member_number(was, "busy_s"),
                                     now->at - before->at) : 0;
        char *demand = duration(port_demand(now, name));

        add_row(&rows, name, load, "%s\t%.0f%%\t%s", name, 100 * load, demand);
        free(demand);
    }
    shash_destroy(&old);
    sort_rows(&rows);
    return finish_rows("link\tload\tdemand", &rows);
}

/* The screen. */

#define N_PARTS 3

static void
put_header(const struct top_sample *now, const struct top_screen *screen,
           struct svec *lines)
{
    const struct json *status = now->views[TOP_STATUS];
    const struct json *alarms = member_array(status, "alarms");
    const char *first =
        (alarms->array.n ? member_string(alarms->array.elems[0], "text")
                         : "none");
    char *tagged = percentage(status, "coverage", 0);
    char *bound =
        (member_number(status, "bound_s") > 0
             ? xasprintf(", %.2f x the bound", member_number(status, "gap"))
             : xstrdup(""));

    svec_add_nocopy(
        lines,
        xasprintf(
            "controller %s, order %.0f by policy %s%s%s",
            member_string(status, "state"), member_number(status, "version"),
            member_string(status, "policy"),
            member_number(status, "observe") ? " (observing)" : "", bound));
    svec_add_nocopy(
        lines,
        xasprintf(
            "%.0f hosts, %.0f connected, at most %.1f s behind the order; %.0f "
            "cojobs, %.0f jobs, %.0f stages; %s tagged; GPUs waited %.1f "
            "of %.1f hours",
            member_number(status, "hosts"), member_number(status, "agents"),
            member_number(status, "order_lag_s"),
            member_number(status, "cojobs"), member_number(status, "jobs"),
            member_number(status, "stages"), tagged,
            member_number(status, "gpu_waited_s") / 3600,
            member_number(status, "gpu_s") / 3600));
    free(bound);
    free(tagged);
    if (screen->error) {
        svec_add_nocopy(lines, xasprintf("OLD DATA: %s", screen->error));
    } else {
        svec_add_nocopy(lines, xasprintf("alarms: %"PRIuSIZE", %s",
                                         alarms->array.n, first));
    }
}

/* Divides 'lines' among the parts: none gets more than it needs, and what one
 * does not need the others get. */
static void
share_lines(const struct svec parts[N_PARTS], size_t lines,
            size_t shares[N_PARTS])
{
    bool more = true;

    memset(shares, 0, N_PARTS * sizeof *shares);
    while (lines && more) {
        more = false;
        for (int i = 0; lines && i < N_PARTS; i++) {
            if (shares[i] < parts[i].n) {
                shares[i]++;
                lines--;
                more = true;
            }
        }
    }
}

/* Appends a line without control characters, which data of other machines may
 * have, and without what does not fit. */
static void
put_line(struct ds *out, const char *line, int columns)
{
    for (int i = 0; line[i] && (!columns || i < columns); i++) {
        ds_put_char(out, (unsigned char) line[i] < ' ' || line[i] == 0x7f
                    ? '?' : line[i]);
    }
}

void
top_frame(const struct top_sample *before, const struct top_sample *now,
          const struct top_screen *screen, struct ds *out)
{
    struct svec parts[N_PARTS] = {
        stage_lines(now),
        host_lines(before, now),
        port_lines(before, now),
    };
    struct svec lines = SVEC_EMPTY_INITIALIZER;
    size_t shares[N_PARTS], space;

    put_header(now, screen, &lines);
    space = lines.n + N_PARTS; /* An empty line before each part. */
    space = !screen->lines ? SIZE_MAX
            : (size_t) screen->lines > space ? screen->lines - space : 0;
    share_lines(parts, space, shares);
    for (int i = 0; i < N_PARTS; i++) {
        svec_add(&lines, "");
        for (size_t k = 0; k < shares[i]; k++) {
            svec_add(&lines, parts[i].names[k]);
        }
        svec_destroy(&parts[i]);
    }
    for (size_t i = 0; i < lines.n; i++) {
        if (!screen->lines || i < (size_t) screen->lines) {
            if (i) {
                ds_put_char(out, '\n');
            }
            put_line(out, lines.names[i], screen->columns);
        }
    }
    svec_destroy(&lines);
}
