/* SPDX-License-Identifier: Apache-2.0 */

/* Linear models with workers that push only the features of their batches
 * learn what they would learn from whole vectors, and move far fewer bytes. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/trainer/gossip/crew.h"
#include "tests/unit/unit-test.h"
#include "trainer/loop/loop.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/schemes/sync.h"

#define FEATURES 100000
#define BATCH 64
#define ITERATIONS 30
#define SAMPLE 64               /* Features of a sample, at most. */
#define HELD 100                /* Validation samples. */
#define STRING_(X) #X
#define STRING(X) STRING_(X)

static void
worker_main(const char *push, const char *optimiser, int rank, int n,
            int port, int out)
{
    char *ranks[2] = { message("%d", rank), message("%d", n) };
    char *server = message("127.0.0.1:%d", port);
    const char *argv[] = {
        "worker", "--server", server, "--rank", ranks[0], "--workers",
        ranks[1], "--push", push, "--optimiser", optimiser, "--model",
        "linear", "--features", STRING(FEATURES), "--samples", "2000",
        "--validation", STRING(HELD), "--batch", STRING(BATCH), "--iterations",
        STRING(ITERATIONS), "--eval-every", "1000", "--backend", "cpu",
        "--learning-rate", !strcmp(optimiser, "sgd") ? "0.5" : "0.05",
    };
    struct options o;
    bool help;
    char *error;

    crew_become(out);
    error = options_parse(sizeof argv / sizeof *argv, (char **) argv, &o,
                          &help);
    if (!error) {
        struct control *control = control_create(o.target);

        error = loop_run(&o, control, !strcmp(push, "sparse")
                                      ? &exchange_store : &exchange_server);
        control_destroy(control);
    }
    crew_exit(error);
}

struct outcome {
    double loss;                /* At rank 0. */
    double bytes;               /* Both ways, of all workers. */
};

/* Trains with 'n' workers, and fails if a process or the server does. */
static struct outcome
train(const char *push, const char *optimiser, const char *scheme, int n)
{
    struct outcome outcome = { 0 };
    struct sync_spec sync;
    struct server server;
    struct crew crew;
    char error[256];

    assert_null(sync_spec_parse(scheme, &sync));
    server = start_server((struct ps_server_config) {
        .n_workers = n, .n_threads = 1, .sync = &sync,
        .reconnect_timeout_us = 5000000, .heartbeat_timeout_us = 10000000,
    });
    for (int i = 0; i < n; i++) {
        int out = crew_fork(&crew, i);

        if (out >= 0) {
            worker_main(push, optimiser, i, n, server.port, out);
        }
    }
    for (int i = 0; i < n; i++) {
        unsigned long long sent, received;
        char line[CREW_LINE];
        const char *found;

        assert_true(crew_find_line(&crew, i, "\"done\"", line));
        found = strstr(line, "\"loss\": ");
        assert_non_null(found);
        if (!i) {
            outcome.loss = atof(found + 8);
        }
        found = strstr(line, "\"bytes_sent\": ");
        assert_non_null(found);
        assert_int_equal(sscanf(found, "\"bytes_sent\": %llu, "
                                "\"bytes_received\": %llu", &sent,
                                &received), 2);
        outcome.bytes += sent + received;
        crew_await(&crew, i, 0);
    }
    assert_int_equal(await_server(&server, error), 0);
    assert_string_equal(error, "");
    return outcome;
}

UNIT_TEST(one_worker_learns_the_same_from_sparse_pushes)
{
    static const char *const optimisers[] = { "sgd", "adagrad" };

    for (int i = 0; i < 2; i++) {
        struct outcome dense = train("dense", optimisers[i], "asp", 1);
        struct outcome sparse = train("sparse", optimisers[i], "asp", 1);

        assert_true(fabs(sparse.loss - dense.loss) < 1e-5);
        assert_true(sparse.loss < 0.693);       /* It begins at ln 2. */
    }
}

UNIT_TEST(three_workers_learn_nearly_the_same)
{
    struct outcome dense = train("dense", "adagrad", "bsp", 3);
    struct outcome sparse = train("sparse", "adagrad", "bsp", 3);

    assert_true(fabs(sparse.loss - dense.loss) < 0.03 * dense.loss);
}

/* A key takes at most 4 bytes, twice, and a value 4, twice, of each feature of
 * a sample; the evaluation at the end pulls those of its samples. */
UNIT_TEST(bytes_follow_the_batch_and_not_the_model)
{
    struct outcome dense = train("dense", "sgd", "asp", 1);
    struct outcome sparse = train("sparse", "sgd", "asp", 1);
    double most = 16. * SAMPLE * BATCH * ITERATIONS + 8. * SAMPLE * HELD;

    assert_true(dense.bytes > 2. * sizeof(float) * FEATURES * ITERATIONS);
    assert_true(sparse.bytes < most);
    assert_true(sparse.bytes < dense.bytes / 20);
}

UNIT_TEST(other_models_push_whole_gradients)
{
    const char *argv[] = {
        "worker", "--server", "127.0.0.1:1", "--push", "sparse",
    };
    struct options o;
    bool help;

    assert_says(options_parse(5, (char **) argv, &o, &help), "--push: ");
}
