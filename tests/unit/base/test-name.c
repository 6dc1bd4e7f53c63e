/* SPDX-License-Identifier: Apache-2.0 */

/* Names that clusters, frameworks and people choose. */

#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "tests/unit/unit-test.h"

UNIT_TEST(names_of_clusters_and_people)
{
    static const struct {
        const char *name;
        bool valid, user;
    } rows[] = {
        { "h0", true, true },
        { "ip-192-168-12-34.us-west-2.compute.internal", true, true },
        { "gke-train-cluster-a3mega-pool-0a1b2c3d-x7hz", true, true },
        { "node_07", true, true },
        { "7up", true, true },
        { "ann@example.com", false, true },
        { "ann+lab@example.com", false, true },
        { "", false, false },
        { ".h0", false, false },
        { "-h0", false, false },
        { "_h0", true, true },
        { "@ann", false, false },
        { "h/0", false, false },
        { "h 0", false, false },
        { "h\xc3\xa4", false, false },
        { "h\n", false, false },
        { "h\"", false, false },
    };
    char longest[NAME_SIZE + 1];

    for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
        assert_int_equal(name_is_valid(rows[i].name), rows[i].valid);
        assert_int_equal(name_is_valid_user(rows[i].name), rows[i].user);
    }
    memset(longest, 'n', sizeof longest);
    longest[NAME_SIZE] = '\0';
    assert_false(name_is_valid(longest));
    longest[NAME_MAX_LEN] = '\0';
    assert_true(name_is_valid(longest));
}

UNIT_TEST(long_names_are_shortened)
{
    const char *one = "resnet-on-imagenet-with-momentum-worker-17";
    const char *other = "resnet-on-imagenet-with-momentum-worker-18";
    char a[32], b[32], whole[64];

    name_shorten(one, whole, sizeof whole);
    assert_string_equal(whole, one);
    name_shorten(one, a, sizeof a);
    name_shorten(other, b, sizeof b);
    assert_int_equal(strlen(a), 31);
    assert_memory_equal(a, one, 14);
    assert_string_not_equal(a, b);
    assert_true(name_is_valid(a));
}

/* Whatever the text is, the result is a name, which stays as it is. */
UNIT_TEST(any_text_fits)
{
    char text[400], name[NAME_SIZE], again[NAME_SIZE];

    name_fit("-a/b\xc3\xa4", name);
    assert_string_equal(name, "xa-b--");
    name_fit("", name);
    assert_string_equal(name, "");
    srandom(1);
    for (int i = 0; i < 2000; i++) {
        size_t n = 1 + random() % (sizeof text - 1);

        for (size_t j = 0; j < n; j++) {
            text[j] = 1 + random() % 255;
        }
        text[n] = '\0';
        name_fit(text, name);
        assert_true(name_is_valid(name));
        name_fit(name, again);
        assert_string_equal(name, again);
    }
}
