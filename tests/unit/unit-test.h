/* SPDX-License-Identifier: Apache-2.0 */

#ifndef UNIT_TEST_H
#define UNIT_TEST_H 1

/* What every unit test begins with: cmocka, with the headers that it needs
 * before it, and what most of them write.
 *
 * UNIT_TEST(NAME) defines a test, which main() in unit-test.c runs after those
 * that stand before it in the file:
 *
 *    UNIT_TEST(two_and_two_are_four)
 *    {
 *        assert_int_equal(2 + 2, 4);
 *    }
 *
 * UNIT_TEST_BETWEEN(NAME, SET_UP, TEAR_DOWN) is one that runs between these
 * functions.  UNIT_TEST_GIVEN(NAME, SET_UP, TEAR_DOWN, TYPE *ARGUMENT) gets
 * what the first one stores as '*state', and FIXTURE_TEST(NAME) gets what the
 * file's "set_up" stores, a struct fixture, as 'f'.  FIXTURE_SET_UP and
 * FIXTURE_TEAR_DOWN begin functions that fill a new 'f', all zeros, and
 * release what it has.  A file may define unit_test_set_up() and
 * unit_test_tear_down(), which run before and after all of its tests.
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

#define UNIT_TEST_BETWEEN(NAME, SET_UP, TEAR_DOWN)            \
    static void NAME(void **state);                           \
                                                              \
    __attribute__((constructor)) static void add_##NAME(void) \
    {                                                         \
        struct CMUnitTest test = cmocka_unit_test(NAME);      \
                                                              \
        test.setup_func = (SET_UP);                           \
        test.teardown_func = (TEAR_DOWN);                     \
        unit_test_add(test);                                  \
    }                                                         \
                                                              \
    static void NAME(void **state)

#define UNIT_TEST(NAME) UNIT_TEST_BETWEEN(NAME, NULL, NULL)

#define UNIT_TEST_GIVEN(NAME, SET_UP, TEAR_DOWN, ARGUMENT) \
    static void NAME##_given(ARGUMENT);                    \
                                                           \
    UNIT_TEST_BETWEEN(NAME, SET_UP, TEAR_DOWN)             \
    {                                                      \
        NAME##_given(*state);                              \
    }                                                      \
                                                           \
    static void NAME##_given(ARGUMENT)

struct fixture;
#define FIXTURE_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, struct fixture *f)

#define FIXTURE_SET_UP                              \
    static void set_up_fixture(struct fixture *);   \
                                                    \
    static int set_up(void **state)                 \
    {                                               \
        *state = calloc(1, sizeof(struct fixture)); \
        assert_non_null(*state);                    \
        set_up_fixture(*state);                     \
        return 0;                                   \
    }                                               \
                                                    \
    static void set_up_fixture(struct fixture *f)

#define FIXTURE_TEAR_DOWN                            \
    static void tear_down_fixture(struct fixture *); \
                                                     \
    static int tear_down(void **state)               \
    {                                                \
        tear_down_fixture(*state);                   \
        free(*state);                                \
        return 0;                                    \
    }                                                \
                                                     \
    static void tear_down_fixture(struct fixture *f)

void unit_test_add(struct CMUnitTest);
int unit_test_set_up(void **state) __attribute__((weak));
int unit_test_tear_down(void **state) __attribute__((weak));

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
