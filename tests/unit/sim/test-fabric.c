/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/fabric/fabric.h"
#include "tests/unit/unit-test.h"

static void
assert_path(const struct sim_fabric *f, int src, int dst, int n,
            const int *expected)
{
    int ports[SIM_FABRIC_MAX_PATH];

    assert_int_equal(sim_fabric_path(f, src, dst, ports), n);
    assert_memory_equal(ports, expected, n * sizeof *ports);
}

UNIT_TEST(a_big_switch_has_two_ports_a_path)
{
    struct sim_fabric *f = sim_fabric_create(3, 10);

    assert_int_equal(f->n_tiers, 1);
    assert_int_equal(f->n_ports, 6);
    assert_path(f, 0, 2, 2, (int []) { 0, 5 });
    assert_path(f, 1, 1, 2, (int []) { 2, 3 });
    sim_fabric_destroy(f);
}

/* Leaves of hosts 0 to 3, 4 to 7 and 8, at half the bandwidth. */
UNIT_TEST(leaves_are_oversubscribed)
{
    struct sim_fabric *f = sim_fabric_create_leaf_spine(9, 4, 10, 2);
    struct sim_fabric *half = sim_fabric_scale(f, 0.5);

    assert_int_equal(f->n_tiers, 2);
    assert_int_equal(f->n_ports, 2 * (9 + 3));
    assert_path(f, 0, 3, 2, (int []) { 0, 7 });
    assert_path(f, 1, 4, 4, (int []) { 2, 18, 21, 9 });
    assert_path(f, 8, 0, 4, (int []) { 16, 22, 19, 1 });
    assert_true(f->capacity[0] == 10);
    assert_true(f->capacity[18] == 20 && f->capacity[19] == 20);
    assert_true(f->capacity[22] == 5);
    assert_true(half->capacity[22] == 2.5);
    assert_path(half, 1, 4, 4, (int []) { 2, 18, 21, 9 });
    sim_fabric_destroy(f);
    sim_fabric_destroy(half);
}

/* Writes 'text' and reads it as a topology.  The caller frees the message,
 * from which the file's name is gone. */
static char *
read_csv(const char *text, double oversubscription, struct sim_fabric **fp)
{
    char name[] = "/tmp/test-fabric-XXXXXX";
    int fd = mkstemp(name);
    char *error;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    error = sim_fabric_from_csv(name, 10, oversubscription, fp);
    unlink(name);
    if (error) {
        assert_memory_equal(error, name, strlen(name));
        memmove(error, error + strlen(name),
                strlen(error + strlen(name)) + 1);
    }
    return error;
}

/* Hosts 0 and 4 share an access switch, 1 has the same name under another
 * aggregation switch, 2 another core, 3 another access switch.  Nodes above
 * hosts are sorted: access 5 to 8 (P1/S1, P1/S2, P2/S1 of D1, and D2's),
 * aggregation 9 to 11, cores 12 and 13. */
UNIT_TEST(a_topology_has_four_tiers)
{
    struct sim_fabric *f;

    assert_null(read_csv("ip,DSW,PSW,ASW\n"
                         "a,D1,P1,S1\n"
                         "b,D1,P2,S1\n"
                         "c,D2,P1,S1\r\n"
                         "d,D1,P1,S2\n"
                         "e,D1,P1,S1\n", 2, &f));
    assert_int_equal(f->n_hosts, 5);
    assert_int_equal(f->n_tiers, 4);
    assert_int_equal(f->n_ports, 2 * 14);
    assert_path(f, 0, 4, 2, (int []) { 0, 9 });
    assert_path(f, 0, 3, 4, (int []) { 0, 10, 13, 7 });
    assert_path(f, 0, 1, 6, (int []) { 0, 10, 18, 21, 15, 3 });
    assert_path(f, 2, 0, 8, (int []) { 4, 16, 22, 26, 25, 19, 11, 1 });
    assert_true(f->capacity[10] == 10);
    assert_true(f->capacity[18] == 7.5);
    assert_true(f->capacity[24] == 5);
    sim_fabric_destroy(f);
}

static const struct {
    const char *text;
    const char *error;
} mistakes[] = {
    { "", ":1: the file ends without a host" },
    { "ip,DSW,PSW,ASW\n", ":2: the file ends without a host" },
    { "a,D1,P1,S1\n", ":1: the first line is not \"ip,DSW,PSW,ASW\"" },
    { "ip,DSW,PSW,ASW\na,D1,P1\n",
      ":2: less fields than 4; expected \"ip,DSW,PSW,ASW\"" },
    { "ip,DSW,PSW,ASW\na,D1,P1,S1\na,b,c,d,e,f\n",
      ":3: more fields than 4; expected \"ip,DSW,PSW,ASW\"" },
    { "ip,DSW,PSW,ASW\na,,P1,S1\n", ":2: field 2 is empty; expected a name" },
};

UNIT_TEST(names_the_line_at_fault)
{
    struct sim_fabric *f;
    char *error;

    for (size_t i = 0; i < N_ELEMENTS(mistakes); i++) {
        assert_is(read_csv(mistakes[i].text, 1, &f), mistakes[i].error);
        assert_null(f);
    }
    error = sim_fabric_from_csv("/none.csv", 1, 1, &f);
    assert_is(error, "/none.csv: No such file or directory");
}
