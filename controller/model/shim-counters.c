/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/shim-counters.h"

#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "util.h"

const struct shim_counter shim_counters_list[] = {
    { "tx_packets", "shim_sent_packets_total", "counter",
      "Packets sent to the network, since the shim began." },
    { "tx_bytes", "shim_sent_bytes_total", "counter",
      "Bytes of these." },
    { "rx_packets", "shim_received_packets_total", "counter",
      "Packets received from the network, since the shim began." },
    { "rx_bytes", "shim_received_bytes_total", "counter",
      "Bytes of these." },
    { "queue_dropped", "shim_queue_dropped_packets_total", "counter",
      "Packets for whose level there was no room." },
    { "port_dropped", "shim_port_dropped_packets_total", "counter",
      "Packets that a port refused." },
    { "lane_lost", "shim_lane_lost_packets_total", "counter",
      "Packets that a lane was too slow for." },
    { "policed", "shim_policed_packets_total", "counter",
      "Packets of control beyond its share, sent in their turn." },
    { "malformed", "shim_malformed_packets_total", "counter",
      "Packets that ended before their headers." },
    { "misses", "shim_missed_packets_total", "counter",
      "Packets of flows that were in no table." },
    { "flows", "shim_flows", "gauge", "Flows in the table." },
    { "flows_refused", "shim_flows_refused_total", "counter",
      "Flows for which the table had no room." },
    { "port_restarts", "shim_port_restarts_total", "counter",
      "Ports that no longer sent and were set up anew." },
    { "cc_flows", "shim_cc_flows", "gauge",
      "Flows that congestion control knows." },
    { "cc_windows", "shim_cc_windows_total", "counter",
      "Acknowledgements whose window congestion control lowered." },
    { "cc_grants", "shim_cc_grants_total", "counter",
      "Rates that shims granted to this one." },
    { "cc_marks", "shim_cc_marked_packets_total", "counter",
      "Packets that the network marked." },
};

BUILD_ASSERT_DECL(ARRAY_SIZE(shim_counters_list) == SHIM_COUNTERS_N);

/* Stores 'json', a count, in '*valuep'. */
static bool
get_count(const struct json *json, uint64_t *valuep)
{
    if (!json || json->type != JSON_INTEGER || json->integer < 0) {
        return false;
    }
    *valuep = json->integer;
    return true;
}

/* Stores 'json', one count a level, in 'values'. */
static bool
get_levels(const struct json *json, uint64_t values[])
{
    if (!json || json->type != JSON_ARRAY
        || json->array.n != SHIM_COUNTERS_LEVELS) {
        return false;
    }
    for (size_t i = 0; i < SHIM_COUNTERS_LEVELS; i++) {
        if (!get_count(json->array.elems[i], &values[i])) {
            return false;
        }
    }
    return true;
}

/* Members of other names are of a newer agent. */
char *
shim_counters_from_json(const struct json *json, struct shim_counters *sc)
{
    *sc = (struct shim_counters) { .known = false };
    if (!json) {
        return NULL;
    }
    for (size_t i = 0; i < SHIM_COUNTERS_N; i++) {
        const char *name = shim_counters_list[i].member;

        if (!get_count(shash_find_data(json_object(json), name),
                       &sc->values[i])) {
            return xasprintf("'shim': '%s' is not a count", name);
        }
    }
    if (!get_levels(shash_find_data(json_object(json), "level_bytes"),
                    sc->level_bytes)
        || !get_levels(shash_find_data(json_object(json), "level_dropped"),
                       sc->level_dropped)) {
        return xasprintf("'shim': 'level_bytes' and 'level_dropped' are not "
                         "%d counts", SHIM_COUNTERS_LEVELS);
    }
    sc->known = true;
    return NULL;
}
