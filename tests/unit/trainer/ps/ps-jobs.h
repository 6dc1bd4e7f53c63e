/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_JOBS_H
#define PS_JOBS_H 1

/* Workers of tests, and trainings in which weights count.
 *
 * A training adds 1 to each weight in each update of the whole batch, so that
 * weights say how many updates were made.  So do its statistics. */

#include <stdint.h>

#include "tests/unit/trainer/ps/ps-processes.h"
#include "trainer/ps/client.h"

#define N 40000                 /* Parameters: two frames of a store's. */
#define N_STATISTICS 300

/* A folder for checkpoints, gone with the test. */
struct folder {
    char path[64];
};

struct folder make_folder(void);

/* Returns how many checkpoints of 'shard' there were. */
int remove_folder(const struct folder *, int shard);

/* Rank of this process; 0 of 1 unless it sets another. */
extern int my_rank, n_workers;

/* Those of this worker's model. */
extern float my_statistics[N_STATISTICS];

/* What tells this process what to do, or NULL. */
extern struct control *my_control;

char *try_training(const struct server servers[], int n_servers,
                   int64_t reconnect_timeout_us, int64_t heartbeat_timeout_us,
                   struct ps_client **);
struct ps_client *connect_training(const struct server servers[],
                                   int n_servers,
                                   int64_t heartbeat_timeout_us);

/* Also asserts that those of the statistics are right. */
void assert_counts(const float *weights, uint64_t iteration);

/* One exchange of a gradient of ones. */
void step(struct ps_client *, uint64_t *iteration, float *weights);

#endif /* tests/unit/trainer/ps/ps-jobs.h */
