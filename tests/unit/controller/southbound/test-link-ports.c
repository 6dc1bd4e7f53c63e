/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <string.h>

#include "controller/model/fabric.h"
#include "controller/southbound/topology/link-ports.h"
#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* A link between two switches, or a host at switch 'a'. */
struct part {
    const char *a, *b;
    const char *capacity;
};

static void
put_end(struct ds *ds, const char *sw, unsigned int *port)
{
    ds_put_format(ds, "{\"switch\": \"%s\", \"port\": %u}", sw, ++*port);
}

/* Returns a topology of 'switches', names of one letter each, 'links', and a
 * host at each switch of 'leaves'. */
static struct topology *
make_topology(const char *switches, const struct part *links, size_t n_links,
              const char *leaves)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    unsigned int port = 0;
    struct topology *t;

    ds_put_cstr(&ds, "{\"switches\": [");
    for (size_t i = 0; i < strlen(switches); i++) {
        ds_put_format(&ds, "%s{\"name\": \"%c\", \"target\": \"unix:/%c\", "
                      "\"datapath\": \"%016"PRIxSIZE"\"}", i ? ", " : "",
                      switches[i], switches[i], i + 1);
    }
    ds_put_cstr(&ds, "], \"links\": [");
    for (size_t i = 0; i < n_links; i++) {
        ds_put_format(&ds, "%s{\"capacity\": \"%s\", \"ends\": [",
                      i ? ", " : "", links[i].capacity);
        put_end(&ds, links[i].a, &port);
        ds_put_cstr(&ds, ", ");
        put_end(&ds, links[i].b, &port);
        ds_put_cstr(&ds, "]}");
    }
    ds_put_cstr(&ds, "], \"hosts\": [");
    for (size_t i = 0; i < strlen(leaves); i++) {
        ds_put_format(&ds, "%s{\"name\": \"h%c\", \"ip\": \"10.0.0.%"PRIuSIZE
                      "\", \"capacity\": \"1Gbit\", \"at\": ", i ? ", " : "",
                      leaves[i], i + 1);
        put_end(&ds, (char[]) { leaves[i], '\0' }, &port);
        ds_put_char(&ds, '}');
    }
    ds_put_cstr(&ds, "]}");
    assert_null(topology_parse("t", ds_cstr(&ds), &t));
    ds_destroy(&ds);
    return t;
}

/* Returns the ports and the seconds for a Gbit that traffic from host 'src' to
 * 'dst' uses, such as "a>s+t:0.5 s+t>b:0.5"; the caller frees. */
static char *
describe(const struct fabric *f, const char *src, const char *dst)
{
    const struct fabric_pair *pair = fabric_get_pair(
        f, fabric_find_host(f, src), fabric_find_host(f, dst));
    struct ds ds = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < pair->n; i++) {
        ds_put_format(&ds, "%s%s:%g", i ? " " : "",
                      f->ports[pair->crossings[i].port],
                      pair->crossings[i].seconds_per_bit * 1e9);
    }
    return ds_steal_cstr(&ds);
}

static void
assert_uses(const struct fabric *f, const char *src, const char *dst,
            const char *expected)
{
    assert_is(describe(f, src, dst), expected);
}

/* Three leaves a, b, c under two spines s, t. */
static const struct part leaf_spine[] = {
    { "a", "s", "1Gbit" }, { "a", "t", "1Gbit" }, { "b", "s", "1Gbit" },
    { "b", "t", "1Gbit" }, { "c", "s", "1Gbit" }, { "c", "t", "1Gbit" },
};

UNIT_TEST(the_uplinks_of_a_leaf_are_one_port)
{
    struct topology *t = make_topology("abcst", leaf_spine, 6, "abc");
    struct routes *r = routes_create(t);
    struct fabric *f = link_ports_create(t, r);

    assert_int_equal(f->n_ports, 6);
    assert_uses(f, "ha", "ha", "");
    assert_uses(f, "ha", "hb", "a>s+t:0.5 s+t>b:0.5");
    assert_uses(f, "hc", "ha", "c>s+t:0.5 s+t>a:0.5");
    assert_int_equal(fabric_find_host(f, "hx"), -1);
    fabric_destroy(f);
    routes_destroy(r);
    topology_destroy(t);
}

