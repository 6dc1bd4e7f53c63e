/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/account.h"
#include "tests/unit/unit-test.h"

#define MEMORY_S 600

/* Sets the debts of the searches of one owner, which has been served 'ended'
 * times 'each', and of another one with one search. */
static void
find_debts(int ended, double each, struct account_search *s, size_t n)
{
    struct account accounts[2] = { { .total = 0 } };

    for (int i = 0; i < ended; i++) {
        account_add(&accounts[0], each, 100, MEMORY_S);
    }
    account_debts(accounts, 2, 100, MEMORY_S, s, n);
}

UNIT_TEST(a_second_search_owes_nothing)
{
    struct account_search s[] = { { 0, 100 }, { 1, 100 } };
    struct account_search beside[] = { { 0, 100 }, { 0, 70 }, { 1, 100 } };

    find_debts(1, 100, s, 2);
    assert_float_equal(s[0].debt, 0, 0);
    find_debts(0, 0, beside, 3);
    assert_float_equal(beside[0].debt, 0, 0);
    assert_float_equal(beside[1].debt, 0, 0);
}

UNIT_TEST(slices_owe_what_exceeds_two_of_them)
{
    struct account_search s[] = { { 0, 5 }, { 1, 100 } };
    struct account_search beside[] = {
        { 0, 5 }, { 0, 5 }, { 0, 5 }, { 0, 5 }, { 1, 100 }
    };

    find_debts(20, 5, s, 2);
    assert_float_equal(s[0].debt, 76.7125, 1e-9);
    assert_float_equal(s[1].debt, 0, 0);
    find_debts(0, 0, beside, 5);
    assert_float_equal(beside[0].debt, 8.075, 1e-9);
    assert_float_equal(beside[4].debt, 0, 0);
}

UNIT_TEST(what_all_owners_have_counts_for_none)
{
    struct account_search s[] = { { 0, 5 }, { 0, 5 }, { 0, 7 } };

    find_debts(20, 5, s, 3);
    for (int i = 0; i < 3; i++) {
        assert_float_equal(s[i].debt, 0, 0);
    }
}

UNIT_TEST(an_account_forgets_half_in_each_memory)
{
    struct account a = { .total = 0 };
    struct account_search s = { 0, 5, 7 };

    account_add(&a, 40, 0, MEMORY_S);
    account_add(&a, 5, MEMORY_S, MEMORY_S);
    assert_float_equal(a.total, 25, 1e-9);
    assert_float_equal(a.first, 20, 1e-9);
    assert_float_equal(a.second, 5, 1e-9);
    account_debts(&a, 1, MEMORY_S, 0, &s, 1);
    assert_float_equal(s.debt, 0, 0);
}
