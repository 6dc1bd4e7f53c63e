/* SPDX-License-Identifier: Apache-2.0 */

/* nccl-deadlocks GATE WIRE N SEED: N random collectives of four ranks in two
 * communicators, through a plug-in GATE each, around the plug-in WIRE.
 *
 * The proxy of each rank is a thread.  Each rank has a page of its own, as on
 * hosts of its own, which a thread closes and opens at random, with leases of
 * at most HOLD_MAX_MS: ranks of a job are held at different times, and hosts
 * do not agree on the order.  Prints the number of collectives that did not
 * end; without progress for STUCK_S it is a deadlock. */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/agent/nccl-drive.h"
#include "wire/hold-page.h"

#define N_RANKS 4
#define N_COMMS 2
#define STUCK_S 30

static struct nccl_net nets[N_RANKS];
static struct ring_rank ranks[N_COMMS][N_RANKS];
static struct hold_page *pages[N_RANKS];
static _Atomic int n_ended[N_RANKS];
static _Atomic bool over;
static int n_wanted, seed;
static char dir[] = "/tmp/sct-deadlocks-XXXXXX";

static void
must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* The same numbers in all ranks. */
static struct ring_op
random_op(unsigned int *random)
{
    struct ring_op op = { .kind = rand_r(random) % N_KINDS,
                          .root = rand_r(random) % N_RANKS,
                          .n_chunks = 1 + rand_r(random) % 6 };

    op.bytes = 8 << rand_r(random) % 8;
    return op;
}

/* A proxy: the collectives of both communicators are under way together. */
static void *
run_rank(void *number)
{
    int rank = (struct ring_rank *) number - ranks[0];
    unsigned int random[N_COMMS] = { seed, seed + 1 };
    struct ring_op ops[N_COMMS];
    int left[N_COMMS];

    for (int c = 0; c < N_COMMS; c++) {
        ops[c] = random_op(&random[c]);
        left[c] = n_wanted / N_COMMS;
    }
    while (left[0] || left[1]) {
        for (int c = 0; c < N_COMMS; c++) {
            if (left[c] && ring_progress(&ranks[c][rank], &ops[c])) {
                ops[c] = random_op(&random[c]);
                left[c]--;
                n_ended[rank]++;
            }
        }
        sched_yield();
    }
    return NULL;
}

static void *
hold_at_random(void *aux)
{
    unsigned int random = seed + 2;

    (void) aux;
    while (!over) {
        struct timespec now, pause = { .tv_nsec = 200000 };
        uint64_t until = 0;

        if (rand_r(&random) % 2) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            until = now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000;
            until +=
                rand_r(&random) % 1000 ? 1 + rand_r(&random) % 3 : HOLD_MAX_MS;
        }
        __atomic_store_n(&pages[rand_r(&random) % N_RANKS]->until_ms, until,
                         __ATOMIC_RELAXED);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Loads 'gate' for a rank, as for a job of its own, with its page. */
static void
open_rank(const char *gate, int rank)
{
    char path[256], job[] = { '0' + rank, '\0' };
    int fd;

    snprintf(path, sizeof path, HOLD_PAGE_PATH, dir, "c", job);
    fd = open(path, O_RDWR | O_CREAT, 0644);
    must(fd >= 0 && !ftruncate(fd, HOLD_PAGE_BYTES), path);
    pages[rank] =
        mmap(NULL, HOLD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(pages[rank] != MAP_FAILED, path);
    close(fd);
    must(nccl_net_open_copy(&nets[rank], gate, dir, rank, job[0],
                            8 + (seed + rank / 2) % 5),
         gate);
}

static int
count_ended(void)
{
    int least = n_wanted;

    for (int i = 0; i < N_RANKS; i++) {
        least = n_ended[i] < least ? n_ended[i] : least;
    }
    return least;
}

int
main(int argc, char *argv[])
{
    pthread_t threads[N_RANKS + 1];
    int ended = 0, stuck = 0;
    char path[256];

    must(argc == 5 && mkdtemp(dir), "nccl-deadlocks GATE WIRE N SEED");
    n_wanted = atoi(argv[3]) / N_COMMS * N_COMMS;
    seed = atoi(argv[4]);
    snprintf(path, sizeof path, "mkdir -p %s/holds/c", dir);
    must(!system(path), path);
    setenv("STAGECOACH_NCCL_NET", argv[2], 1);
    setenv("STAGECOACH_RUNDIR", dir, 1);
    setenv("STAGECOACH_COJOB", "c", 1);
    for (int i = 0; i < N_RANKS; i++) {
        open_rank(argv[1], i);
    }
    for (int c = 0; c < N_COMMS; c++) {
        struct ring_rank *ring[N_RANKS];

        for (int i = 0; i < N_RANKS; i++) {
            ring[i] = &ranks[c][i];
            ring[i]->net = &nets[i];
            ring[i]->device = i;
        }
        ring_connect(ring, N_RANKS);
    }
    for (int i = 0; i < N_RANKS; i++) {
        pthread_create(&threads[i], NULL, run_rank, &ranks[0][i]);
    }
    pthread_create(&threads[N_RANKS], NULL, hold_at_random, NULL);
    while (ended < n_wanted && stuck < STUCK_S * 10) {
        int before = ended;

        usleep(100000);
        ended = count_ended();
        stuck = ended > before ? 0 : stuck + 1;
    }
    over = true;
    for (int i = ended < n_wanted ? N_RANKS : 0; i <= N_RANKS; i++) {
        pthread_join(threads[i], NULL);
    }
    snprintf(path, sizeof path, "rm -r %s", dir);
    must(!system(path), path);
    printf("\"deadlocks\": %d, \"collectives\": %d\n", n_wanted - ended,
           n_wanted);
    return ended < n_wanted;
}
