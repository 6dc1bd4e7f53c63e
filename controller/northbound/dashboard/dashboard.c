/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/dashboard/dashboard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stage-name.h"
#include "controller/northbound/views/control.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "reporting/ui-file.h"
#include "util.h"
#include "wire/json-get.h"

#define PAGE "/"                /* The template with the fragment in it. */
#define FRAGMENT "/ui/now.html" /* State and order only, for scripts. */
#define TEMPLATE "/ui/index.html"
#define MARK "<!-- now -->"     /* Position of the fragment in the template. */
#define MAX_ROWS_SHOWN 200      /* Stages; the rest is counted. */
#define MAX_JOBS_SHOWN 8        /* Jobs of a stage; the rest is counted. */

/* Headers of each reply: all resources come from this server, and no other
 * site may embed the page. */
static const struct {
    const char *name, *value;
} headers[] = {
    { MHD_HTTP_HEADER_CONTENT_SECURITY_POLICY,
      "default-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'; object-src 'none'" },
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "no-referrer" },
};

static const struct ui_file *
find_file(const char *path)
{
    for (size_t i = 0; i < n_dashboard_files; i++) {
        if (!strcmp(path, dashboard_files[i].path)) {
            return &dashboard_files[i];
        }
    }
    return NULL;
}

static bool
is_generated(const char *path)
{
    return !strcmp(path, PAGE) || !strcmp(path, FRAGMENT);
}

/* Returns true if 'path' is a page or a file of the dashboard. */
bool
dashboard_owns(const char *path)
{
    return is_generated(path) || (find_file(path) && strcmp(path, TEMPLATE));
}

/* Demand of the stages of the previous rows on one port. */
struct ahead {
    double seconds;
    size_t n;                   /* Stages. */
};

static void
put_escaped(struct ds *html, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': ds_put_cstr(html, "&amp;"); break;
        case '<': ds_put_cstr(html, "&lt;"); break;
        case '>': ds_put_cstr(html, "&gt;"); break;
        case '"': ds_put_cstr(html, "&quot;"); break;
        case '\'': ds_put_cstr(html, "&#39;"); break;
        default: ds_put_char(html, *text); break;
        }
    }
}

static const char *
get_string(const struct json *object, const char *name)
{
    const struct json *json = json_get(object, name, JSON_STRING);

    return json ? json_string(json) : "";
}

static bool
get_bool(const struct json *object, const char *name)
{
    return json_get(object, name, JSON_TRUE) != NULL;
}

static size_t
get_array(const struct json *object, const char *name,
          struct json *const **elems)
{
    const struct json *json = json_get(object, name, JSON_ARRAY);

    *elems = json ? json->array.elems : NULL;
    return json ? json->array.n : 0;
}

static bool
has_number(const struct json *object, const char *name)
{
    return (json_get(object, name, JSON_REAL)
            || json_get(object, name, JSON_INTEGER));
}

/* Writes a duration with at most three digits. */
static void
put_seconds(struct ds *html, double s)
{
    if (s < 9.95) {
        ds_put_format(html, "%.1f s", s);
    } else if (s < 99.5) {
        ds_put_format(html, "%.0f s", s);
    } else if (s < 5970) {
        ds_put_format(html, "%.0f min", s / 60);
    } else {
        ds_put_format(html, "%.1f h", s / 3600);
    }
}

static void OVS_PRINTF_FORMAT(3, 4)
put_tile(struct ds *html, const char *name, const char *format, ...)
{
    struct ds value = DS_EMPTY_INITIALIZER;
    va_list args;

    va_start(args, format);
    ds_put_format_valist(&value, format, args);
    va_end(args);
    ds_put_format(html, "<div><dt>%s</dt><dd>", name);
    put_escaped(html, ds_cstr(&value));
    ds_put_cstr(html, "</dd></div>\n");
    ds_destroy(&value);
}

/* Writes the number of hosts, of connected hosts, how far they lag behind the
 * order, and the mean coverage of those that have traffic. */
