/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/link-check.h"
#include "controller/southbound/routes.h"
#include "controller/southbound/switches-private.h"
#include "controller/southbound/topology.h"
#include "openvswitch/json.h"
#include "util.h"

static double
applied(const struct driver_status *status)
{
    return (status->n_wanted
            ? status->n_applied / (double) status->n_wanted : 1);
}

double
switches_applied(const struct switches *ss)
{
    size_t wanted = 0, there = 0;

    for (size_t i = 0; i < ss->n; i++) {
        struct driver_status status = sw_status(&ss->switches[i]);

        wanted += status.n_wanted;
        there += status.n_applied;
    }
    return wanted ? there / (double) wanted : 1;
}

static const char *
state_name(enum driver_state state)
{
    switch (state) {
    case DRIVER_AWAY:
        return "away";
    case DRIVER_REFUSED:
        return "refused";
    case DRIVER_WRITING:
        return "writing";
    case DRIVER_IN_SYNC:
        return "in sync";
    }
    OVS_NOT_REACHED();
}

static struct json *
switch_to_json(const struct sw *sw)
{
    struct json *json = sw->driver->class->to_json(sw->driver);
    struct driver_status status = sw_status(sw);

    json_object_put_string(json, "name", sw->name);
    json_object_put_string(json, "driver", sw->driver->class->name);
    json_object_put_string(json, "state", state_name(status.state));
    json_object_put(json, "applied", json_real_create(applied(&status)));
    return json;
}

static struct json *
path_to_json(const struct switches *ss, const struct route_path *path)
{
    const struct topology *t = ss->topology;
    struct json *json = json_object_create();
    struct json *by = json_array_create_empty();

    json_object_put_string(json, "from", t->hosts[path->demand.src].name);
    json_object_put_string(json, "to", t->hosts[path->demand.dst].name);
    json_object_put(json, "dscp", json_integer_create(path->demand.dscp));
    json_object_put(json, "bytes",
                    json_integer_create(path->demand.bits / 8));
    for (size_t i = 0; i < path->n_hops; i++) {
        const struct topology_link *link = &t->links[path->hops[i].link];
        int end = link->ends[0].sw == path->hops[i].out.sw;

        json_array_add(by, json_string_create(
                           t->switches[link->ends[end].sw].name));
    }
    json_object_put(json, "by", by);
    return json;
}

void
switches_alarms(const struct switches *ss, struct json *alarms)
{
    if (switches_look(ss)) {
        link_check_alarms(ss->links, alarms);
    }
}

size_t
switches_n_alarms(const struct switches *ss)
{
    struct json *alarms = json_array_create_empty();
    size_t n;

    switches_alarms(ss, alarms);
    n = alarms->array.n;
    json_destroy(alarms);
    return n;
}

/* Returns {"switches": [...], "applied"} and, with a topology, "paths",
 * "links_down" and, if links are looked at, "wiring". */
struct json *
switches_status(const struct switches *ss)
{
    struct json *status = json_object_create();
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < ss->n; i++) {
        json_array_add(array, switch_to_json(&ss->switches[i]));
    }
    json_object_put(status, "switches", array);
    json_object_put(status, "applied",
                    json_real_create(switches_applied(ss)));
    if (ss->topology) {
        struct json *paths = json_array_create_empty();
        size_t n;
        const struct route_path *p = routes_paths(ss->routes, &n);

        for (size_t i = 0; i < n; i++) {
            json_array_add(paths, path_to_json(ss, &p[i]));
        }
        json_object_put(status, "paths", paths);
        if (ss->links) {
            json_object_put(status, "wiring", link_check_to_json(ss->links));
        }
        json_object_put(status, "links_down", json_integer_create(
                            routes_n_down(ss->routes)));
    }
    return status;
}
