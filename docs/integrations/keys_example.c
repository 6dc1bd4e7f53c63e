/* SPDX-License-Identifier: Apache-2.0 */

/* keys_example RANK HOST:PORT...: a node that adds 1 to each of its keys,
 * where they are on this node.
 *
 *    cc keys_example.c $(pkg-config --cflags --libs stagecoach-keys)
 *    ./a.out 0 127.0.0.1:4000 127.0.0.1:4001 &
 *    ./a.out 1 127.0.0.1:4000 127.0.0.1:4001 */

#include <key-store.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 1000  /* Keys of each node. */
#define WIDTH 4 /* Values of a key. */

/* Ends the program if 'error' is a message. */
static void
check(char *error)
{
    if (error) {
        fprintf(stderr, "keys_example: %s\n", error);
        exit(1);
    }
}

int
main(int argc, char *argv[])
{
    int n_nodes = argc - 2, rank = argc > 2 ? atoi(argv[1]) : 0;
    const struct key_range range = { (uint64_t) N * n_nodes, WIDTH };
    struct key_store_config config = {
        .variant = KEY_LOCALIZE,
        .ranges = &range,
        .n_ranges = 1,
        .names = (const char *const *) argv + 2,
        .n_nodes = n_nodes,
        .rank = rank,
        .address = "0.0.0.0",
        .n_workers = 1,
        .connect_us = 30000000,
        .heartbeat_timeout_us = 10000000,
    };
    static float ones[N * WIDTH], values[N * WIDTH];
    struct key_store_stats stats;
    struct key_store *store;
    struct key_worker *worker;
    uint64_t keys[N];
    key_handle pull;

    if (n_nodes < 1 || rank < 0 || rank >= n_nodes
        || !strchr(argv[2 + rank], ':')) {
        fprintf(stderr, "usage: %s RANK HOST:PORT...\n", argv[0]);
        return 1;
    }
    config.port = atoi(strrchr(argv[2 + rank], ':') + 1);
    check(key_store_create(&config, &store));
    worker = key_store_worker(store, 0);
    for (int i = 0; i < N; i++) {
        keys[i] = (uint64_t) rank * N + i;
    }
    for (int i = 0; i < N * WIDTH; i++) {
        ones[i] = 1;
    }
    check(key_wait(worker, key_localize(worker, keys, N)));
    key_push(worker, keys, N, ones); /* In memory. */
    check(key_barrier(worker));
    for (int i = 0; i < N; i++) { /* Those of the next node. */
        keys[i] = (uint64_t) (rank + 1) % n_nodes * N + i;
    }
    pull = key_pull(worker, keys, N, values); /* By messages. */
    check(key_wait(worker, pull));
    key_store_stats(store, &stats);
    printf("node %d: the next node's keys have %g, %llu moved here\n", rank,
           values[0], (unsigned long long) stats.moved);
    check(key_finish(worker));
    key_store_destroy(store);
    return 0;
}
