/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit-test.h"

#include <errno.h>
#include <stdio.h>

static struct CMUnitTest tests[100];
static size_t n_tests;

void
unit_test_add(struct CMUnitTest test)
{
    if (n_tests == N_ELEMENTS(tests)) {
        fprintf(stderr, "%s: one test too many\n", test.name);
        abort();
    }
    tests[n_tests++] = test;
}

int
main(void)
{
    return _cmocka_run_group_tests(program_invocation_short_name, tests,
                                   n_tests, unit_test_set_up,
                                   unit_test_tear_down);
}
