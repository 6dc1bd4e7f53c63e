/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes HTTP requests after the HTTP library: "METHOD PATH[?VALUE]", a
 * newline, and the body.  Replies must be well-formed, and changes must be
 * valid for the database. */

#include <config.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/model/cluster.h"
#include "controller/northbound/rest/peer.h"
#include "controller/northbound/rest/rest-routes.h"
#include "controller/northbound/views/metrics.h"
#include "openvswitch/json.h"
#include "tests/fuzz/must.h"
#include "util.h"

/* Returns the value of the only query parameter, for any name. */
static const char *
get_query(const void *value, const char *name OVS_UNUSED)
{
    return value;
}

/* Returns a controller that has a cojob with a running job. */
static struct controller *
get_controller(void)
{
    static struct controller ctl;

    if (!ctl.cluster) {
        struct cojob *cojob;

        ctl.cluster = cluster_create();
        cluster_intent_begin(ctl.cluster);
        cojob = cluster_put_cojob(ctl.cluster, "asha", 1, true);
        cojob_put_job(ctl.cluster, cojob, "t0", true, 1, 1000);
        cluster_intent_end(ctl.cluster);
    }
    return &ctl;
}

/* Returns true for views of modules that are not linked into this test. */
static bool
is_elsewhere(const struct rest_request *r)
{
    return ((!strcmp(r->method, "GET") || !strcmp(r->method, "HEAD"))
            && strncmp(r->path, "/v1/cojobs", 10)
            && strcmp(r->path, "/v1/jobs") && strcmp(r->path, "/v1"));
}

static void
check_reply(struct rest_reply *reply)
{
    char *text = json_to_string(reply->json, JSSF_SORT);
    struct json *json = json_from_string(text);

    must(json->type == JSON_OBJECT);
    if (reply->status != MHD_HTTP_OK) {
        const struct json *error = shash_find_data(json->object, "error");

        must(reply->status >= 400 && reply->status < 500);
        must(error && error->type == JSON_STRING);
        must(strstr(error->string, ": ") && !strchr(error->string, '\n'));
    }
    json_destroy(json);
    free(text);
    rest_reply_uninit(reply);
}

static void
check_change(struct rest_request *r)
{
    const struct intent_edit *edit = &r->edit;
    char *error = intent_edit_check(edit);

    must(!error);
    if (edit->kind == INTENT_COJOB_BEGIN) {
        must(edit->weight >= 0.001 && edit->weight <= 1000);
    } else if (edit->kind == INTENT_JOB_BEGIN) {
        for (size_t i = 0; i < edit->n; i++) {
            must(edit->workers[i].host && edit->workers[i].index >= 0);
        }
    } else if (edit->kind == INTENT_STAGE_BEGIN) {
        must(edit->n_rungs && (edit->n || edit->eta >= 2) && edit->rung >= 0);
    } else if (edit->kind == INTENT_JOB_END) {
        must(edit->outcome);
    }
    intent_edit_uninit(&r->edit);
}

static void
ask(char *head, const char *body, size_t body_size)
{
    char *path = strchr(head, ' ');
    static char somebody[] = "somebody";
    static const struct peer peer = { PEER_OPERATOR, somebody, 0 };
    struct rest_counts counts = { .refused = 0 };
    struct rest_request r = { .ctl = get_controller(),
                              .counts = &counts,
                              .method = head,
                              .peer = &peer,
                              .body = body,
                              .body_size = body_size,
                              .query = get_query };
    struct rest_reply reply;
    char *query;

    if (!path) {
        return;
    }
    *path++ = '\0';
    query = strchr(path, '?');
    if (query) {
        *query++ = '\0';
        r.n_query = 1;
    }
    r.path = path;
    r.query_aux = query;
    if (!is_elsewhere(&r)) {
        reply = rest_route(&r);
        if (reply.status) {
            check_reply(&reply);
        } else {
            check_change(&r);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    size_t head_size = line ? line - data : size;
    char *head = copy_text(data, head_size);
    size_t body_size = line ? size - head_size - 1 : 0;
    char *body = copy_text(line ? line + 1 : data, body_size);

    ask(head, body, body_size);
    free(head);
    free(body);
    return 0;
}