static void
put_host_tiles(struct ds *html, const struct json *hosts)
{
    size_t n, n_connected = 0, n_covered = 0;
    struct json *const *elems;
    double coverage = 0, lag = 0;

    n = get_array(hosts, "hosts", &elems);
    for (size_t i = 0; i < n; i++) {
        if (get_bool(elems[i], "connected")) {
            n_connected++;
            lag = MAX(lag, json_get_number(elems[i], "lag_s"));
            n_covered += has_number(elems[i], "coverage");
            coverage += json_get_number(elems[i], "coverage");
        }
    }
    put_tile(html, "Hosts connected", "%"PRIuSIZE" of %"PRIuSIZE,
             n_connected, n);
    put_tile(html, "Slowest host behind the order", "%.1f s", lag);
    if (n_covered) {
        put_tile(html, "Coverage", "%.1f %%", 100 * coverage / n_covered);
    } else {
        put_tile(html, "Coverage", "unknown");
    }
}

static void
put_gain_tile(struct ds *html, const struct json *status)
{
    const struct json *predicted = json_get(status, "predicted", JSON_OBJECT);
    double order = json_get_number(predicted, "order_mean_s");
    double plain = json_get_number(predicted, "plain_mean_s");

    if (order > 0 && plain > 0) {
        put_tile(html, "Predicted, against no Stagecoach", "%.0f %% %s",
                 100 * (order < plain ? 1 - order / plain : order / plain - 1),
                 order < plain ? "less" : "more");
    }
}

static void
put_bound_tile(struct ds *html, const struct json *status)
{
    double strict = json_get_number(status, "bound_strict_s");
    double gap = json_get_number(status, "gap");

    if (strict > 0) {
        put_tile(html, "Distance to the bound of these stages",
                 "%.2f (fluid form), %.2f (strict form)", gap,
                 json_get_number(status, "estimate_s") / strict);
    } else if (json_get_number(status, "bound_s") > 0) {
        put_tile(html, "Remaining transfers, without computing",
                 "at most %.1f %% above any order (bound: %s)",
                 100 * (gap - 1), get_string(status, "bound_kind"));
    }
}

static void
put_tiles(struct ds *html, const struct json *status, const struct json *hosts)
{
    ds_put_cstr(html, "<dl class=\"tiles\">\n");
    put_tile(html, "Controller", "%s%s", get_string(status, "state"),
             get_bool(status, "observe") ? ", only observes" : "");
    put_tile(html, "Policy", "%s", get_string(status, "policy"));
    put_tile(html, "Order version", "%.0f",
             json_get_number(status, "version"));
    put_tile(html, "Searches", "%.0f", json_get_number(status, "cojobs"));
    put_tile(html, "Jobs", "%.0f", json_get_number(status, "jobs"));
    put_host_tiles(html, hosts);
    put_bound_tile(html, status);
    put_gain_tile(html, status);
    ds_put_cstr(html, "</dl>\n");
}

static void
put_alarms(struct ds *html, const struct json *status)
{
    struct json *const *alarms;
    size_t n = get_array(status, "alarms", &alarms);

    if (n) {
        ds_put_cstr(html, "<ul class=\"alarms\">\n");
        for (size_t i = 0; i < n; i++) {
            ds_put_cstr(html, "<li>");
            put_escaped(html, get_string(alarms[i], "text"));
            ds_put_cstr(html, "</li>\n");
        }
        ds_put_cstr(html, "</ul>\n");
    }
}

/* Adds the demand of 'row' to 'aheads', by port name. */
static void
add_ahead(struct shash *aheads, const struct json *row)
{
    const struct json *demand = json_get(row, "demand", JSON_OBJECT);
    const struct shash_node *node;

    if (!demand) {
        return;
    }
    SHASH_FOR_EACH (node, json_object(demand)) {
        double seconds = json_get_number(demand, node->name);
        struct ahead *ahead = shash_find_data(aheads, node->name);

        if (seconds > 0) {
            if (!ahead) {
                ahead = xzalloc(sizeof *ahead);
                shash_add(aheads, node->name, ahead);
            }
            ahead->seconds += seconds;
            ahead->n++;
        }
    }
}

/* Writes why the stage of 'row' has its rank; 'aheads' has the demand of the
 * previous rows. */
