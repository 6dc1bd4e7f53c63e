/* SPDX-License-Identifier: Apache-2.0 */

/* A trainer that has only what is installed: check-balance-library.py compiles
 * it with the public header and links it with libstagecoach-balance. */

#include <batch-size-manager.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(CONDITION)                                                \
    ((CONDITION) ? (void) 0                                             \
     : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #CONDITION), \
        exit(1)))

/* Creates a manager that must be refused with 'expected'. */
static void
check_refused(struct batch_size_config config, const char *expected)
{
    struct batch_size_manager *bsm = (void *) &config;
    char *error = batch_size_manager_create(&config, &bsm);

    CHECK(!bsm);
    CHECK(error && !strcmp(error, expected));
    free(error);
}

/* Two workers, the second with half the speed of the first. */
static void
check_mode(enum batch_size_mode mode)
{
    struct batch_size_config config = {
        .mode = mode, .n_workers = 2, .batch = 300, .seed = 1,
    };
    struct batch_size_manager *bsm;
    const uint32_t *sizes;

    CHECK(!batch_size_manager_create(&config, &bsm));
    memset(&config, 0xff, sizeof config);       /* The manager keeps none. */
    sizes = batch_size_manager_next(bsm);
    CHECK(sizes[0] == 150 && sizes[1] == 150);
    CHECK(batch_size_manager_report(bsm, -1, 1, 1, 0, 0) == EINVAL);
    CHECK(batch_size_manager_report(bsm, 2, 1, 1, 0, 0) == EINVAL);
    for (int i = 0; i < 60; i++) {
        sizes = batch_size_manager_next(bsm);
        CHECK(sizes[0] + sizes[1] == 300);
        CHECK(!batch_size_manager_report(bsm, 0, sizes[0], sizes[0] * 1e-3,
                                         0, 0));
        CHECK(!batch_size_manager_report(bsm, 1, sizes[1], sizes[1] * 2e-3,
                                         0, 0));
    }
    CHECK(abs((int) sizes[0] - 200) <= 4);
    batch_size_manager_destroy(bsm);
}

/* The weighted mean of unequal parts is the mean of all samples. */
static void
check_aggregate(void)
{
    const float first[] = { 1, -2 }, second[] = { 4, 8 };
    float sum[] = { 0, 0 };

    batch_size_aggregate(2, 0.75, first, sum);
    batch_size_aggregate(2, 0.25, second, sum);
    CHECK(fabsf(sum[0] - 1.75f) < 1e-6f && fabsf(sum[1] - 0.5f) < 1e-6f);
}

/* Others use some of the memory of any machine. */
static void
check_meter(void)
{
    struct batch_size_meter *meter = batch_size_meter_create(1);
    double cpu = -1, memory = -1;

    batch_size_meter_read(meter, &cpu, &memory);
    CHECK(cpu >= 0 && cpu <= 1 && memory > 0 && memory <= 1);
    batch_size_meter_destroy(meter);
    batch_size_meter_destroy(NULL);
}

int
main(void)
{
    uint32_t max[] = { 4, 3 };

    check_refused(
        (struct batch_size_config){
            .n_workers = 3,
            .batch = 2,
        },
        "batch: 2 samples for 3 workers; expected at least one for each");
    check_refused((struct batch_size_config) {
        .n_workers = 2, .batch = 8, .max = max,
    }, "batch: 8 samples, the workers have memory for 7");
    check_refused((struct batch_size_config) {
        .n_workers = 2, .batch = 8, .predictor = "oracle",
    }, "predictor: there is no \"oracle\"");
    check_refused(
        (struct batch_size_config){
            .mode = (enum batch_size_mode) 2,
            .n_workers = 2,
            .batch = 8,
        },
        "mode: 2; expected 0 or 1");
    check_mode(BATCH_SIZE_CPU);
    check_mode(BATCH_SIZE_GPU);
    check_aggregate();
    check_meter();
    batch_size_manager_destroy(NULL);
    return 0;
}
