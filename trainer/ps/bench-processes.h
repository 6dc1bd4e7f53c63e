/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BENCH_PROCESSES_H
#define BENCH_PROCESSES_H 1

/* The processes that the bench of the parameter server talks to.
 *
 * A parameter server is measured beside a process that receives and sends
 * bytes over a plain socket.  Both are children of this
 * process, reached over the loopback interface, and have one processor while
 * this process has another one.
 *
 *    struct bench_processes p;
 *
 *    error = bench_processes_start(&p);
 *    if (!error) {
 *        ...store_push(p.client, ...)...
 *        error = bench_processes_exchange(&p, bytes, 4096, 1);
 *    }
 *    bench_processes_stop(&p);
 *
 * The client and the processes are bench_processes_stop()'s to end, also
 * after bench_processes_start() has failed.  One thread. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct store_client;

/* Floats of the largest value that the server holds and the plain process
 * gives: 4 MB. */
#define BENCH_PROCESSES_VALUES ((size_t) 1 << 20)

struct bench_processes {
    struct store_client *client;        /* Of the server. */
    int plain;                  /* A socket to the plain process, or -1. */
    pid_t server_pid, plain_pid;        /* 0: not started. */
};

/* The first bytes to the plain process. */
struct bench_request {
    uint64_t to, from;          /* Bytes that follow, bytes to answer. */
};

/* Returns NULL or a message. */
char *bench_processes_start(struct bench_processes *);
void bench_processes_stop(struct bench_processes *);

/* Sends 'to' of 'bytes', which it makes begin with a request, to the plain
 * process and gets 'from', at most the largest value's, into them.  Returns
 * NULL or a message. */
char *bench_processes_exchange(const struct bench_processes *,
                               uint8_t *bytes, size_t to, size_t from);

#endif /* trainer/ps/bench-processes.h */
