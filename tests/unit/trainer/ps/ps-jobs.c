/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/trainer/ps/ps-jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/unit-test.h"

int my_rank, n_workers = 1;
float my_statistics[N_STATISTICS];
struct control *my_control;

struct folder
make_folder(void)
{
    struct folder folder = { "/tmp/test-ps.XXXXXX" };

    assert_non_null(mkdtemp(folder.path));
    return folder;
}

int
remove_folder(const struct folder *folder, int shard)
{
    char path[128];
    int n = 0;

    for (int iteration = 0; iteration < 200; iteration++) {
        for (int n_shards = shard + 1; n_shards <= 2; n_shards++) {
            snprintf(path, sizeof path, "%s/shard-%d-of-%d.%d", folder->path,
                     shard, n_shards, iteration);
            n += !unlink(path);
        }
    }
    rmdir(folder->path);
    return n;
}

char *
try_training(const struct server servers[], int n_servers,
             int64_t reconnect_timeout_us, int64_t heartbeat_timeout_us,
             struct ps_client **clientp)
{
    return try_client(servers, n_servers,
                      (struct ps_client_config){
                          .rank = my_rank,
                          .n_workers = n_workers,
                          .n_parameters = N,
                          .statistics = my_statistics,
                          .n_statistics = N_STATISTICS,
                          .reconnect_timeout_us = reconnect_timeout_us,
                          .heartbeat_timeout_us = heartbeat_timeout_us,
                          .control = my_control },
                      clientp);
}

struct ps_client *
connect_training(const struct server servers[], int n_servers,
                 int64_t heartbeat_timeout_us)
{
    struct ps_client *client;

    assert_no_error(try_training(servers, n_servers, 10000000,
                                 heartbeat_timeout_us, &client));
    return client;
}

void
assert_counts(const float *weights, uint64_t iteration)
{
    for (int i = 0; i < N; i++) {
        assert_true(weights[i] == iteration);
    }
    for (int i = 0; i < N_STATISTICS; i++) {
        assert_true(my_statistics[i] == iteration);
    }
}

void
step(struct ps_client *client, uint64_t *iteration, float *weights)
{
    static float ones[N];
    double loss = 0.5;
    char *error;

    for (int i = 0; i < N; i++) {
        ones[i] = 1;
    }
    for (int i = 0; i < N_STATISTICS; i++) {
        my_statistics[i] = *iteration + 1;
    }
    if (ps_client_exchange(client, iteration, ones, 1, &loss, weights,
                           &error) != PS_OK) {
        fail_msg("%s", error);
    }
    assert_counts(weights, *iteration);
}
