/* SPDX-License-Identifier: Apache-2.0 */

/* What can only be read, beside the control views. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/northbound/views/control.h"
#include "controller/hosts/hosts-db.h"
#include "controller/intent/intent-db.h"
#include "controller/northbound/views/metrics.h"
#include "controller/northbound/rest/rest-routes.h"
#include "controller/northbound/views/rollout.h"
#include "openvswitch/json.h"
#include "util.h"

/* The loop runs, or there would be no answer. */
struct rest_answer
rest_get_healthz(struct rest_request *r OVS_UNUSED)
{
    return rest_answer_text("text/plain", xstrdup("ok\n"));
}

struct rest_answer
rest_get_readyz(struct rest_request *r)
{
    const char *away = (!intent_db_is_connected(r->ctl->intent) ? "intent"
                        : !hosts_db_is_connected(r->ctl->hosts) ? "hosts"
                        : NULL);
    struct json *json;

    if (away) {
        return rest_answer_error(MHD_HTTP_SERVICE_UNAVAILABLE,
                                 "/readyz: the %s database is away, "
                                 "\"active\" with both databases is ready",
                                 away);
    } else if (!intent_db_is_active(r->ctl->intent)) {
        return rest_answer_error(MHD_HTTP_SERVICE_UNAVAILABLE,
                                 "/readyz: the controller is \"%s\", "
                                 "\"active\" with both databases is ready",
                                 intent_db_state(r->ctl->intent));
    }
    json = json_object_create();
    json_object_put(json, "ready", json_boolean_create(true));
    return rest_answer_json(json);
}

struct rest_answer
rest_get_metrics(struct rest_request *r)
{
    return rest_answer_text(METRICS_TYPE,
                            metrics_to_string(r->ctl, r->counts));
}

struct rest_answer
rest_get_explain(struct rest_request *r)
{
    char *path = xasprintf("%s/%s", r->args[0], r->args[1]);
    char *job = rest_path_quote(path);
    struct rest_answer answer;
    struct json *json;
    char *error;

    error = control_explain(r->ctl, job, &json);
    answer = (error ? rest_answer_error(MHD_HTTP_NOT_FOUND,
                                        "/v1/explain/%s", error)
              : rest_answer_json(json));
    free(error);
    free(job);
    free(path);
    return answer;
}

struct rest_answer
rest_get_history(struct rest_request *r)
{
    const char *since = r->query(r->query_aux, "since");
    struct rest_answer answer;
    struct json *json;
    char *error;

    error = control_history(r->ctl, r->args[0], since ? since : "0",
                            r->query(r->query_aux, "limit"), &json);
    if (!error) {
        return rest_answer_json(json);
    }
    answer = rest_answer_error(r->ctl->history ? MHD_HTTP_BAD_REQUEST
                               : MHD_HTTP_NOT_FOUND,
                               "/v1/history: %s", error);
    free(error);
    return answer;
}

struct rest_answer
rest_get_rollout(struct rest_request *r)
{
    return rest_answer_json(rollout_to_json(r->ctl));
}

struct rest_answer
rest_get_events(struct rest_request *r)
{
    if (strcmp(r->method, MHD_HTTP_METHOD_GET)) {
        return rest_answer_text("text/event-stream", xstrdup(""));
    }
    r->next = REST_STREAM;
    return (struct rest_answer) { .status = 0 };
}