static void
put_reason(struct ds *html, const struct json *row, const struct shash *aheads)
{
    const char *port = get_string(row, "bottleneck");
    const char *override = get_string(row, "override");
    const char *idle = get_string(row, "idle");
    double weight = json_get_number(row, "weight");
    const struct ahead *ahead;

    if (*override && strcmp(override, "none")) {
        ds_put_cstr(html, "override: ");
        put_escaped(html, override);
        ds_put_cstr(html, "; ");
    }
    if (!strcmp(idle, "no-process")) {
        ds_put_cstr(html, "no process of its jobs has joined; ");
    } else if (*idle) {
        ds_put_cstr(html, "neither bytes nor progress since it began; ");
    }
    if (!*port) {
        ds_put_cstr(html, "its traffic has not been measured yet");
        return;
    }
    ds_put_cstr(html, "needs ");
    put_escaped(html, port);
    ds_put_cstr(html, " most, for ");
    put_seconds(html, json_get_number(row, "remaining_s"));
    ahead = shash_find_data(aheads, port);
    if (ahead) {
        ds_put_format(html, "; %"PRIuSIZE" stage%s before it need%s ",
                      ahead->n, ahead->n == 1 ? "" : "s",
                      ahead->n == 1 ? "s" : "");
        put_seconds(html, ahead->seconds);
    } else {
        ds_put_cstr(html, "; no stage is before it there");
    }
    if (weight != 1) {
        ds_put_format(html, "; weight %g", weight);
    }
}

static void
put_jobs(struct ds *html, const struct json *row)
{
    struct json *const *elems;
    size_t n = get_array(row, "jobs", &elems);

    for (size_t i = 0; i < MIN(n, MAX_JOBS_SHOWN); i++) {
        if (elems[i]->type == JSON_STRING) {
            const char *slash = strchr(json_string(elems[i]), '/');

            ds_put_cstr(html, i ? ", " : "");
            put_escaped(html, slash ? slash + 1 : json_string(elems[i]));
        }
    }
    if (n > MAX_JOBS_SHOWN) {
        ds_put_format(html, " and %"PRIuSIZE" more", n - MAX_JOBS_SHOWN);
    }
}

static void
put_row(struct ds *html, const struct json *row, const struct shash *aheads)
{
    char *stage = xasprintf(STAGE_NAME_FMT, get_string(row, "cojob"),
                            (int) json_get_number(row, "rung"));

    ds_put_format(html, "<tr><td data-label=\"Rank\">%.0f</td>"
                  "<th scope=\"row\">", json_get_number(row, "rank"));
    put_escaped(html, stage);
    free(stage);
    ds_put_format(html, "</th><td data-label=\"Level\">%.0f</td>"
                  "<td data-label=\"Ends in\">",
                  json_get_number(row, "level"));
    if (has_number(row, "completion_s")) {
        put_seconds(html, json_get_number(row, "completion_s"));
    } else {
        ds_put_cstr(html, "unknown");
    }
    ds_put_cstr(html, "</td><td data-label=\"Running for\">");
    put_seconds(html, json_get_number(row, "age_s"));
    ds_put_cstr(html, "</td><td data-label=\"Jobs\">");
    put_jobs(html, row);
    ds_put_cstr(html, "</td><td data-label=\"Reason\">");
    put_reason(html, row, aheads);
    ds_put_cstr(html, "</td></tr>\n");
}

static void
put_rows(struct ds *html, struct json *const *rows, size_t n)
{
    struct shash aheads = SHASH_INITIALIZER(&aheads);

    for (size_t i = 0; i < MIN(n, MAX_ROWS_SHOWN); i++) {
        if (rows[i]->type == JSON_OBJECT) {
            put_row(html, rows[i], &aheads);
            add_ahead(&aheads, rows[i]);
        }
    }
    shash_destroy_free_data(&aheads);
    if (!n) {
        ds_put_cstr(html, "<tr><td colspan=\"7\">No stage is running.</td>"
                    "</tr>\n");
    } else if (n > MAX_ROWS_SHOWN) {
        ds_put_format(html, "<tr><td colspan=\"7\">And %"PRIuSIZE" more."
                      "</td></tr>\n", n - MAX_ROWS_SHOWN);
    }
}

