/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdio.h>

#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/host-row.h"

UNIT_TEST(what_is_too_large_is_cut)
{
    static const struct {
        int n; /* Entries of 'length'. */
        int length;
        int left;
    } cases[] = {
        { 30, 200, 30 }, /* As agents write. */
        { 1, HOST_ROW_MAX_VALUE, 1 },
        { 1, HOST_ROW_MAX_VALUE + 1, 0 },
        { 1024, 1, 1024 },
        { 1030, 1, 1024 },
        { 20, 4090, 16 }, /* 64 KiB with the names. */
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char value[HOST_ROW_MAX_VALUE + 2];
        struct smap health;

        smap_init(&health);
        memset(value, 'x', sizeof value);
        value[cases[i].length] = '\0';
        for (int k = 0; k < cases[i].n; k++) {
            char key[16];

            snprintf(key, sizeof key, "k%04d", k);
            smap_add(&health, key, value);
        }
        host_row_cut(&health);
        assert_int_equal(smap_count(&health), cases[i].left);
        assert_true(host_row_fits(&health));
        smap_destroy(&health);
    }
}
