/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/southbound/switches.h"
#include "util.h"

/* What an operator may get wrong, and the words for it. */
static void
says_what_is_wrong_with_an_identity(void **state OVS_UNUSED)
{
    static const char *const bad[] = {
        "", "leaf0", "1:leaf0", "0000000000000000:leaf0",
        "000000000000000A:leaf0", "0000000000000001:",
        "0000000000000001=leaf0", "00000000000000010:leaf0",
        ("0000000000000001:"
         "a2345678901234567890123456789012345678901234567890123456789012345"),
    };
    struct switches *ss = switches_create();

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char *start = xasprintf("--switch-identity: \"%s\", a datapath id of "
                                "16 digits", bad[i]);
        char *error = switches_add_identity(ss, bad[i]);

        assert_non_null(error);
        assert_memory_equal(error, start, strlen(start));
        free(error);
        free(start);
    }
    switches_destroy(ss);
}

static void
takes_one_identity_a_switch(void **state OVS_UNUSED)
{
    struct switches *ss = switches_create();
    char *error;

    assert_null(switches_add_identity(ss, "00000000000000ab:leaf 0:x"));
    assert_null(switches_add_identity(ss, "00000000000000ac:leaf 0:x"));
    error = switches_add_identity(ss, "00000000000000ab:leaf1");
    assert_string_equal(error, "--switch-identity: datapath id "
                        "00000000000000ab is there twice, once is allowed");
    free(error);
    switches_destroy(ss);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_wrong_with_an_identity),
        cmocka_unit_test(takes_one_identity_a_switch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