static void
put_order(struct ds *html, const struct json *order)
{
    struct json *const *rows;
    size_t n = get_array(order, "order", &rows);

    ds_put_cstr(html, "<table class=\"order\"><caption>Order of the running "
                "stages</caption>\n<thead><tr><th scope=\"col\">Rank</th>"
                "<th scope=\"col\">Stage</th><th scope=\"col\">Level</th>"
                "<th scope=\"col\">Ends in</th><th scope=\"col\">Running for"
                "</th><th scope=\"col\">Jobs</th><th scope=\"col\">Reason"
                "</th></tr></thead>\n<tbody>\n");
    put_rows(html, rows, n);
    ds_put_cstr(html, "</tbody></table>\n");
}

void
dashboard_put_state(struct ds *html, const struct json *status,
                    const struct json *order, const struct json *hosts)
{
    char name[128] = "an unknown machine";

    ds_put_cstr(html, "<p class=\"note\">Stagecoach " STAGECOACH_VERSION
                      ": stagecoach-controller on ");
    gethostname(name, sizeof name - 1);
    put_escaped(html, name);
    ds_put_cstr(html, "</p>\n");
    put_alarms(html, status);
    put_tiles(html, status, hosts);
    put_order(html, order);
}

static void
put_fragment(const struct controller *ctl, struct ds *html)
{
    struct json *status = control_build_view(control_find_view("status"), ctl);
    struct json *order = control_build_view(control_find_view("order"), ctl);
    struct json *hosts = control_build_view(control_find_view("hosts"), ctl);

    dashboard_put_state(html, status, order, hosts);
    json_destroy(status);
    json_destroy(order);
    json_destroy(hosts);
}

static void
put_page(const struct controller *ctl, struct ds *html)
{
    const struct ui_file *template = find_file(TEMPLATE);
    const unsigned char *mark = memmem(template->bytes, template->n, MARK,
                                       strlen(MARK));
    size_t before = mark - template->bytes;

    ovs_assert(mark);
    ds_put_buffer(html, (const char *) template->bytes, before);
    put_fragment(ctl, html);
    ds_put_buffer(html, (const char *) mark + strlen(MARK),
                  template->n - before - strlen(MARK));
}

/* Sends 'response', which may be null, and destroys it.  'tag' is null for a
 * page that is generated for each request. */
static enum MHD_Result
send_response(struct MHD_Connection *mc, unsigned int status,
              struct MHD_Response *response, const char *type, const char *tag)
{
    enum MHD_Result result = MHD_NO;
    bool ok = (response
               && MHD_add_response_header(
                   response, MHD_HTTP_HEADER_CONTENT_TYPE, type)
               && MHD_add_response_header(
                   response, MHD_HTTP_HEADER_CACHE_CONTROL,
                   tag ? "no-cache" : "no-store")
               && (!tag || MHD_add_response_header(
                       response, MHD_HTTP_HEADER_ETAG, tag)));

    for (size_t i = 0; ok && i < ARRAY_SIZE(headers); i++) {
        ok = MHD_add_response_header(response, headers[i].name,
                                     headers[i].value);
    }
    if (ok) {
        result = MHD_queue_response(mc, status, response);
    }
    if (response) {
        MHD_destroy_response(response);
    }
    return result;
}

/* Sends 'file', or status 304 if the client's copy is current.  A browser
 * revalidates its copy each time, so that it gets a new version at once. */
static enum MHD_Result
send_file(struct MHD_Connection *mc, const struct ui_file *file)
{
    const char *known = MHD_lookup_connection_value(
        mc, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool same = known && !strcmp(known, file->tag);

    return send_response(
        mc, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK,
        MHD_create_response_from_buffer(
            same ? 0 : file->n, CONST_CAST(unsigned char *, file->bytes),
            MHD_RESPMEM_PERSISTENT), file->type, file->tag);
}

/* Replies to a request for 'path', for which dashboard_owns() is true. */
enum MHD_Result
dashboard_reply(const struct controller *ctl, struct MHD_Connection *mc,
                const char *path)
{
    struct ds html = DS_EMPTY_INITIALIZER;
    size_t n;

    if (!is_generated(path)) {
        return send_file(mc, find_file(path));
    }
    (strcmp(path, PAGE) ? put_fragment : put_page)(ctl, &html);
    n = html.length;
    return send_response(mc, MHD_HTTP_OK,
                         MHD_create_response_from_buffer(
                             n, ds_steal_cstr(&html), MHD_RESPMEM_MUST_FREE),
                         "text/html; charset=utf-8", NULL);
}
