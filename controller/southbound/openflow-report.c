/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/openflow-private.h"

#include <inttypes.h>

#include "controller/southbound/dial.h"
#include "controller/southbound/flow-table.h"
#include "openvswitch/json.h"
#include "openvswitch/ofp-actions.h"

void
openflow_get_status(const struct driver *driver, struct driver_status *status)
{
    const struct openflow *of = openflow_cast(driver);

    *status = (struct driver_status) {
        .state = (of->state == ST_REFUSED ? DRIVER_REFUSED
                  : of->state < ST_IDLE ? DRIVER_AWAY
                  : of->in_sync ? DRIVER_IN_SYNC : DRIVER_WRITING),
        .datapath = of->datapath,
        .n_wanted = flow_table_count(of->wanted),
        .n_applied = of->n_applied,
        .links = of->links,
    };
}

/* Shows what a level has: {"dscp", "queue", "packets", "bytes"}. */
static struct json *
level_to_json(const struct of_flow *flow, const struct of_flow *there)
{
    struct json *json = json_object_create();
    const struct ofpact *a;

    json_object_put(json, "dscp", json_integer_create(flow->cookie & 63));
    OFPACT_FOR_EACH (a, flow->ofpacts, flow->ofpacts_len) {
        if (a->type == OFPACT_SET_QUEUE) {
            json_object_put(json, "queue", json_integer_create(
                                ofpact_get_SET_QUEUE(a)->queue_id));
        }
    }
    json_object_put(json, "packets",
                    json_integer_create(there ? there->packets : 0));
    json_object_put(json, "bytes",
                    json_integer_create(there ? there->bytes : 0));
    return json;
}

struct json *
openflow_to_json(const struct driver *driver)
{
    const struct openflow *of = openflow_cast(driver);
    struct json *json = json_object_create();
    struct json *flows = json_array_create_empty();

    for (int dscp = 0; dscp < 64; dscp++) {
        const struct of_flow *flow
            = flow_table_find_cookie(of->wanted,
                                     FLOW_COOKIE(FLOW_LEVEL, dscp));

        if (flow) {
            json_array_add(flows, level_to_json(
                               flow, flow_table_find(of->there, flow)));
        }
    }
    json_object_put_string(json, "switch", of->target);
    json_object_put_format(json, "datapath", "%016"PRIx64, of->datapath);
    if (dial_peer(of->dial)) {
        json_object_put_string(json, "certificate", dial_peer(of->dial));
    }
    json_object_put_string(json, "reason", of->state == ST_REFUSED
                           ? of->reason : "");
    json_object_put(json, "flows", flows);
    return json;
}
