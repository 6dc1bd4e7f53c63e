/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/shim-counters.h"

#include <string.h>

#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "util.h"

const struct shim_counter shim_counters_list[] = {
    { "tx_packets", "shim_sent_packets_total", "counter",
      "Packets sent to the network since the shim started." },
    { "tx_bytes", "shim_sent_bytes_total", "counter",
      "Bytes sent to the network since the shim started." },
    { "rx_packets", "shim_received_packets_total", "counter",
      "Packets received from the network since the shim started." },
    { "rx_bytes", "shim_received_bytes_total", "counter",
      "Bytes received from the network since the shim started." },
    { "queue_dropped", "shim_queue_dropped_packets_total", "counter",
      "Packets dropped because the queue was full." },
    { "port_dropped", "shim_port_dropped_packets_total", "counter",
      "Packets that could not be sent by a port." },
    { "policed", "shim_policed_packets_total", "counter",
      "Control packets above their share, sent in the default class." },
    { "malformed", "shim_malformed_packets_total", "counter",
      "Packets with truncated headers." },
    { "port_restarts", "shim_port_restarts_total", "counter",
      "Restarts of ports that had stopped sending." },
    { "cc_flows", "shim_cc_flows", "gauge",
      "Flows tracked by congestion control." },
    { "cc_windows", "shim_cc_windows_total", "counter",
      "Acknowledgements whose window was lowered." },
    { "cc_grants", "shim_cc_grants_total", "counter",
      "Rate grants received from other shims." },
    { "cc_marks", "shim_cc_marked_packets_total", "counter",
      "Packets with an ECN mark of the network." },
    { "untagged", "shim_slot_tag_missing_packets_total", "counter",
      "Packets from the host without the tag of their job's slot." },
    { "cc_forged", "shim_forged_packets_total", "counter",
      "Packets of the host to the port of shims' messages, dropped." },
    { "cc_refused", "shim_refused_messages_total", "counter",
      "Messages of other shims with a wrong hash." },
    { "cc_repeated", "shim_repeated_messages_total", "counter",
      "Messages of other shims that were not new." },
    { "cc_disobeyed", "shim_disobeyed_total", "counter",
      "How often a host sent more than it was granted." },
};

BUILD_ASSERT_DECL(ARRAY_SIZE(shim_counters_list) == SHIM_COUNTERS_N);

uint64_t
shim_counters_get(const struct shim_counters *sc, const char *member)
{
    for (size_t i = 0; i < SHIM_COUNTERS_N; i++) {
        if (!strcmp(shim_counters_list[i].member, member)) {
            return sc->values[i];
        }
    }
    return 0;
}

static bool
get_count(const struct json *json, uint64_t *valuep)
{
    if (!json || json->type != JSON_INTEGER || json->integer < 0) {
        return false;
    }
    *valuep = json->integer;
    return true;
}

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

/* Ignores other members, which newer agents have. */
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
