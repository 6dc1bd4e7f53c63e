/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/dashboard/dashboard.h"

#include <string.h>

#include "controller/northbound/views/control.h"
#include "reporting/ui-file.h"
#include "controller/northbound/dashboard/order-page.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "util.h"

#define PAGE "/"                /* The template with the fragment in it. */
#define FRAGMENT "/ui/now.html" /* State and order only, for scripts. */
#define TEMPLATE "/ui/index.html"
#define MARK "<!-- now -->"     /* Position of the fragment in the template. */

/* Headers of each answer: all resources come from this server, and no other
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

static void
put_fragment(const struct controller *ctl, struct ds *html)
{
    struct json *status = control_find_view("status")->build(ctl);
    struct json *order = control_find_view("order")->build(ctl);
    struct json *hosts = control_find_view("hosts")->build(ctl);

    order_page_put(html, status, order, hosts);
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

static struct MHD_Response *
make_page(const struct controller *ctl, const char *path)
{
    struct ds html = DS_EMPTY_INITIALIZER;
    size_t n;
    char *text;

    (strcmp(path, PAGE) ? put_fragment : put_page)(ctl, &html);
    n = html.length;
    text = ds_steal_cstr(&html);
    return MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
}

static bool
add_headers(struct MHD_Response *response, const char *type)
{
    if (!MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                 type)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        if (!MHD_add_response_header(response, headers[i].name,
                                     headers[i].value)) {
            return false;
        }
    }
    return true;
}

/* Sends 'file', or status 304 if the client's copy is current.  A browser
 * revalidates its copy each time, so that it gets a new version at once. */
static enum MHD_Result
send_file(struct MHD_Connection *mc, const struct ui_file *file)
{
    const char *known = MHD_lookup_connection_value(
        mc, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool same = known && !strcmp(known, file->tag);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        same ? 0 : file->n, CONST_CAST(unsigned char *, file->bytes),
        MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_NO;

    if (response && add_headers(response, file->type)
        && MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, file->tag)
        && MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                   "no-cache")) {
        result = MHD_queue_response(
            mc, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
    }
    if (response) {
        MHD_destroy_response(response);
    }
    return result;
}

static enum MHD_Result
send_page(const struct controller *ctl, struct MHD_Connection *mc,
          const char *path)
{
    struct MHD_Response *response = make_page(ctl, path);
    enum MHD_Result result = MHD_NO;

    if (response && add_headers(response, "text/html; charset=utf-8")
        && MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                   "no-store")) {
        result = MHD_queue_response(mc, MHD_HTTP_OK, response);
    }
    if (response) {
        MHD_destroy_response(response);
    }
    return result;
}

/* Replies to a request for 'path', for which dashboard_owns() is true. */
enum MHD_Result
dashboard_answer(const struct controller *ctl, struct MHD_Connection *mc,
                 const char *path)
{
    return (is_generated(path) ? send_page(ctl, mc, path)
            : send_file(mc, find_file(path)));
}
