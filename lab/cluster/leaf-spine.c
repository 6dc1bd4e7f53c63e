/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/leaf-spine.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lab/cluster/plan.h"
#include "util.h"

#define FIRST_UPLINK 101        /* Port number of a leaf's link to spine 0. */
#define BLIND_RATE "10000Gbit"

int
leaf_spine_n_switches(const struct plan *plan)
{
    return plan->leaf_spine.leaves + plan->leaf_spine.spines;
}

int
leaf_spine_n_links(const struct plan *plan)
{
    return plan->leaf_spine.leaves * plan->leaf_spine.spines;
}

char *
leaf_spine_switch_name(const struct plan *plan, int sw)
{
    int leaves = plan->leaf_spine.leaves;

    return (sw < leaves ? xasprintf("leaf%d", sw)
            : xasprintf("spine%d", sw - leaves));
}

static int
hosts_per_leaf(const struct plan *plan)
{
    return plan->n_hosts / plan->leaf_spine.leaves;
}

struct switch_port
leaf_spine_host_port(const struct plan *plan, int host)
{
    int n = hosts_per_leaf(plan);
    struct switch_port port = { .sw = host / n, .number = 1 + host % n };

    ovs_strlcpy(port.interface, plan->hosts[host].port, sizeof port.interface);
    return port;
}

struct switch_port
leaf_spine_link_port(const struct plan *plan, int link, int end)
{
    int leaf = link / plan->leaf_spine.spines;
    int spine = link % plan->leaf_spine.spines;
    struct switch_port port;

    if (!end) {
        port =
            (struct switch_port){ .sw = leaf, .number = FIRST_UPLINK + spine };
        snprintf(port.interface, sizeof port.interface, "l%ds%d", leaf, spine);
    } else {
        port = (struct switch_port){ .sw = plan->leaf_spine.leaves + spine,
                                     .number = 1 + leaf };
        snprintf(port.interface, sizeof port.interface, "s%dl%d", spine, leaf);
    }
    return port;
}

int64_t
leaf_spine_rate(const struct plan *plan)
{
    return (plan->rate_bps * hosts_per_leaf(plan)
            / (plan->leaf_spine.spines * plan->leaf_spine.over));
}

char *
leaf_spine_topology(const struct plan *plan)
{
    return xasprintf("%s/topology.json", plan->rundir);
}

static void
add_port(cJSON *object, const char *member, const struct plan *plan,
         const struct switch_port *port)
{
    cJSON *at = cJSON_CreateObject();
    char *name = leaf_spine_switch_name(plan, port->sw);

    cJSON_AddStringToObject(at, "switch", name);
    cJSON_AddNumberToObject(at, "port", port->number);
    free(name);
    if (member) {
        cJSON_AddItemToObject(object, member, at);
    } else {
        cJSON_AddItemToArray(object, at);
    }
}

static void
add_string(cJSON *object, const char *member, char *allocated)
{
    cJSON_AddStringToObject(object, member, allocated);
    free(allocated);
}

static char *
rate_to_string(int64_t bps)
{
    return xasprintf("%"PRId64"kbit", bps / 1000);
}

static void
add_switch(cJSON *switches, const struct plan *plan, int sw)
{
    char *name = leaf_spine_switch_name(plan, sw);
    cJSON *item = cJSON_CreateObject();

    cJSON_AddStringToObject(item, "name", name);
    add_string(item, "target",
               xasprintf("unix:%s/ovs/%s.mgmt", plan->rundir, name));
    add_string(item, "datapath", xasprintf("%016x", sw + 1));
    if (plan_has_controller_queues(plan)) {
        cJSON *queues = cJSON_AddObjectToObject(item, "queues");

        add_string(queues, "database",
                   xasprintf("unix:%s/ovs/db.sock", plan->rundir));
        cJSON_AddStringToObject(queues, "type", "linux-htb");
    }
    cJSON_AddItemToArray(switches, item);
    free(name);
}

static void
add_link(cJSON *links, const struct plan *plan, int link)
{
    cJSON *item = cJSON_CreateObject();
    cJSON *ends = cJSON_AddArrayToObject(item, "ends");

    for (int end = 0; end < 2; end++) {
        struct switch_port port = leaf_spine_link_port(plan, link, end);

        add_port(ends, NULL, plan, &port);
    }
    add_string(item, "capacity", plan->blind ? xstrdup(BLIND_RATE)
               : rate_to_string(leaf_spine_rate(plan)));
    cJSON_AddItemToArray(links, item);
}

static void
add_host(cJSON *hosts, const struct plan *plan, int host)
{
    struct switch_port port = leaf_spine_host_port(plan, host);
    cJSON *item = cJSON_CreateObject();

    cJSON_AddStringToObject(item, "name", plan->hosts[host].name);
    cJSON_AddStringToObject(item, "ip", plan->hosts[host].address);
    add_port(item, "at", plan, &port);
    add_string(item, "capacity", rate_to_string(plan->rate_bps));
    cJSON_AddItemToArray(hosts, item);
}

char *
leaf_spine_write_topology(const struct plan *plan)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *switches = cJSON_AddArrayToObject(top, "switches");
    cJSON *links = cJSON_AddArrayToObject(top, "links");
    cJSON *hosts = cJSON_AddArrayToObject(top, "hosts");
    char *file = leaf_spine_topology(plan);
    char *text, *error;

    for (int i = 0; i < leaf_spine_n_switches(plan); i++) {
        add_switch(switches, plan, i);
    }
    for (int i = 0; i < leaf_spine_n_links(plan); i++) {
        add_link(links, plan, i);
    }
    for (int i = 0; i < plan->n_hosts; i++) {
        add_host(hosts, plan, i);
    }
    text = must(cJSON_Print(top));
    cJSON_Delete(top);
    error = plan_write_text(file, text);
    free(text);
    free(file);
    return error;
}
