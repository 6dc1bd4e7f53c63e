/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/rollout.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/control.h"
#include "controller/decide/decide.h"
#include "controller/hosts/hosts-db.h"
#include "controller/intent/intent-db.h"
#include "controller/southbound/switches.h"
#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

/* Appends the names of connected hosts that have not applied their order to
 * 'behind'.  Returns the number of connected hosts. */
static size_t
find_behind(const struct cluster *c, struct json *behind)
{
    const struct shash_node **nodes = shash_sort(&c->hosts);
    size_t n = 0;

    for (size_t i = 0; i < shash_count(&c->hosts); i++) {
        const struct host *host = nodes[i]->data;

        n += host->connected;
        if (host->connected && host->applied < host->wanted) {
            json_array_add(behind, json_string_create(host->name));
        }
    }
    free(nodes);
    return n;
}

struct json *
rollout_to_json(const struct cluster *c, bool settled, int64_t version,
                double switches)
{
    struct json *behind = json_array_create_empty();
    size_t n = find_behind(c, behind);
    size_t n_behind = behind->array.n;
    struct json *json = json_object_create();

    json_put_boolean(json, "done", settled && !n_behind && switches >= 1);
    json_put_integer(json, "version", version);
    json_put_integer(json, "hosts", n);
    json_put_integer(json, "hosts_applied", n - n_behind);
    json_put_real(json, "applied", n ? (n - n_behind) / (double) n : 1);
    json_put_real(json, "switches_applied", switches);
    json_object_put(json, "behind", behind);
    return json;
}

struct json *
rollout_report(const struct controller *ctl)
{
    bool settled = (intent_db_is_active(ctl->intent) && !ctl->policy_changed
                    && decide_is_settled(ctl->decide)
                    && hosts_db_is_settled(ctl->hosts));

    return rollout_to_json(ctl->cluster, settled,
                           hosts_db_version(ctl->hosts),
                           switches_applied(ctl->switches));
}

bool
rollout_stage_runs(const struct cluster *c, const char *cojob, int rung)
{
    const struct cojob *found = shash_find_data(&c->cojobs, cojob);
    const struct stage *stage;

    if (found) {
        LIST_FOR_EACH (stage, node, &found->stages) {
            if (stage->rung == rung && stage_is_running(stage)) {
                return true;
            }
        }
    }
    return false;
}
