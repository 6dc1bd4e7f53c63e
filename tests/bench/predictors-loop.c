/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/bench/predictors-loop.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "tests/bench/load-trace.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/balance/speed-profile.h"

#define N_WORKERS 8
#define BATCH 1360              /* 50 ms of the whole cluster. */
#define PAUSE_S 0.005           /* Time to exchange parameters between
                                 * iterations. */
#define N_SKIPPED 100           /* Initial iterations that are not measured. */

struct loop {
    struct speed_profile *workers[N_WORKERS];
    struct batch_size_manager *bsm;
    uint32_t sizes[N_WORKERS];
    double t;
};

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void
loop_init(struct loop *loop, const char *predictor, uint64_t seed)
{
    static const double speeds[N_WORKERS] = { 8, 8, 8, 8, 8, 8, 16, 4 };
    static const enum load_kind kinds[N_WORKERS] = {
        LOAD_STEPS, LOAD_STEPS, LOAD_STEPS, LOAD_SPIKES, LOAD_DRIFT,
        LOAD_DRIFT, LOAD_STEPS, LOAD_SPIKES,
    };

    memset(loop, 0, sizeof *loop);
    for (int i = 0; i < N_WORKERS; i++) {
        loop->workers[i] = load_profile(kinds[i], 400 * speeds[i],
                                        seed * N_WORKERS + i);
    }
    batch_size_manager_create(&(struct batch_size_config) {
        .mode = BATCH_SIZE_CPU, .n_workers = N_WORKERS, .batch = BATCH,
        .predictor = predictor, .seed = seed,
    }, &loop->bsm);
}

static void
loop_uninit(struct loop *loop)
{
    for (int i = 0; i < N_WORKERS; i++) {
        speed_profile_destroy(loop->workers[i]);
    }
    batch_size_manager_destroy(loop->bsm);
}

/* Runs one iteration and adds its seconds to 'result'. */
static void
iterate(struct loop *loop, struct loop_result *result)
{
    double seconds[N_WORKERS], cpu[N_WORKERS], memory[N_WORKERS];
    double longest = 0, speed = 0, begin = loop->t;

    for (int i = 0; i < N_WORKERS; i++) {
        seconds[i] = speed_profile_seconds(loop->workers[i], loop->sizes[i],
                                           loop->t);
        longest = fmax(longest, seconds[i]);
        speed += loop->sizes[i] / seconds[i];
    }
    loop->t += longest + PAUSE_S;
    for (int i = 0; i < N_WORKERS; i++) {
        speed_profile_use(loop->workers[i], begin, loop->t, &cpu[i],
                          &memory[i]);
    }
    result->seconds += longest;
    result->ideal += BATCH / speed;

    double began = now();

    for (int i = 0; i < N_WORKERS; i++) {
        batch_size_manager_report(loop->bsm, i, loop->sizes[i], seconds[i],
                                  cpu[i], memory[i]);
    }
    batch_size_manager_next(loop->bsm);
    result->manager_s += now() - began;
}

void
loop_run(const char *predictor, uint64_t seed, int n_iterations,
         struct loop_result *result)
{
    struct loop loop;
    int n = n_iterations - N_SKIPPED;

    loop_init(&loop, predictor ? predictor : "memoryless", seed);
    memcpy(loop.sizes, batch_size_manager_next(loop.bsm), sizeof loop.sizes);
    for (int i = 0; i < n_iterations; i++) {
        const uint32_t *next;

        if (i <= N_SKIPPED) {
            memset(result, 0, sizeof *result);
        }
        iterate(&loop, result);
        next = batch_size_manager_next(loop.bsm);
        if (predictor) {
            result->moved += memcmp(loop.sizes, next,
                                    sizeof loop.sizes) != 0;
            memcpy(loop.sizes, next, sizeof loop.sizes);
        }
    }
    result->seconds /= n;
    result->ideal /= n;
    result->manager_s /= n;
    result->moved /= n;
    loop_uninit(&loop);
}
