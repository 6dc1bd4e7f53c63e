/* SPDX-License-Identifier: Apache-2.0 */

#ifndef UNIT_TEST_H
#define UNIT_TEST_H 1

/* What every unit test begins with: cmocka, with the headers that it needs
 * before it, and the row of a table of tests that most of them write.
 *
 * TEST(NAME) runs the test between the file's functions "set_up", which stores
 * what the test gets as '*state', and "tear_down". */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, set_up, tear_down)

#endif /* tests/unit/unit-test.h */
