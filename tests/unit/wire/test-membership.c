/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

#include "tests/unit/unit-test.h"
#include "wire/membership.h"

#define N_CASES (sizeof cases / sizeof cases[0])

UNIT_TEST(processes_of_the_owner_are_admitted)
{
    static const struct {
        struct membership_owner owner;
        struct membership_claim claim;
        enum membership result;
    } cases[] = {
        /* An owner without a user: the word of a launcher or a cgroup. */
        { { false, false, 0 }, { true, true, 1001 }, MEMBERSHIP_ADMITTED },
        { { false, false, 0 }, { true, false, 0 }, MEMBERSHIP_ADMITTED },
        { { false, false, 0 }, { false, true, 0 }, MEMBERSHIP_UNREGISTERED },
        { { true, false, 0 }, { false, true, 1001 }, MEMBERSHIP_ADMITTED },

        /* The environment is not trusted, by whichever process it was
         * written. */
        { { false, true, 1000 },
          { false, true, 1000 },
          MEMBERSHIP_UNREGISTERED },
        { { false, true, 1000 },
          { false, true, 1001 },
          MEMBERSHIP_UNREGISTERED },
        { { true, true, 1000 }, { false, true, 1000 }, MEMBERSHIP_ADMITTED },

        /* Another user. */
        { { false, true, 1000 }, { true, true, 1000 }, MEMBERSHIP_ADMITTED },
        { { false, true, 1000 }, { true, true, 1001 }, MEMBERSHIP_OTHER_USER },
        { { true, true, 1000 }, { true, true, 1001 }, MEMBERSHIP_OTHER_USER },
        { { true, true, 1000 }, { false, true, 1001 }, MEMBERSHIP_OTHER_USER },
        { { true, true, 1000 }, { false, false, 0 }, MEMBERSHIP_OTHER_USER },

        /* Root, and a launcher that knows no user. */
        { { false, true, 1000 }, { true, true, 0 }, MEMBERSHIP_ADMITTED },
        { { false, true, 1000 }, { true, false, 0 }, MEMBERSHIP_OTHER_USER },
    };

    for (size_t i = 0; i < N_CASES; i++) {
        enum membership result = membership_check(&cases[i].owner,
                                                  &cases[i].claim);

        if (result != cases[i].result) {
            fail_msg("case %zu: %d", i, result);
        }
    }
}

/* Agents and controllers of several versions have the same. */
UNIT_TEST(a_namespace_has_its_number)
{
    uint64_t ml = membership_namespace("ml");

    assert_true(ml == UINT64_C(0x6ccc7f19ebcbe3d8));
    assert_true(ml > MEMBERSHIP_MAX_UID && ml <= INT64_MAX);
    assert_true(ml != membership_namespace("nlp"));
}
