/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "cli/operator/redact.h"
#include "sset.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Checks what the first pass makes of 'text'. */
static void
assert_names(const char *text, const char *expected)
{
    struct sset secrets = SSET_INITIALIZER(&secrets);
    size_t n = 0;

    assert_is(redact_names(xstrdup(text), &secrets, &n), expected);
    assert_int_equal(n > 0, strcmp(text, expected) != 0);
    sset_destroy(&secrets);
}

UNIT_TEST(values_with_names_of_secrets_are_removed)
{
    assert_names("A=1 API_TOKEN=abc B=2\n", "A=1 API_TOKEN=[removed] B=2\n");
    assert_names("Password : 'a b\\'c' x", "Password : '[removed]' x");
    assert_names("{\"secret\": \"a\\\"b\", \"n\": 1}",
                 "{\"secret\": \"[removed]\", \"n\": 1}");
    assert_names("\\\"my_token\\\": \\\"abc\\\"",
                 "\\\"my_token\\\": \\\"[removed]\\\"");
    assert_names("run --token abc --x", "run --token [removed] --x");
    assert_names("run --db-password=abc", "run --db-password=[removed]");
    assert_names("Authorization: Bearer abc.def\n",
                 "Authorization: Bearer [removed]\n");
    assert_names("PASSWORD=", "PASSWORD=");
    assert_names("the token abc is bad", "the token abc is bad");
    assert_names("tokenizer/t0 ends", "tokenizer/t0 ends");
}

UNIT_TEST(paths_of_files_stay)
{
    assert_names("--private-key=/etc/passwd -C x",
                 "--private-key=/etc/passwd -C x");
    assert_names("--private-key=/nowhere/there",
                 "--private-key=[removed]");
}

UNIT_TEST(secrets_without_names_are_removed)
{
    assert_names("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\nxyz\n"
                 "-----END RSA PRIVATE KEY-----\nb\n", "a\n[removed]\nb\n");
    assert_names("-----BEGIN PRIVATE KEY-----\nMII", "[removed]");
    assert_names("-----BEGIN CERTIFICATE-----\nMII\n"
                 "-----END CERTIFICATE-----\n",
                 "-----BEGIN CERTIFICATE-----\nMII\n"
                 "-----END CERTIFICATE-----\n");
    assert_names("http://eva:pw@host/x http://host/x",
                 "http://[removed]@host/x http://host/x");
    assert_names("got eyJhbGciOi.eyJzdWIiOi.SflKxw ok", "got [removed] ok");
}

UNIT_TEST(removed_values_are_removed_elsewhere)
{
    struct sset secrets = SSET_INITIALIZER(&secrets);
    char *config, *log;
    size_t n = 0;

    log = redact_names(xstrdup("login with hunter22 failed, abc\n"), &secrets,
                       &n);
    config =
        redact_names(xstrdup("password=hunter22\ntoken=abc\n"), &secrets, &n);
    assert_int_equal(n, 2);
    log = redact_values(log, &secrets, &n);
    config = redact_values(config, &secrets, &n);
    assert_int_equal(n, 3);
    assert_string_equal(config, "password=[removed]\ntoken=[removed]\n");

    /* Short values would be words of other texts. */
    assert_is(log, "login with [removed] failed, abc\n");
    free(config);
    sset_destroy(&secrets);
}
