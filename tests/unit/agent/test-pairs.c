/* SPDX-License-Identifier: Apache-2.0 */

/* The bytes of a job by remote address. */

#include <config.h>

#include <stdlib.h>

#include "agent/identify/registry.h"
#include "agent/pairs.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Adds bytes that were sent to an address of IPv4. */
static void
add(struct job *job, int a, int b, int c, int d, uint64_t bytes)
{
    const uint8_t address[16] = { [10] = 0xff, 0xff, a, b, c, d };

    pairs_add(job, address, bytes);
}

static void
bytes_of_an_address_add_up(void **state OVS_UNUSED)
{
    struct job job = { .n_remotes = 0 };
    struct json *json;
    char *text;

    add(&job, 10, 77, 0, 2, 100);
    add(&job, 10, 77, 0, 3, 5);
    add(&job, 10, 77, 0, 2, 20);
    pairs_add(&job, (uint8_t[16]){ 0xfd, 9, [15] = 2 }, 7);
    json = pairs_to_json(&job);
    text = json_to_string(json, JSSF_SORT);
    assert_is(text, "[{\"bytes\":120,\"remote\":\"10.77.0.2\"},"
                    "{\"bytes\":5,\"remote\":\"10.77.0.3\"},"
                    "{\"bytes\":7,\"remote\":\"fd09::2\"}]");
    json_destroy(json);
    free(job.remotes);
}

static void
addresses_beyond_the_limit_are_left_out(void **state OVS_UNUSED)
{
    struct job job = { .n_remotes = 0 };

    for (int i = 0; i < PAIRS_MAX_REMOTES + 3; i++) {
        add(&job, 10, 0, i / 100, i % 100, 1);
    }
    assert_int_equal(job.n_remotes, PAIRS_MAX_REMOTES);
    add(&job, 10, 0, 0, 7, 1);
    assert_int_equal(job.remotes[7].bytes, 2);
    free(job.remotes);
}

RUN_TESTS("pairs", NULL, NULL, cmocka_unit_test(bytes_of_an_address_add_up),
          cmocka_unit_test(addresses_beyond_the_limit_are_left_out))
