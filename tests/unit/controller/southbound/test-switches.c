/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/southbound/switches.h"
#include "policies/policy.h"
#include "socket-util.h"
#include "stream.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Invalid identities and their error. */
UNIT_TEST(an_invalid_identity_is_refused)
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
        char *start =
            xasprintf("--switch-identity: \"%s\"; expected a datapath id of "
                      "16 digits",
                      bad[i]);
        char *error = switches_add_identity(ss, bad[i]);

        assert_non_null(error);
        assert_memory_equal(error, start, strlen(start));
        free(error);
        free(start);
    }
    switches_destroy(ss);
}

UNIT_TEST(a_switch_has_one_identity)
{
    struct switches *ss = switches_create();
    char *error;

    assert_null(switches_add_identity(ss, "00000000000000ab:leaf 0:x"));
    assert_null(switches_add_identity(ss, "00000000000000ac:leaf 0:x"));
    error = switches_add_identity(ss, "00000000000000ab:leaf1");
    assert_is(error, "--switch-identity: datapath id "
                     "00000000000000ab is there twice; expected once");
    switches_destroy(ss);
}

/* Runs 'ss' for some rounds.  Returns the connection that it opens to
 * 'pstream', or NULL. */
static struct stream *
accept_from(struct switches *ss, struct pstream *pstream)
{
    struct stream *stream = NULL;

    for (int round = 0; round < 10 && !stream; round++) {
        switches_run(ss);
        if (pstream_accept(pstream, &stream)) {
            stream = NULL;
        }
    }
    return stream;
}

/* Returns true if the other end has closed 'stream'. */
static bool
is_closed(struct stream *stream)
{
    char buffer[64];
    int n;

    do {
        n = stream_recv(stream, buffer, sizeof buffer);
    } while (n > 0);
    return !n;
}

UNIT_TEST(only_the_leader_connects_to_switches)
{
    char *listener = xasprintf("punix:/tmp/test-switches.%ld.sock",
                               (long) getpid());
    struct switches *ss = switches_create();
    struct policy *policy;
    struct pstream *pstream;
    struct stream *stream;

    assert_null(policy_from_string("p", "{\"name\": \"p\", \"order\": "
                                   "\"stage\"}", &policy));
    assert_int_equal(pstream_open(listener, &pstream, DSCP_DEFAULT), 0);
    switches_add(ss, listener + 1);
    assert_null(accept_from(ss, pstream));
    for (int generation = 1; generation <= 2; generation++) {
        switches_set(ss, policy, generation);
        stream = accept_from(ss, pstream);
        assert_non_null(stream);
        switches_run(ss);
        assert_false(is_closed(stream));

        switches_leave(ss);
        assert_true(is_closed(stream));
        stream_close(stream);
        assert_null(accept_from(ss, pstream));
    }
    pstream_close(pstream);
    policy_destroy(policy);
    switches_destroy(ss);
    free(listener);
}
