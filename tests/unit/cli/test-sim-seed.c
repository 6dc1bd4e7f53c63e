/* SPDX-License-Identifier: Apache-2.0 */

/* The seed that "stagecoach sim" gives to its workload. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/simulate/workload-open.h"
#include "tests/unit/unit-test.h"

/* Replies with this to every workload: nothing is simulated. */
#define STOP "no workload"

static uint64_t seeds[3];       /* Seeds at the end of each simulation. */
static int n_seeds;

static void
simulate(const char *seed)
{
    char *argv[] = {
        (char *) "sim", (char *) "generate:1", (char *) "--seed",
        (char *) seed, NULL,
    };

    assert_int_equal(cmd_sim(seed ? 4 : 2, argv), EXIT_NO);
}

/* Replaces workload-open.c: lets another simulation begin and end before it
 * reads the seed of this one. */
char *
workload_open(const char *what, const uint64_t *seed,
              struct workload_input *input)
{
    assert_string_equal(what, "generate:1");
    memset(input, 0, sizeof *input);
    if (seed && *seed == 7) {
        simulate("9");
    } else if (seed && *seed == 9) {
        simulate(NULL);
    }
    assert_true(n_seeds < 3);
    seeds[n_seeds++] = seed ? *seed : UINT64_MAX;
    return strdup(STOP);
}

void
workload_input_uninit(struct workload_input *input)
{
    assert_null(input->workload);
}

char *
fabric_open(const char *what, struct workload *w)
{
    return strdup(STOP);
}

char *
policy_open(const char *name, struct policy **policyp)
{
    *policyp = NULL;
    return strdup(STOP);
}

int
command_fail(const char *name, char *error)
{
    assert_null(name);
    assert_is(error, STOP);
    return EXIT_NO;
}

void
command_print_json(cJSON *json)
{
    cJSON_Delete(json);
}

static void
a_simulation_keeps_its_seed_when_another_begins(void **state)
{
    simulate("7");
    assert_int_equal(n_seeds, 3);
    assert_true(seeds[0] == UINT64_MAX);        /* No option. */
    assert_int_equal(seeds[1], 9);
    assert_int_equal(seeds[2], 7);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_simulation_keeps_its_seed_when_another_begins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
