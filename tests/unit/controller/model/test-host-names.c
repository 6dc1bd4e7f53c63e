/* SPDX-License-Identifier: Apache-2.0 */

/* Names of hosts without a domain in topologies and searches. */

#include <config.h>

#include "controller/model/cluster.h"
#include "controller/model/fabric.h"
#include "controller/model/host-names.h"
#include "tests/unit/unit-test.h"

UNIT_TEST(a_first_label_means_the_one_host)
{
    struct cluster *c = cluster_create();
    struct fabric *f = fabric_create(1);
    struct host *a, *b;

    fabric_add_host(f, "h7", 7, 0);
    cluster_set_fabric(c, f);
    assert_string_equal(cluster_host_named(c, "h7"), "h7");

    a = cluster_get_host(c, "h7.a.example");
    assert_string_equal(cluster_host_named(c, "h7"), "h7.a.example");
    assert_string_equal(cluster_host_named(c, "h7.a"), "h7.a");
    assert_string_equal(cluster_host_named(c, "h"), "h");
    assert_int_equal(a->leaf, 0);
    assert_false(cluster_is_ambiguous(c, "h7"));

    b = cluster_get_host(c, "h7.b.example");
    assert_string_equal(cluster_host_named(c, "h7"), "h7");
    assert_int_equal(a->leaf, -1);
    assert_int_equal(b->leaf, -1);
    assert_true(cluster_is_ambiguous(c, "h7"));
    cluster_destroy(c);
}

UNIT_TEST(an_agent_of_that_name_is_meant_first)
{
    struct cluster *c = cluster_create();
    struct host *h7 = cluster_get_host(c, "h7");

    h7->named = true;
    cluster_get_host(c, "h7.a.example");
    assert_int_equal(c->n_renamed, 1);
    assert_string_equal(cluster_host_named(c, "h7"), "h7.a.example");
    h7->reported_at = 1;
    assert_string_equal(cluster_host_named(c, "h7"), "h7");
    cluster_get_host(c, "h7.b.example");
    assert_false(cluster_is_ambiguous(c, "h7"));
    cluster_destroy(c);
}
