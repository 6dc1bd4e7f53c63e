/* SPDX-License-Identifier: Apache-2.0 */

/* What the network monitor of peers makes of measurements and agents. */

#include <math.h>

#include <cjson/cJSON.h>

#include "tests/unit/unit-test.h"
#include "trainer/gossip/agent-links.h"
#include "trainer/gossip/net-monitor.h"

UNIT_TEST(a_link_that_changed_makes_a_policy_at_once)
{
    const bool present[SYNC_MAX_PEERS] = { true, true, true, true };
    struct netmax_policy policy;
    struct net_monitor monitor;

    net_monitor_init(&monitor, 4, 0, 1000);
    assert_false(net_monitor_due(&monitor, 999));
    assert_true(net_monitor_due(&monitor, 1000));
    for (int i = 0; i < 4; i++) {
        /* Noise. */
        const float times[4] = { 0.1f, 0.11f, 0.09f, 0.12f };

        net_monitor_report(&monitor, i, times, 0.02, 1000);
    }
    net_monitor_decide(&monitor, present, 1000, &policy);
    assert_false(net_monitor_due(&monitor, 1999));
    assert_true(policy.p[0][3] > 0.3 && policy.p[0][3] < 0.35);

    /* What 0 finds out of 3 counts for 3 as well. */
    net_monitor_report(&monitor, 0, (float[]) { 0, 0.1f, 0.1f, 5 }, 0.02,
                       1001);
    assert_true(net_monitor_due(&monitor, 1001));
    net_monitor_decide(&monitor, present, 1001, &policy);
    assert_true(policy.p[0][3] < 0.1 && policy.p[3][0] < 0.1);
    assert_true(policy.p[0][1] > 0.3 && policy.lambda2 < 1);
}

/* One direction counts for itself, and a change waits for its turn. */
UNIT_TEST(as_published_policies_have_a_fixed_interval)
{
    const bool present[SYNC_MAX_PEERS] = { true, true, true, true };
    struct netmax_policy policy;
    struct net_monitor monitor;

    net_monitor_init(&monitor, 4, 0, 1000);
    monitor.published = true;
    for (int i = 0; i < 4; i++) {
        net_monitor_report(&monitor, i,
                           (float[]) { 0.1f, 0.1f, 0.1f, 0.1f }, 0.02, 10);
    }
    net_monitor_report(&monitor, 0, (float[]) { NAN, NAN, NAN, 5 }, 0.02, 20);
    assert_false(net_monitor_due(&monitor, 999));
    assert_true(net_monitor_due(&monitor, 1000));
    net_monitor_decide(&monitor, present, 1000, &policy);
    assert_true(policy.p[0][3] < 0.1 && policy.lambda2 < 1);
    assert_true(policy.p[3][0] > policy.p[0][3]);
    assert_false(net_monitor_due(&monitor, 1999));
}

/* 'before' s of each link by agents, then what 'times' say. */
static struct net_monitor
foreseen(const float times[4])
{
    struct net_monitor monitor;

    net_monitor_init(&monitor, 4, 0, 1000);
    for (int i = 0; i < 4; i++) {
        net_monitor_estimate(&monitor, i,
                            (float[]) { 0.2f, 0.2f, 0.2f, 0.2f }, 0);
    }
    net_monitor_estimate(&monitor, 1, times, 10);
    return monitor;
}

UNIT_TEST(estimates_count_until_there_are_measurements)
{
    const bool present[SYNC_MAX_PEERS] = { true, true, true, true };
    const float times[4] = { 0.2f, NAN, 4, 0.2f };
    struct net_monitor monitor = foreseen(times);
    struct netmax_policy policy;

    /* The slower direction counts for both. */
    assert_true(fabs(net_monitor_link(&monitor, 2, 1, 20) - 4) < 1e-6);
    net_monitor_decide(&monitor, present, 20, &policy);
    assert_true(policy.p[1][2] < 0.1 && policy.p[2][1] < 0.1);
    assert_true(policy.p[0][1] > 0.2);

    net_monitor_report(&monitor, 2, (float[]) { NAN, 0.1f, NAN, NAN }, 0.02,
                       30);
    assert_true(fabs(net_monitor_link(&monitor, 1, 2, 40) - 0.1) < 1e-6);
    /* Of those that were looked at long ago the agents know more. */
    assert_true(net_monitor_link(&monitor, 1, 2, 60 * 1000000) > 3);
    /* And without an agent the last that is known is what there is. */
    for (int i = 1; i < 3; i++) {
        net_monitor_estimate(&monitor, i,
                             (float[]) { NAN, NAN, NAN, NAN }, 50);
    }
    assert_true(net_monitor_link(&monitor, 1, 2, 60 * 1000000) < 0.2);
}

UNIT_TEST(measurements_change_by_the_factor_of_estimates)
{
    struct net_monitor monitor
        = foreseen((float[]) { 0.2f, NAN, 0.2f, 0.2f });

    net_monitor_report(&monitor, 1, (float[]) { NAN, NAN, 0.1f, NAN }, 0.02,
                       1);
    net_monitor_estimate(&monitor, 1, (float[]) { NAN, NAN, 0.3f, NAN }, 2);
    assert_false(net_monitor_due(&monitor, 3));
    assert_true(net_monitor_link(&monitor, 1, 2, 3) < 0.11);
    /* It creeps, and is twice what it was in the end. */
    net_monitor_estimate(&monitor, 1, (float[]) { NAN, NAN, 0.5f, NAN }, 3);
    assert_true(net_monitor_due(&monitor, 4));
    assert_true(fabs(net_monitor_link(&monitor, 2, 1, 4) - 0.25) < 1e-6);
}

static double
bps_in(const char *reply, const char *address)
{
    cJSON *result = agent_links_parse(reply);
    double bps = agent_links_find(result, address);

    cJSON_Delete(result);
    return bps;
}

UNIT_TEST(replies_of_agents_are_parsed)
{
    static const char reply[] =
        "{\"id\": 0, \"error\": null, \"result\": \"{\\\"left_bps\\\": 1e8, "
        "\\\"links\\\": [{\\\"remote\\\": \\\"10.0.0.2\\\", \\\"bps\\\": "
        "5e7}, "
        "{\\\"remote\\\": \\\"10.0.0.3\\\", \\\"bps\\\": 5e9}, "
        "{\\\"remote\\\": \\\"10.0.0.4\\\", \\\"flows\\\": 1}]}\"}";
    static const char *const useless[] = {
        "{\"error\": \"what?\"}", "{\"result\": \"{\\\"links\\\": 5}\"}",
        "{\"result\": \"{\\\"left_bps\\\": -1}\"}", "no",
    };

    assert_true(bps_in(reply, "10.0.0.2") == 5e7);
    assert_true(bps_in(reply, "10.0.0.3") == 1e8);
    assert_true(bps_in(reply, "10.0.0.4") == 1e8);
    for (size_t i = 0; i < sizeof useless / sizeof useless[0]; i++) {
        assert_true(isnan(bps_in(useless[i], "10.0.0.2")));
    }
}
