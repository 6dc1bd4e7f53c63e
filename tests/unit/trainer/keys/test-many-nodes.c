/* SPDX-License-Identifier: Apache-2.0 */

/* More nodes than a word of a mask has bits: all train to the same loss. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/trainer/gossip/crew.h"
#include "tests/unit/unit-test.h"
#include "trainer/loop/loop.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"

#define N 66
#define N_OPTIONS 17

/* Runs a node of the task "factorise". */
static char *
run_node(const char *names, int rank)
{
    char *number = message("%d", rank);
    const char *argv[N_OPTIONS] = {
        "node", "--nodes", names, "--rank", number, "--store", "essp",
        "--samples", "500", "--rows", "200", "--columns", "70",
        "--dimension", "8", "--epochs=1", "--validation=10",
    };
    struct options o;
    bool help;
    char *error = options_parse(N_OPTIONS, (char **) argv, &o, &help);

    if (!error) {
        struct control *control = control_create(o.target);

        error = node_run(&o, control);
        control_destroy(control);
    }
    free(number);
    return error;
}

UNIT_TEST(sixty_six_nodes_train_to_one_loss)
{
    struct crew crew;
    double first = 0;

    crew_choose_ports(&crew, N);
    for (int i = 0; i < N; i++) {
        int out = crew_fork(&crew, i);

        if (out >= 0) {
            crew_become(out);
            crew_exit(run_node(crew.names, i));
        }
    }
    for (int i = 0; i < N; i++) {
        char line[CREW_LINE];
        double loss;

        assert_true(crew_find_line(&crew, i, "\"done\"", line));
        loss = atof(strstr(line, "\"loss\": ") + strlen("\"loss\": "));
        first = i ? first : loss;
        assert_true(loss > 0 && loss == first);
        crew_await(&crew, i, 0);
    }
}

UNIT_TEST(more_nodes_than_the_limit_are_refused)
{
    char *names = duplicate("h:1"), *expected;

    for (int i = 1; i <= SYNC_MAX_PEERS; i++) {
        char *longer = message("%s,h:1", names);

        free(names);
        names = longer;
    }
    expected = message("--nodes: more than %d", SYNC_MAX_PEERS);
    assert_is(run_node(names, 0), expected);
    free(expected);
    free(names);
}
