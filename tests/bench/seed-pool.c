/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/bench/seed-pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static void
make_pipe(int ends[2])
{
    if (pipe(ends)) {
        die("pipe");
    }
}

/* Writes the numbers of the tasks to a pipe.  Returns its reading end. */
static int
make_tasks(int n)
{
    int ends[2];

    make_pipe(ends);
    if (!fork()) {
        for (int i = 0; i < n; i++) {
            if (write(ends[1], &i, sizeof i) != sizeof i) {
                _exit(1);
            }
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

/* Runs tasks until the pipe is empty.  A message is the number of the task,
 * then its outcome. */
static void
work(int tasks, int outcomes, void (*run)(int, void *), size_t size)
{
    char *message = calloc(1, sizeof(int) + size);
    int task;

    if (!message) {
        die("calloc");
    }
    while (read(tasks, &task, sizeof task) == sizeof task) {
        memcpy(message, &task, sizeof task);
        run(task, message + sizeof task);
        if (write(outcomes, message, sizeof task + size)
            != (ssize_t) (sizeof task + size)) {
            die("write");
        }
    }
    free(message);
}

/* Starts the workers.  Returns the reading end of the pipe of outcomes. */
static int
start_workers(int tasks, void (*run)(int, void *), size_t size)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    int ends[2];

    make_pipe(ends);
    for (long i = 0; i < n || !i; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            die("fork");
        } else if (!pid) {
            close(ends[0]);
            work(tasks, ends[1], run, size);
            _exit(0);
        }
    }
    close(tasks);
    close(ends[1]);
    return ends[0];
}

static void
show_progress(int done, int all)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\rtasks: %d of %d\033[K%s", done, all,
                done == all ? "\n" : "");
    }
}

void
seed_pool_run(int n, void (*run)(int task, void *outcome), size_t size,
              void *outcomes)
{
    char message[4096];
    int ends = start_workers(make_tasks(n), run, size);
    int n_done = 0;
    int status;

    while (read(ends, message, sizeof(int) + size)
           == (ssize_t) (sizeof(int) + size)) {
        int task;

        memcpy(&task, message, sizeof task);
        memcpy((char *) outcomes + task * size, message + sizeof task, size);
        show_progress(++n_done, n);
    }
    close(ends);
    while (wait(&status) > 0) {
        if (status) {
            fputs("a worker process of the benchmark failed\n", stderr);
            exit(1);
        }
    }
    if (n_done < n) {
        fputs("outcomes of the benchmark are missing\n", stderr);
        exit(1);
    }
}
