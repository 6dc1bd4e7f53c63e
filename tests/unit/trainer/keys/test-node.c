/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes as processes, as a person starts them: each variant trains, the same
 * where it ought to be the same, and the death of one is the end of all, which
 * name it. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/trainer/gossip/crew.h"
#include "tests/unit/unit-test.h"
#include "trainer/loop/loop.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"

#define N 3
#define MAX_ARGS 48

/* Becomes a trainer without further input. */
static void
trainer_main(int argc, const char *const argv[], int out)
{
    struct options o;
    bool help;
    char *error;

    crew_become(out);
    error = options_parse(argc, (char **) argv, &o, &help);
    if (!error) {
        struct control *control = control_create(o.target);

        error = o.role == ROLE_NODE ? node_run(&o, control)
                                    : loop_run(&o, control, &exchange_local);
        control_destroy(control);
    }
    crew_exit(error);
}

/* 'args' end with NULL. */
static void
node_main(const struct crew *crew, int rank, const char *const args[],
          int out)
{
    char *number = message("%d", rank);
    const char *argv[MAX_ARGS] = {
        "node",      "--nodes",     crew->names, "--rank",       number,
        "--samples", "4000",        "--rows",    "200",          "--columns",
        "80",        "--dimension", "8",         "--validation", "100",
    };
    int argc = 0;

    while (argv[argc]) {
        argc++;
    }
    while (*args) {
        argv[argc++] = *args++;
    }
    trainer_main(argc, argv, out);
}

static void
start(struct crew *crew, const char *const args[])
{
    crew_choose_ports(crew, N);
    for (int i = 0; i < N; i++) {
        int out = crew_fork(crew, i);

        if (out >= 0) {
            node_main(crew, i, args, out);
        }
    }
}

static double
number_in(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    assert_non_null(at);
    return atof(at + strlen(name));
}

/* The largest number that rank 0 prints for 'name', when all have ended. */
static double
train_and_look(const char *name, const char *const args[])
{
    struct crew crew;
    char line[CREW_LINE];
    double most = 0;

    start(&crew, args);
    while (crew_find_line(&crew, 0, name, line)) {
        double x = number_in(line, name);

        most = x > most ? x : most;
    }
    for (int i = 0; i < N; i++) {
        crew_await(&crew, i, 0);
    }
    return most;
}

/* Returns the loss of the last epoch. */
static double
train(const char *const args[])
{
    struct crew crew;
    double loss = 0;

    start(&crew, args);
    for (int i = 0; i < N; i++) {
        char line[CREW_LINE];

        assert_true(crew_find_line(&crew, i, "\"done\"", line));
        assert_non_null(strstr(line, "\"iteration\": 6,"));
        loss = number_in(line, "\"loss\": ");
        crew_await(&crew, i, 0);
    }
    return loss;
}

UNIT_TEST(every_variant_trains_to_the_same_loss)
{
    static const char *const stores[] = {
        "localize", "localize-messages", "classic", "classic-local", "ssp",
        "essp", "manual",
    };
    double losses[7];

    for (int i = 0; i < 7; i++) {
        losses[i] = train((const char *const[]) {
            "--store", stores[i], "--staleness", "0", "--epochs", "6", NULL,
        });
        /* They begin at 1.  Blocks are exclusive, and copies are not older
         * than the last block. */
        assert_true(losses[i] < 0.3);
        assert_true(losses[i] > losses[0] * 0.999
                    && losses[i] < losses[0] * 1.001);
    }
}

/* The vectors of a batch lack the changes of the one before it.  The nodes'
 * order varies: with a rate of 0.2, losses of the task "knowledge" differ by
 * 3 % from run to run, with 0.1, which is farther from the end, by 6 % and
 * more; with 16 samples in a batch they differ by 15 % on a busy machine. */
