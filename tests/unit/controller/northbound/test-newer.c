/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/status-report.h"
#include "tests/unit/unit-test.h"

#define GENERATION INT64_C(1790000000000)
#define HOUR INT64_C(3600000)

/* Hosts by what they have seen relative to the leader, and what it may raise
 * its generation above. */
static const struct {
    int64_t h0, h1;
    size_t n; /* Those that refuse. */
    int64_t raised;
} cases[] = {
    { 0, -GENERATION - 1, 0, 0 },
    { -HOUR, 0, 0, 0 },
    { 2 * HOUR, 0, 1, 2 * HOUR },
    { 2 * HOUR, 3 * HOUR, 2, 3 * HOUR },
    { 2 * HOUR, INT64_MAX - GENERATION, 2, 2 * HOUR },
    { 0, NEWER_MAX_RAISE + 1, 1, 0 },
    { 0, NEWER_MAX_RAISE, 1, NEWER_MAX_RAISE },
};

UNIT_TEST(only_a_bounded_claim_is_gone_above)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster *c = cluster_create();
        struct newer *newer;
        size_t n;

        cluster_get_host(c, "h0")->generation = GENERATION + cases[i].h0;
        cluster_get_host(c, "h1")->generation = GENERATION + cases[i].h1;
        free(newer_find(c, NULL, &n));
        assert_int_equal(n, 0); /* It does not lead. */
        c->generation = GENERATION;
        newer = newer_find(c, NULL, &n);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(newer_to_raise(newer, n, GENERATION) - GENERATION,
                         cases[i].raised);
        free(newer);
        cluster_destroy(c);
    }
}
