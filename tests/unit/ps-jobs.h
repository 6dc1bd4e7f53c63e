/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_JOBS_H
#define PS_JOBS_H 1

/* Servers and workers of tests as processes, so that they can be killed.
 *
 * All of them end with the test, whatever happens, and none outlives TIMEOUT_S
 * seconds.  The training adds 1 to each weight in each update of the whole
 * batch, so that weights say how many updates were made. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trainer/ps/client.h"
#include "trainer/ps/server.h"

#define TIMEOUT_S 50            /* Of a test, in case it hangs. */
#define N 40000                 /* Parameters: two frames of a store's. */

struct server {
    pid_t pid;
    int port;
    int errors;                 /* What it ended with, if it failed. */
};

/* A folder for checkpoints, gone with the test. */
struct folder {
    char path[64];
};

/* Forks; returns 0 in the child. */
pid_t start_process(void);

/* Its exit status, or 128 + signal. */
int await_end(pid_t);

/* A server that listens: at the config's port, under bsp unless that says
 * something else. */
struct server start_server(struct ps_server_config);

/* Waits for a server's end.  Returns its exit status, and what it said. */
int await_server(const struct server *, char error[256]);

struct folder make_folder(void);

/* Returns how many checkpoints of 'shard' there were. */
int remove_folder(const struct folder *, int shard);

/* Who this process is: 0 of 1 unless it says something else. */
extern int my_rank, n_workers;

char *try_training(const struct server servers[], int n_servers,
                   int64_t patience_us, int64_t deadline_us,
                   struct ps_client **);
struct ps_client *connect_training(const struct server servers[],
                                   int n_servers, int64_t deadline_us);
void assert_counts(const float *weights, uint64_t iteration);

/* One exchange of a gradient of ones. */
void step(struct ps_client *, uint64_t *iteration, float *weights);

#endif /* tests/unit/ps-jobs.h */