UNIT_TEST(batches_train_to_nearly_the_same_loss)
{
    static const struct {
        const char *store;
        const char *options[9];
    } tasks[] = {
        { "classic", { "--task", "factorise" } },
        { "localize", { "--task", "factorise" } },
        { "classic", { "--task", "knowledge", "--entities", "100",
                       "--relations", "5", "--learning-rate", "0.2" } },
        { "classic", { "--task", "skipgram", "--vocabulary", "200",
                       "--subsample", "0.01" } },
        { "localize", { "--task", "skipgram", "--vocabulary", "200",
                        "--subsample", "0.01" } },
    };

    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        double losses[2];

        for (int batched = 0; batched < 2; batched++) {
            const char *args[20] = {
                "--store", tasks[i].store, "--epochs", "6", "--samples",
                "2000", "--exchange", batched ? "4" : "1",
            };

            for (int k = 0; tasks[i].options[k]; k++) {
                args[8 + k] = tasks[i].options[k];
            }
            losses[batched] = train(args);
        }
        if (!(losses[1] != losses[0] && losses[1] > losses[0] * 0.8
              && losses[1] < losses[0] * 1.2)) {
            fail_msg("%s, %s: loss %g in batches, %g one by one",
                     tasks[i].store, tasks[i].options[1], losses[1],
                     losses[0]);
        }
    }
}

/* Without learning, each of 100 entities is as good as another: a mean
 * reciprocal rank of 0.05. */
UNIT_TEST(knowledge_is_learned)
{
    static const char *const embeddings[] = { "rescal", "complex" };

    for (int i = 0; i < 2; i++) {
        double mrr = train_and_look("\"mrr\": ", (const char *const[]) {
            "--task", "knowledge", "--embedding", embeddings[i], "--entities",
            "100", "--relations", "5", "--samples", "2000", "--dimension",
            "20", "--learning-rate", "0.1", "--epochs", "10", NULL,
        });

        assert_true(mrr > 0.3);
    }
}

/* A model that has not learned loses log 2 for each of six words, 4.16; one
 * that has learned how frequent they are, 3.0. */
UNIT_TEST(words_are_learned)
{
    double loss;

    loss = train((const char *const[]) {
        "--task", "skipgram", "--vocabulary", "200", "--samples", "6000",
        "--dimension", "16", "--epochs", "6", NULL,
    });
    assert_true(loss > 1 && loss < 2.5);
}

#define FEATURES "100000"
#define LINEAR                                                              \
    "--features", FEATURES, "--seed", "1", "--batch", "60", "--samples",    \
        "600", "--validation", "90", "--eval-every", "1000", "--optimiser", \
        optimiser, "--learning-rate",                                       \
        strcmp(optimiser, "sgd") ? "0.05" : "0.5"

/* Returns the loss that one process reaches with whole gradients. */
static double
train_linear_alone(const char *optimiser)
{
    const char *argv[] = { "local", "--model",      "linear",
                           LINEAR,  "--iterations", "20" };
    struct crew crew;
    char line[CREW_LINE];
    int out = crew_fork(&crew, 0);

    if (out >= 0) {
        trainer_main(sizeof argv / sizeof *argv, argv, out);
    }
    assert_true(crew_find_line(&crew, 0, "\"done\"", line));
    crew_await(&crew, 0, 0);
    return number_in(line, "\"loss\": ");
}

/* Three workers' steps may be in another order.  Vectors of the model's length
 * would be 8 MB. */
UNIT_TEST(a_linear_model_learns_what_one_process_learns_by_few_bytes)
{
    static const char *const stores[] = { "classic", "localize", "ssp" };
    static const char *const optimisers[] = { "sgd", "adagrad" };

    for (int i = 0; i < 6; i++) {
        const char *optimiser = optimisers[i % 2];
        const char *const args[] = { "--task",      "linear", "--store",
                                     stores[i / 2], LINEAR,   "--epochs",
                                     "2",           NULL };
        double wanted = train_linear_alone(optimiser);
        double loss = train_and_look("\"held_out_loss\": ", args);

        assert_true(loss < 0.693 && loss > wanted * 0.97
                    && loss < wanted * 1.03);
        assert_true(i || train_and_look("\"bytes_sent\": ", args) < 8e5);
    }
}

UNIT_TEST(workers_may_be_threads)
{
    double loss = train((const char *const[]){
        "--threads",
        "2",
        "--epochs",
        "6",
        NULL,
    });

    assert_true(loss < 0.3);
}