UNIT_TEST(traffic_avoids_links_that_are_down)
{
    struct topology *t = make_topology("abcst", leaf_spine, 6, "abc");
    struct routes *r = routes_create(t);
    struct fabric *f;

    /* Without a to s, what is for a passes t only; the rest uses both. */
    routes_set_up(r, 0, false);
    f = link_ports_create(t, r);
    assert_uses(f, "ha", "hb", "a>t:1 t>b:1");
    assert_uses(f, "hb", "ha", "b>t:1 t>a:1");
    assert_uses(f, "hb", "hc", "b>s:0.5 b>t:0.5 s>c:0.5 t>c:0.5");
    fabric_destroy(f);

    /* Without a to t, no path leads to a. */
    routes_set_up(r, 1, false);
    f = link_ports_create(t, r);
    assert_uses(f, "ha", "hb", "");
    assert_uses(f, "hb", "hc", "b>s+t:0.5 s+t>c:0.5");
    fabric_destroy(f);
    routes_destroy(r);
    topology_destroy(t);
}

/* A switch divides its traffic evenly, whatever the links can carry. */
UNIT_TEST(links_of_different_capacity_are_different_ports)
{
    static const struct part links[] = {
        { "a", "b", "1Gbit" }, { "a", "b", "1Gbit" }, { "a", "b", "500Mbit" },
    };
    struct topology *t = make_topology("ab", links, 3, "ab");
    struct routes *r = routes_create(t);
    struct fabric *f = link_ports_create(t, r);

    assert_int_equal(f->n_ports, 4);
    assert_uses(f, "ha", "hb", "a>b:0.333333 a>b:0.666667");
    fabric_destroy(f);
    routes_destroy(r);
    topology_destroy(t);
}

/* Two pods of two leaves and two aggregation switches, each of these under two
 * cores: the links between tiers are the ports. */
UNIT_TEST(the_uplinks_of_a_pod_are_one_port)
{
    static const struct part links[] = {
        { "a", "e", "1Gbit" }, { "a", "f", "1Gbit" }, { "b", "e", "1Gbit" },
        { "b", "f", "1Gbit" }, { "c", "g", "1Gbit" }, { "c", "h", "1Gbit" },
        { "d", "g", "1Gbit" }, { "d", "h", "1Gbit" }, { "e", "s", "1Gbit" },
        { "e", "t", "1Gbit" }, { "f", "s", "1Gbit" }, { "f", "t", "1Gbit" },
        { "g", "s", "1Gbit" }, { "g", "t", "1Gbit" }, { "h", "s", "1Gbit" },
        { "h", "t", "1Gbit" },
    };
    struct topology *t = make_topology("abcdefghst", links, 16, "abcd");
    struct routes *r = routes_create(t);
    struct fabric *f = link_ports_create(t, r);

    assert_int_equal(f->n_ports, 12);
    assert_uses(f, "ha", "hb", "a>e+f:0.5 e+f>b:0.5");
    assert_uses(f, "ha", "hd",
                "a>e+f:0.5 e+f>s+t:0.25 s+t>g+h:0.25 g+h>d:0.5");
    fabric_destroy(f);
    routes_destroy(r);
    topology_destroy(t);
}

UNIT_TEST(a_name_lists_two_switches)
{
    static const struct part links[] = {
        { "a", "s", "1Gbit" }, { "a", "t", "1Gbit" }, { "a", "u", "1Gbit" },
        { "a", "v", "1Gbit" }, { "b", "s", "1Gbit" }, { "b", "t", "1Gbit" },
        { "b", "u", "1Gbit" }, { "b", "v", "1Gbit" },
    };
    struct topology *t = make_topology("abstuv", links, 8, "ab");
    struct routes *r = routes_create(t);
    struct fabric *f = link_ports_create(t, r);

    assert_uses(f, "ha", "hb", "a>s+t+2:0.25 s+t+2>b:0.25");
    fabric_destroy(f);
    routes_destroy(r);
    topology_destroy(t);
}
