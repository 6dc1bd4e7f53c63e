/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>

#include "controller/hosts/telemetry.h"
#include "tests/unit/unit-test.h"
#include "util.h"

UNIT_TEST(tcp_is_only_allowed_on_the_loopback)
{
    static const struct {
        const char *remote;
        bool allowed;
    } cases[] = {
        { "punix:/run/x.sock", true },
        { "pssl:6643", true },
        { "pssl:6643:10.0.0.1", true },
        { "ptcp:6643:127.0.0.1", true },
        { "ptcp:6643:127.1.2.3", true },
        { "ptcp:6643:[::1]", true },
        { "ptcp:6643", false },
        { "ptcp:6643:0.0.0.0", false },
        { "ptcp:6643:10.0.0.1", false },
        { "ptcp:6643:[::]", false },
        { "ptcp:", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *error = telemetry_check_remote(cases[i].remote);

        if (!error != cases[i].allowed) {
            fail_msg("%s: %s", cases[i].remote, error ? error : "allowed");
        }
        free(error);
    }
}

UNIT_TEST(a_client_speaks_for_one_host)
{
    static const struct {
        const char *certificate, *known, *host, *error;
    } cases[] = {
        { NULL, NULL, "h0", NULL },
        { NULL, "h0", "h0", NULL },
        { "h0", NULL, "h0", NULL },
        { "h0", "h0", "h0", NULL },
        { "h1", NULL, "h0",
          "the certificate is of \"h1\" and not of \"h0\"" },
        { "h1", "h0", "h0",
          "the certificate is of \"h1\" and not of \"h0\"" },
        { NULL, "h0", "h1", "'host' was h0 and is now h1" },
        { "h0", "h0", "h1", "'host' was h0 and is now h1" },
        { "", NULL, "h0", "the certificate is of \"\" and not of \"h0\"" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *error = telemetry_check_host(
            cases[i].certificate ? "pssl:6650" : "punix:/run/x.sock",
            cases[i].certificate, cases[i].known, cases[i].host);

        if (cases[i].error) {
            assert_non_null(error);
            assert_string_equal(error, cases[i].error);
        } else {
            assert_null(error);
        }
        free(error);
    }
}

UNIT_TEST(a_certificate_without_a_name_speaks_for_no_host)
{
    char *error = telemetry_check_host("pssl:6650", NULL, NULL, "h0");

    assert_non_null(error);
    free(error);
}
