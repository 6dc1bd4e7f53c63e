/* SPDX-License-Identifier: Apache-2.0 */

#ifndef UNIT_TEST_H
#define UNIT_TEST_H 1

/* What every unit test begins with: cmocka, with the headers that it needs
 * before it, and what most of them write.
 *
 * RUN_TESTS(...), the main() of a file, has a table of tests.  TEST(NAME), a
 * row of it, runs the test between the file's functions "set_up", which stores
 * what the test gets as '*state', and "tear_down"; PURE(NAME) runs one
 * without.
 *
 * assert_is(TEXT, WANTED) and assert_says(TEXT, PART) free a text, an error
 * most often, that must be WANTED, or have PART somewhere.
 * assert_no_error(ERROR) fails with the text of an error that there is. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_ELEMENTS(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, set_up, tear_down)
#define PURE(NAME) cmocka_unit_test(NAME)

#define RUN_TESTS(...)                                     \
    int main(void)                                         \
    {                                                      \
        const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
                                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);  \
    }

#define assert_is(TEXT, WANTED)               \
    do {                                      \
        char *text_ = (TEXT);                 \
                                              \
        assert_non_null(text_);               \
        assert_string_equal(text_, (WANTED)); \
        free(text_);                          \
    } while (0)

#define assert_says(TEXT, PART)                                    \
    do {                                                           \
        char *text_ = (TEXT);                                      \
                                                                   \
        assert_non_null(text_);                                    \
        if (!strstr(text_, (PART))) {                              \
            fail_msg("\"%s\" does not say \"%s\"", text_, (PART)); \
        }                                                          \
        free(text_);                                               \
    } while (0)

#define assert_no_error(ERROR)        \
    do {                              \
        const char *error_ = (ERROR); \
                                      \
        if (error_) {                 \
            fail_msg("%s", error_);   \
        }                             \
    } while (0)

#endif /* tests/unit/unit-test.h */
