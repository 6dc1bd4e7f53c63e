/* SPDX-License-Identifier: Apache-2.0 */

/* What an uplink leaves to a job. */

#include <config.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/links.h"
#include "util.h"

static const struct {
    const char *what;
    double before, beside;
    size_t n_beside;
    double left;
} cases[] = {
    { "alone", 0, 0, 0, 100 },
    { "after one who goes first", 30, 0, 0, 70 },
    { "after ones who take all: the floor", 100, 0, 0, 5 },
    { "the counters were late: the floor", 250, 0, 0, 5 },
    { "beside one who takes all: a half", 0, 100, 1, 50 },
    { "beside ones who leave more than their part", 0, 20, 3, 80 },
    { "after one and beside one", 40, 60, 1, 30 },
};

static void
an_uplink_leaves_what_others_do_not_take(void **state OVS_UNUSED)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double left = links_left(100, cases[i].before, 0.05, cases[i].beside,
                                 cases[i].n_beside);

        if (fabs(left - cases[i].left) > 1e-9) {
            fail_msg("%s: %g", cases[i].what, left);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_uplink_leaves_what_others_do_not_take),
    };

    return cmocka_run_group_tests_name("links", tests, NULL, NULL);
}
