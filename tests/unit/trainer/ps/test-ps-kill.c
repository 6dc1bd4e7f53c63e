/* SPDX-License-Identifier: Apache-2.0 */

/* Servers and workers that are killed: the job goes back to its checkpoint, or
 * ends. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/trainer/ps/ps-jobs.h"
#include "tests/unit/unit-test.h"

/* One of two servers is killed; the other goes back with it, and the worker.
 * Several workers under each scheme are those of test-ps-resume.c. */
UNIT_TEST(a_killed_server_resumes_from_its_checkpoint)
{
    struct folder folder = make_folder();
    struct ps_server_config config = {
        .n_workers = 1,
        .reconnect_timeout_us = 10000000,
        .checkpoint = folder.path,
        .checkpoint_every = 10,
        .resume = true,
    };
    struct server servers[2] = {
        start_server(config), start_server(config),
    };
    static float weights[N];
    struct ps_client *client;
    uint64_t iteration;
    char *error;

    client = connect_training(servers, 2, 2000000);
    memset(weights, 0, sizeof weights);
    assert_int_equal(ps_client_begin(client, weights, &iteration, &error),
                     PS_OK);
    for (int killed = 0; killed < 2; killed++) {
        uint64_t until = iteration + 25;

        while (iteration < until) {
            step(client, &iteration, weights);
        }
        kill(servers[killed].pid, SIGKILL);
        assert_int_equal(await_end(servers[killed].pid), 128 + SIGKILL);
        config.port = servers[killed].port;
        servers[killed] = start_server(config);
        step(client, &iteration, weights);
        assert_int_equal(iteration, until / 10 * 10);
    }
    while (iteration < 60) {
        step(client, &iteration, weights);
    }
    ps_client_destroy(client);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(await_end(servers[i].pid), 0);
        assert_int_equal(remove_folder(&folder, i), 2);
    }
}

/* With checkpoints a worker that was killed and started again takes the job
 * back; without, it gets the reason, and the server ends. */
UNIT_TEST(a_killed_worker_may_come_back)
{
    for (int keep = 1; keep >= 0; keep--) {
        struct folder folder = make_folder();
        struct server servers[2];
        static float weights[N];
        struct ps_client *client;
        uint64_t iteration;
        pid_t worker;
        char *error;

        for (int i = 0; i < 2; i++) {
            servers[i] = start_server((struct ps_server_config) {
                .n_workers = 1, .reconnect_timeout_us = 3000000,
                .checkpoint = keep ? folder.path : NULL,
                .checkpoint_every = 10,
            });
        }
        memset(weights, 0, sizeof weights);
        memset(my_statistics, 0, sizeof my_statistics);
        worker = start_process();
        if (!worker) {
            client = connect_training(servers, 2, 0);
            ps_client_begin(client, weights, &iteration, &error);
            while (iteration < 25) {
                step(client, &iteration, weights);
            }
            raise(SIGKILL);
        }
        assert_int_equal(await_end(worker), 128 + SIGKILL);
        error = try_training(servers, 2, 10000000, 0, &client);
        if (keep) {
            assert_null(error);
            assert_int_equal(ps_client_begin(client, weights, &iteration,
                                             &error), PS_OK);
            assert_int_equal(iteration, 20);
            assert_counts(weights, iteration);
            step(client, &iteration, weights);
            ps_client_destroy(client);
        } else {
            assert_says(error, "no checkpoints");
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(await_end(servers[i].pid), !keep);
            remove_folder(&folder, i);
        }
    }
}

/* Changes one byte of a checkpoint of the first server, at 'offset'. */
static void
damage(const struct folder *folder, int iteration, long offset)
{
    char path[128];
    FILE *file;
    int byte;

    snprintf(path, sizeof path, "%s/shard-0-of-2.%d", folder->path,
             iteration);
    file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, offset, SEEK_SET);
    byte = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

/* A whole job that is started again continues from its last checkpoint.  If
 * one server's is damaged, in its values or in its head, all continue from the
 * one before.  If that is damaged, too, the job ends. */
UNIT_TEST(a_damaged_checkpoint_is_replaced_by_the_one_before)
{
    struct folder folder = make_folder();
    struct ps_server_config config = {
        .n_workers = 1, .reconnect_timeout_us = 1000000,
        .checkpoint = folder.path,
        .checkpoint_every = 10, .resume = true,
    };
    static const uint64_t from[] = { 0, 25, 20, 20 };
    static float weights[N];
    char path[128];

    for (int run = 0; run < 5; run++) {
        struct server servers[2] = {
            start_server(config), start_server(config),
        };
        struct ps_client *client;
        char *error = try_training(servers, 2, 10000000, 0, &client);
        uint64_t iteration;

        if (run < 4) {
            assert_null(error);
            memset(weights, 0, sizeof weights);
            memset(my_statistics, 0, sizeof my_statistics);
            assert_int_equal(ps_client_begin(client, weights, &iteration,
                                             &error), PS_OK);
            assert_int_equal(iteration, from[run]);
            assert_counts(weights, iteration);
            while (iteration < 25) {
                step(client, &iteration, weights);
            }
        } else {
            assert_says(error, "damaged");
            kill(servers[1].pid, SIGTERM); /* No worker came. */
        }
        ps_client_destroy(client);
        for (int i = 0; i < 2; i++) {
            await_end(servers[i].pid);
        }
        if (run >= 1 && run < 4) {
            damage(&folder, 25, run == 2 ? 20 : 5000);
        }
        if (run == 3) {
            damage(&folder, 20, 5000);
        }
    }
    snprintf(path, sizeof path, "%s/shard-0-of-2.25.damaged", folder.path);
    assert_int_equal(unlink(path), 0);
    remove_folder(&folder, 0);
    remove_folder(&folder, 1);
}

int
unit_test_set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(TIMEOUT_S);
    return 0;
}
