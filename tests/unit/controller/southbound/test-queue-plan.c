/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>

#include "controller/southbound/drivers/ovsdb-qos.h"
#include "controller/southbound/topology/topology.h"
#include "policies/policy.h"
#include "smap.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static struct topology *
fabric(void)
{
    struct topology *t;

    assert_null(topology_read("tests/topologies/good/leaf-spine.json", &t));
    return t;
}

static struct policy *
stage_policy(void)
{
    struct policy *policy;

    assert_null(policy_from_file("policies/stage.json", &policy));
    return policy;
}

static void
assert_config(struct smap *config, const char *key, const char *value)
{
    const char *is = smap_get(config, key);

    assert_non_null(is);
    assert_string_equal(is, value);
}

UNIT_TEST(each_port_of_a_switch_has_its_queues)
{
    struct topology *t = fabric();
    struct policy *policy = stage_policy();
    struct smap config = SMAP_INITIALIZER(&config);
    struct queue_plan *plan;

    /* Leaf 1: two links of 1 Gbit, two hosts of 100 Mbit. */
    assert_string_equal(t->switches[1].database, "unix:/run/ovs/db.sock");
    plan = queue_plan_create(policy, t, 1);
    assert_int_equal(plan->kind, QUEUES_HTB);
    assert_int_equal(plan->n_ports, 4);
    assert_int_equal(plan->ports[0].port, 10);
    assert_int_equal(plan->ports[0].rate_bps, 1000000000);
    assert_int_equal(plan->ports[3].port, 2);
    assert_int_equal(plan->ports[3].rate_bps, 100000000);
    assert_int_equal(queue_plan_n_queues(plan), policy->n_levels + 2);

    queue_plan_port_config(plan, &plan->ports[3], &config);
    assert_int_equal(smap_count(&config), 1);
    assert_config(&config, "max-rate", "100000000");
    smap_clear(&config);
    for (int i = 0; i < policy->n_levels + 2; i++) {
        char *number = xasprintf("%d", i <= policy->n_levels ? i : 7);

        queue_plan_queue_config(plan, &plan->ports[3], i, &config);
        assert_int_equal(smap_count(&config), 3);
        assert_config(&config, "priority", number);
        assert_config(&config, "max-rate", "100000000");
        assert_config(&config, "min-rate", "2000000");
        smap_clear(&config);
        free(number);
    }
    smap_destroy(&config);
    queue_plan_destroy(plan);
    policy_destroy(policy);
    topology_destroy(t);
}

/* The other kinds, and links so slow that the min share is below the minimum
 * of HTB. */
UNIT_TEST(the_kind_selects_the_configuration)
{
    struct topology *t = fabric();
    struct policy *policy = stage_policy();
    struct smap config = SMAP_INITIALIZER(&config);
    struct queue_plan *plan;

    t->switches[1].queues = QUEUES_POLICER;
    plan = queue_plan_create(policy, t, 1);
    assert_int_equal(queue_plan_n_queues(plan), 0);
    queue_plan_port_config(plan, &plan->ports[0], &config);
    assert_config(&config, "cir", "125000000");
    assert_config(&config, "cbs", "1250000");
    smap_clear(&config);
    queue_plan_port_config(plan, &plan->ports[3], &config);
    assert_config(&config, "cbs", "125000");
    smap_clear(&config);
    plan->ports[3].rate_bps = 8000;
    queue_plan_port_config(plan, &plan->ports[3], &config);
    assert_config(&config, "cir", "1000");
    assert_config(&config, "cbs", "20000");
    smap_clear(&config);

    plan->kind = QUEUES_HTB;
    queue_plan_queue_config(plan, &plan->ports[3], 0, &config);
    assert_config(&config, "min-rate", "8000");
    smap_clear(&config);
    plan->ports[3].rate_bps = 20000;
    queue_plan_queue_config(plan, &plan->ports[3], 0, &config);
    assert_config(&config, "min-rate", "12000");
    smap_clear(&config);

    plan->kind = QUEUES_NOOP;
    assert_int_equal(queue_plan_n_queues(plan), 0);
    queue_plan_port_config(plan, &plan->ports[0], &config);
    assert_true(smap_is_empty(&config));
    queue_plan_destroy(plan);

    t->switches[1].queues = QUEUES_NONE;
    plan = queue_plan_create(policy, t, 1);
    assert_int_equal(plan->n_ports, 0);
    queue_plan_destroy(plan);
    smap_destroy(&config);
    policy_destroy(policy);
    topology_destroy(t);
}

UNIT_TEST(plans_that_differ_are_not_equal)
{
    struct topology *t = fabric();
    struct policy *policy = stage_policy();
    struct queue_plan *a = queue_plan_create(policy, t, 1);
    struct queue_plan *b = queue_plan_create(policy, t, 1);

    assert_true(queue_plan_equal(a, b));
    b->ports[2].rate_bps++;
    assert_false(queue_plan_equal(a, b));
    b->ports[2].rate_bps--;
    b->min_share /= 2;
    assert_false(queue_plan_equal(a, b));
    b->min_share = a->min_share;
    b->kind = QUEUES_NOOP;
    assert_false(queue_plan_equal(a, b));
    queue_plan_destroy(a);
    queue_plan_destroy(b);
    policy_destroy(policy);
    topology_destroy(t);
}
