/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/drivers/flow-table.h"
#include "controller/southbound/switches.h"
#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "openvswitch/ofp-actions.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static struct topology *
read_leaf_spine(void)
{
    struct topology *t;

    assert_null(topology_read("tests/topologies/good/leaf-spine.json", &t));
    return t;
}

static struct policy *
read_policy(void)
{
    struct policy *policy;

    assert_null(policy_from_string("p", "{\"name\": \"p\", \"order\": "
                                   "\"stage\"}", &policy));
    return policy;
}

/* Returns the number of flows of 'kind' in 'ft'. */
static size_t
count(const struct flow_table *ft, enum flow_kind kind)
{
    const struct of_flow *flow;
    size_t n = 0;

    HMAP_FOR_EACH (flow, node, &ft->flows) {
        n += (flow->cookie >> 20 & 0xf) == kind;
    }
    return n;
}

/* Returns the queue that the flow of 'dscp' selects, and the type of its next
 * action in '*next'. */
static uint32_t
queue_of(const struct flow_table *ft, uint8_t dscp, enum ofpact_type *next)
{
    const struct of_flow *flow
        = flow_table_find_cookie(ft, FLOW_COOKIE(FLOW_LEVEL, dscp));
    const struct ofpact *a;

    assert_non_null(flow);
    a = flow->ofpacts;
    assert_int_equal(a->type, OFPACT_SET_QUEUE);
    *next = ofpact_next(a)->type;
    return ofpact_get_SET_QUEUE(a)->queue_id;
}

UNIT_TEST(levels_select_queues_from_control_to_default)
{
    struct policy *policy = read_policy();
    struct flow_table *ft = switch_flows_alone(policy);
    enum ofpact_type next;

    assert_int_equal(flow_table_count(ft), policy->n_levels + 2);
    assert_int_equal(queue_of(ft, policy->control_dscp, &next), 0);
    for (int i = 0; i < policy->n_levels; i++) {
        assert_int_equal(queue_of(ft, policy->dscp[i], &next), 1 + i);
        assert_int_equal(next, OFPACT_OUTPUT);
    }
    assert_int_equal(queue_of(ft, policy->default_dscp, &next), 7);
    flow_table_destroy(ft);
    policy_destroy(policy);
}

UNIT_TEST(a_leaf_outputs_to_its_hosts_and_groups_its_uplinks)
{
    struct policy *policy = read_policy();
    struct topology *t = read_leaf_spine();
    struct routes *routes = routes_create(t);
    struct flow_table *ft = switch_flows(policy, t, routes, 0);
    enum ofpact_type next;

    queue_of(ft, policy->dscp[0], &next);
    assert_int_equal(next, OFPACT_GOTO_TABLE);
    assert_int_equal(count(ft, FLOW_NEXT), 1);
    assert_int_equal(count(ft, FLOW_ROUTE), 2 * t->n_hosts);
    assert_int_equal(hmap_count(&ft->groups), 1);
    for (size_t h = 0; h < t->n_hosts; h++) {
        const struct of_flow *flow
            = flow_table_find_cookie(ft, FLOW_COOKIE(FLOW_ROUTE, h));

        assert_int_equal(flow->ofpacts->type, t->hosts[h].at.sw
                         ? OFPACT_GROUP : OFPACT_OUTPUT);
    }
    flow_table_destroy(ft);

    /* With one uplink no group is needed, without any there is no route. */
    for (size_t i = 0; i < t->n_links; i++) {
        if (t->links[i].ends[0].sw != 0 && t->links[i].ends[1].sw != 0) {
            continue;
        }
        routes_set_up(routes, i, false);
        ft = switch_flows(policy, t, routes, 0);
        assert_int_equal(hmap_count(&ft->groups), 0);
        assert_int_equal(count(ft, FLOW_ROUTE),
                         routes_n_down(routes) == 1 ? 8 : 4);
        flow_table_destroy(ft);
    }
    routes_destroy(routes);
    topology_destroy(t);
    policy_destroy(policy);
}