UNIT_TEST(all_end_with_the_name_of_the_node_that_died)
{
    static const char *const stores[] = {
        "localize", "localize-messages", "essp", "classic",
    };

    for (int k = 0; k < 4; k++) {
        struct crew crew;
        char line[CREW_LINE], *expected;

        start(&crew, (const char *const[]) {
            "--store", stores[k], "--epochs", "100000", NULL,
        });
        expected = message("node 1 (127.0.0.1:%d) died", crew.ports[1]);
        assert_true(crew_find_line(&crew, 0, "\"epoch\": 3,", line));
        kill_process(crew.pids[1]);
        for (int i = 0; i < N; i += 2) {
            assert_true(crew_find_line(&crew, i, "failed", line));
            assert_non_null(strstr(line, expected));
            crew_await(&crew, i, 1);
        }
        fclose(crew.out[1]);
        free(expected);
    }
}

UNIT_TEST(a_signal_to_all_ends_all_without_an_error)
{
    struct crew crew;
    char line[CREW_LINE];

    start(&crew, (const char *const[]) { "--epochs", "100000", NULL });
    assert_true(crew_find_line(&crew, 0, "\"epoch\": 3,", line));
    for (int i = 0; i < N; i++) {
        kill(crew.pids[i], SIGTERM);
    }
    for (int i = 0; i < N; i++) {
        crew_await(&crew, i, 0);
    }
}

UNIT_TEST(a_signal_to_one_ends_all_without_an_error)
{
    struct crew crew;
    char line[CREW_LINE];

    start(&crew, (const char *const[]) { "--epochs", "100000", NULL });
    assert_true(crew_find_line(&crew, 0, "\"epoch\": 3,", line));
    kill(crew.pids[1], SIGTERM);
    for (int i = 0; i < N; i++) {
        crew_await(&crew, i, 0);
    }
}

UNIT_TEST(a_signal_ends_a_single_node)
{
    static const char *const stores[] = { "localize", "manual" };

    for (int k = 0; k < 2; k++) {
        struct crew crew;
        char line[CREW_LINE];
        int out;

        crew_choose_ports(&crew, 1);
        out = crew_fork(&crew, 0);
        if (out >= 0) {
            node_main(&crew, 0, (const char *const[]) {
                "--store", stores[k], "--epochs", "1000000000", NULL,
            }, out);
        }
        assert_true(crew_find_line(&crew, 0, "\"epoch\": 3,", line));
        kill(crew.pids[0], SIGTERM);
        crew_await(&crew, 0, 0);
    }
}

UNIT_TEST(mistakes_are_refused)
{
    static const struct {
        const char *argv[7];
        const char *error;
    } cases[] = {
        { { "node" },
          "--nodes, --port: all nodes and where they listen are needed" },
        { { "node", "--store", "lazy" },
          "--store: \"lazy\" is not one of \"classic\", \"classic-local\", "
          "\"localize\", \"localize-messages\", \"ssp\", \"essp\", "
          "\"manual\"" },
        { { "node", "--nodes", "a:1", "--store=manual", "--task=skipgram" },
          "--store: manual is for factorise, one thread a node" },
        { { "node", "--nodes", "a:1", "--store=manual", "--epoch-limit", "1" },
          "--epoch-limit: manual goes through whole epochs" },
        { { "node", "--nodes", "a:1", "--exchange", "8", "--store=ssp" },
          "--exchange 8: only with --store localize, classic or "
          "classic-local" },
        { { "node", "--model", "mlp" }, "--model: not an option of \"node\"" },
        { { "node", "--staleness", "-1" },
          "--staleness: \"-1\" is not an integer from 0 to 1000" },
        { { "server", "--central", "a:1", "--checkpoint", "f" },
          "--central: checkpoints, the control port and group servers are "
          "options of the server at \"a:1\"" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options o;
        int argc = 0;
        bool help;
        char *error;

        while (argc < 7 && cases[i].argv[argc]) {
            argc++;
        }
        error = options_parse(argc, (char **) cases[i].argv, &o, &help);
        assert_is(error, cases[i].error);
    }
}
