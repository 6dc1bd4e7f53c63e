/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/announcement.h"
#include "tests/unit/unit-test.h"

/* Returns a search that does 90 iterations and 50 that it announces 'later',
 * and then 'last' that it has not announced. */
static struct announcement
search_of(double later, double last)
{
    struct announcement a;

    announcement_init(&a, later);
    announcement_next(&a, 50, 0);
    if (last > 0) {
        announcement_next(&a, last, 0);
    }
    return a;
}

UNIT_TEST(what_was_hidden_adds_up)
{
    struct announcement a = search_of(50, 0);

    assert_float_equal(a.hidden, 0, 0);
    a = search_of(20, 0);
    assert_float_equal(a.hidden, 30, 0);
    a = search_of(0, 30);
    assert_float_equal(a.hidden, 80, 0);
    assert_float_equal(a.after_first, 80, 0);
    a = search_of(80, 30);
    assert_float_equal(a.hidden, 30, 0);
    announcement_next(&a, 10, 20);
    assert_float_equal(a.hidden, 60, 0);
    assert_float_equal(a.later, 20, 0);
}

UNIT_TEST(a_search_owes_what_it_hid_by_the_candor_of_the_others)
{
    struct announcement liar = search_of(0, 0), half = search_of(25, 0);
    struct announcement honest = search_of(50, 0), first;
    struct candor candor = { .n = 0 };

    announcement_init(&first, 0);
    candor_add(&candor, &first);        /* Does not count. */
    candor_add(&candor, &liar);
    assert_float_equal(announcement_debt(&liar, &candor), 0, 0);
    candor_add(&candor, &honest);
    assert_float_equal(announcement_debt(&liar, &candor), 75, 1e-9);
    assert_float_equal(announcement_debt(&honest, &candor), 0, 0);
    assert_float_equal(announcement_debt(&first, &candor), 0, 0);
    candor_add(&candor, &half);
    assert_float_equal(announcement_debt(&liar, &candor), 56.25, 1e-9);
    assert_float_equal(announcement_debt(&half, &candor), 18.75, 1e-9);
    candor_remove(&candor, &honest);
    candor_remove(&candor, &half);
    assert_float_equal(announcement_debt(&liar, &candor), 0, 0);
}

UNIT_TEST(what_a_search_owes_is_a_rung)
{
    struct announced_rung rungs[2] = { { 10, 3 } };

    assert_int_equal(announced_rungs_add(rungs, 1, 1), 1);
    assert_int_equal(announced_rungs_add(rungs, 1, 75), 2);
    assert_float_equal(announced_iterations(rungs, 2), 105, 0);
}
