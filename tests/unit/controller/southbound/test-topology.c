/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static char *
read_test(const char *name, struct topology **t)
{
    char *file = xasprintf("tests/topologies/%s.json", name);
    char *error = topology_read(file, t);

    free(file);
    return error;
}

static struct topology *
leaf_spine(void)
{
    struct topology *t;

    assert_null(read_test("good/leaf-spine", &t));
    return t;
}

UNIT_TEST(a_valid_file_is_read)
{
    struct topology *t = leaf_spine();

    assert_int_equal(t->n_switches, 4);
    assert_int_equal(t->switches[3].datapath, 0xff);
    assert_string_equal(t->switches[1].target, "tcp:192.0.2.1:6653");
    assert_string_equal(t->switches[1].identity, "leaf1");
    assert_string_equal(t->switches[2].identity, "spine 0 in the middle");
    assert_int_equal(t->n_links, 4);
    assert_int_equal(t->links[0].capacity, 1000000000);
    assert_int_equal(t->links[3].ends[0].sw, 1);
    assert_int_equal(t->links[3].ends[0].port, 11);
    assert_int_equal(t->n_hosts, 4);
    assert_int_equal(t->hosts[2].ip, 0x0a000003);
    assert_int_equal(t->hosts[2].at.sw, 1);
    topology_destroy(t);
    assert_null(read_test("good/one-switch", &t));
    topology_destroy(t);
}

/* Invalid files and the member at fault. */
UNIT_TEST(an_error_names_the_member)
{
    static const struct {
        const char *name, *error;
    } rows[] = {
        { "no-switches", "/switches: " },
        { "no-hosts", "/hosts: " },
        { "unknown-member", "/spines: " },
        { "datapath-short",
          "/switches/0/datapath: \"1\"; expected 16 digits" },
        { "datapath-newline",
          "/switches/0/datapath: \"000000000000001\\u000a\"; expected 16 digits" },
        { "datapath-zero", "/switches/0/datapath: " },
        { "datapath-twice.semantic",
          "/switches/3/datapath: \"spine0\" has it too; " },
        { "name-twice.semantic", "/switches/3/name: " },
        { "identity-empty",
          "/switches/0/identity: 0 characters; expected 1 to 64" },
        { "queues-type", "/switches/1/queues/type: \"linux-hfsc\" is not " },
        { "queues-database", "/switches/1/queues/database: \"run" },
        { "queues-member", "/switches/1/queues/bridge: unknown member" },
        { "target-relative",
          "/switches/0/target: \"unix:x\"; expected unix:/PATH" },
        { "switch-unknown.semantic",
          "/links/1/ends/0/switch: \"leaf9\"; expected a name of" },
        { "port-zero", "/hosts/0/at/port: " },
        { "port-huge", "/hosts/0/at/port: " },
        { "port-taken.semantic", "/hosts/0/at/port: 10 of \"leaf0\" is " },
        { "link-loop.semantic", "/links/0/ends: both are of one switch" },
        { "link-one-end", "/links/0/ends: " },
        { "ip-bad", "/hosts/0/ip: \"10.0.0.256\"; expected an IPv4" },
        { "ip-twice.semantic", "/hosts/1/ip: \"h0\" has it too" },
        { "host-twice.semantic", "/hosts/1/name: another host" },
        { "capacity-number", "/hosts/1/capacity: " },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char *name = xasprintf("bad/%s", rows[i].name);
        char *start = xasprintf("tests/topologies/%s.json: %s", name,
                                rows[i].error);
        struct topology *t;
        char *error = read_test(name, &t);

        assert_null(t);
        assert_non_null(error);
        if (strncmp(error, start, strlen(start))) {
            fail_msg("\"%s\" does not begin with \"%s\"", error, start);
        }
        free(error);
        free(start);
        free(name);
    }
}

UNIT_TEST(all_shortest_paths_are_used)
{
    struct topology *t = leaf_spine();
    struct routes *r = routes_create(t);
    struct route_next next;

    routes_next(r, 0, 1, &next);
    assert_int_equal(next.n, 2);
    assert_int_equal(next.hops[0].out.port, 10);
    assert_int_equal(next.hops[1].out.port, 11);
    routes_next(r, 2, 1, &next);
    assert_int_equal(next.n, 1);
    assert_int_equal(next.hops[0].out.port, 2);
    routes_next(r, 1, 1, &next);
    assert_int_equal(next.n, 0);

    /* Spine to spine is two hops by either leaf. */
    routes_next(r, 2, 3, &next);
    assert_int_equal(next.n, 2);
    routes_destroy(r);
    topology_destroy(t);
}

UNIT_TEST(links_that_are_down_are_avoided)
{
    struct topology *t = leaf_spine();
    struct routes *r = routes_create(t);
    struct route_next next;

    /* Without leaf 1 to spine 0, leaf 0 must not use spine 0 either. */
    routes_set_up(r, 2, false);
    routes_set_up(r, 2, false);
    assert_int_equal(routes_n_down(r), 1);
    routes_next(r, 0, 1, &next);
    assert_int_equal(next.n, 1);
    assert_int_equal(next.hops[0].out.port, 11);
    routes_set_up(r, 3, false);
    routes_next(r, 0, 1, &next);
    assert_int_equal(next.n, 0);
    routes_set_up(r, 2, true);
    routes_next(r, 0, 1, &next);
    assert_int_equal(next.n, 1);
    assert_int_equal(next.hops[0].out.port, 10);
    routes_destroy(r);
    topology_destroy(t);
}
