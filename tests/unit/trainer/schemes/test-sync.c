/* SPDX-License-Identifier: Apache-2.0 */

/* Synchronisation schemes, in virtual time: which workers wait for which, and
 * what is refused. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/trainer/schemes/sync-cluster.h"
#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/net/frame.h"
#include "trainer/ps/checkpoint.h"
#include "trainer/schemes/sync.h"

/* Seconds that 'scheme' takes for 'n' steps of worker 0. */
static double
time_of(const char *scheme, const double *speeds, uint64_t n)
{
    struct cluster c;
    double seconds;

    cluster_init(&c, scheme, N, speeds);
    cluster_run(&c, n);
    seconds = c.now;
    cluster_uninit(&c);
    return seconds;
}

UNIT_TEST(bsp_is_as_slow_as_its_slowest)
{
    assert_near(time_of("bsp", mixed, 50), 50 * 64 / 400.);
}

UNIT_TEST(static_ratios_make_all_end_together)
{
    assert_true(fabs(time_of("static,ratios=2:2:2:2:2:2:4:1", mixed, 50)
                     / (50 * BATCH / 6800.) - 1) < 0.035);
}

UNIT_TEST(lbbsp_comes_near_the_sum_of_speeds)
{
    const char *const schemes[] = { "lbbsp-cpu", "lbbsp-gpu" };

    for (size_t i = 0; i < 2; i++) {
        struct cluster c;
        double before;

        cluster_init(&c, schemes[i], N, mixed);
        cluster_run(&c, 50);
        assert_int_equal(c.role[0], SYNC_ROLE_REPORTS
                                    | (i ? SYNC_ROLE_TRANSFERS : 0));
        before = c.now;
        cluster_run(&c, 100);
        assert_true((c.now - before) / (50 * BATCH / 6800.) < 1.1);
        cluster_uninit(&c);
    }
}

#define LAST 50                 /* Iteration of a checkpoint. */

static const struct frame_hello hello = {
    .n_workers = N, .n_shards = 1, .n_parameters = 1,
};

/* Reads the checkpoint in 'dir' into a new cluster. */
static void
cluster_resume(struct cluster *c, const char *scheme, const char *dir)
{
    uint64_t iteration = LAST;

    cluster_init(c, scheme, N, mixed);
    assert_null(checkpoint_read(dir, &hello, false, &iteration, c->spec.class,
                                c->sync));
    cluster_start(c);
    assert_int_equal(c->iteration[0], LAST);
}

UNIT_TEST(lbbsp_resumes_with_the_sizes_of_its_checkpoint)
{
    const char *const schemes[] = { "lbbsp-cpu", "lbbsp-gpu" };
    char dir[] = "/tmp/test-sync-XXXXXX";

    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < 2; i++) {
        struct cluster before, after;

        cluster_init(&before, schemes[i], N, mixed);
        cluster_run(&before, LAST);
        assert_null(checkpoint_write(dir, &hello, before.spec.class,
                                     before.sync, LAST));
        cluster_resume(&after, schemes[i], dir);
        assert_memory_equal(after.share, before.share, sizeof before.share);

        /* Nor does the second iteration begin with equal sizes. */
        cluster_run(&after, 3);
        assert_true(after.now / (3 * BATCH / 6800.) < 1.1);
        cluster_uninit(&before);
        cluster_uninit(&after);
        checkpoint_prune(dir, &hello, 0, UINT64_MAX);
    }
    assert_int_equal(rmdir(dir), 0);
}

UNIT_TEST(refuses_the_checkpoint_of_another_number_of_workers)
{
    struct frame_hello fewer = hello;
    char dir[] = "/tmp/test-sync-XXXXXX", *error;
    uint64_t iteration = LAST;
    struct cluster c;

    assert_non_null(mkdtemp(dir));
    cluster_init(&c, "bsp", N, mixed);
    assert_null(checkpoint_write(dir, &hello, c.spec.class, c.sync, LAST));
    cluster_uninit(&c);
    fewer.n_workers--;
    cluster_init(&c, "bsp", N - 1, mixed);
    error =
        checkpoint_read(dir, &fewer, false, &iteration, c.spec.class, c.sync);
    assert_says(error, "of another training");
    cluster_uninit(&c);
    checkpoint_prune(dir, &hello, 0, UINT64_MAX);
    assert_int_equal(rmdir(dir), 0);
}

UNIT_TEST(backup_does_not_wait_for_the_slowest)
{
    struct cluster c;

    cluster_init(&c, "backup", N, mixed);
    cluster_run(&c, 50);
    assert_near(c.now, 50 * 64 / 800.);

    /* Each step of the slowest would be as long as two of the others', and
     * is dropped when they are done. */
    assert_int_equal(c.n_steps[7], 49);
    assert_true(c.skips[7]);
    assert_int_equal(c.n_steps[6], 50);
    cluster_uninit(&c);
}

/* One is late in the first iteration and another one in the third, in which
 * the first one would still be at its first. */
UNIT_TEST(backup_lets_late_workers_join_at_once)
{
    double speeds[N] = { 800, 800, 800, 80, 800, 800, 800, 800 };
    struct cluster c;

    cluster_init(&c, "backup", N, speeds);
    cluster_run(&c, 1);
    assert_true(c.skips[3]);
    speeds[3] = 800;
    speeds[5] = 80;
    cluster_run(&c, 4);
    assert_near(c.now, 4 * 64 / 800.);
    assert_true(c.n_steps[3] >= 3);
    cluster_uninit(&c);
}

/* A gradient that another server's scheme had a worker drop is not waited for
 * here, unless no others can come. */
UNIT_TEST(backup_does_not_wait_for_workers_that_skip)
{
    struct cluster c;
    uint64_t iteration;
    float loss;

    cluster_init(&c, "backup", 3, mixed);
    *sync_inbox(c.sync, 1) = *sync_inbox(c.sync, 2) = 1;
    assert_null(c.spec.class->push(c.sync, 0, 0, 0, 0));
    assert_null(c.spec.class->push(c.sync, 1, 0, 64, 0));
    assert_false(c.spec.class->ready(c.sync, 1, &iteration, &loss));
    assert_null(c.spec.class->push(c.sync, 2, 0, 64, 0));
    assert_true(c.spec.class->ready(c.sync, 0, &iteration, &loss));
    assert_near(*sync_weights(c.sync), -0.1);
    for (int i = 0; i < 3; i++) {
        assert_null(c.spec.class->push(c.sync, i, 1, 0, 0));
    }
    assert_true(c.spec.class->ready(c.sync, 0, &iteration, &loss));
    assert_int_equal(iteration, 2);
    cluster_uninit(&c);
}

UNIT_TEST(asp_workers_do_not_wait)
{
    struct cluster c;

    cluster_init(&c, "asp", N, mixed);
    cluster_run(&c, 100);
    assert_near(c.now, 100 * 64 / 800.);
    assert_true(llabs((long long) c.n_steps[6] - 200) <= 1);
    assert_true(llabs((long long) c.n_steps[7] - 50) <= 1);
    cluster_uninit(&c);
}

UNIT_TEST(ssp_keeps_its_bound)
{
    static const char *const schemes[] = {
        "ssp,staleness=0", "ssp,staleness=1", "ssp,staleness=3",
        "essp,staleness=0", "essp,staleness=1", "essp,staleness=3",
    };
    static const uint64_t bounds[] = { 0, 1, 3, 0, 1, 3 };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct cluster c;

        cluster_init(&c, schemes[i], N, mixed);
        cluster_run(&c, 60);

        /* The slack is used up, and then the slowest decides. */
        assert_int_equal(c.most_ahead, bounds[i]);
        assert_true(c.now >= (60 - bounds[i] - 1) * 64 / 400.);
        cluster_uninit(&c);
    }
}

/* Each worker gets weights as often as all have pushed, and once for each
 * push, also while it computes. */
UNIT_TEST(essp_sends_weights_to_computing_workers)
{
    const struct sync_class *class = &sync_essp;
    struct cluster c;
    uint64_t iteration;
    float loss;

    cluster_init(&c, "essp,staleness=2", 2, mixed);
    for (int i = 0; i < 2; i++) {
        assert_true(class->ready(c.sync, i, &iteration, &loss));
        assert_int_equal(iteration, 0);
        class->sent(c.sync, i);
        assert_false(class->ready(c.sync, i, &iteration, &loss));
    }
    assert_int_equal(class->max_in_flight(c.sync), 2);
    for (int k = 0; k < 3; k++) {
        assert_null(class->push(c.sync, 0, k, 1, 0));
        assert_false(class->ready(c.sync, 0, &iteration, &loss));
    }
    assert_null(class->push(c.sync, 1, 0, 1, 0));
    for (int i = 0; i < 2; i++) {
        assert_true(class->ready(c.sync, i, &iteration, &loss));
        assert_int_equal(iteration, 1);
        class->sent(c.sync, i);
        assert_false(class->ready(c.sync, i, &iteration, &loss));
    }
    cluster_uninit(&c);
}

/* The problem has one minimum: all schemes must find it. */
UNIT_TEST(every_scheme_converges)
{
    static const char *const schemes[] = {
        "bsp", "asp", "ssp", "essp", "backup",
        "static,ratios=2:2:2:2:2:2:4:1",
        "lbbsp-cpu", "lbbsp-gpu", "groups", "groups,groups=4",
    };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct cluster c;

        cluster_init(&c, schemes[i], N, mixed);
        cluster_run(&c, 150);
        assert_true(fabs(*sync_weights(c.sync) - 1) < 0.01);
        cluster_uninit(&c);
    }
}

/* Bytes of this process in the machine's memory. */
static size_t
resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Of a large model the server has the weights, and gradients of workers that
 * wait for others; what has made an update is given back. */
UNIT_TEST(applied_gradients_of_large_models_take_no_memory)
{
    static const char *const schemes[] = { "bsp", "asp", "groups" };
    const size_t n = (size_t) 1 << 24, bytes = n * sizeof(float);
    struct backend *backend;

    backend_open(&backend_cpu, 0, 1, &backend);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t before = resident(), most = bytes + bytes / 2;
        struct sync_spec spec;
        struct sync *sync;

        assert_null(sync_spec_parse(schemes[i], &spec));
        sync = sync_create(spec.class, &(struct sync_config) {
            .backend = backend, .n_workers = 2, .n = n, .spec = &spec,
            .optimiser = optimiser_defaults(optimiser_find("sum"), 0, 0),
        });
        for (int k = 0; k < 2; k++) {
            for (int worker = 0; worker < 2; worker++) {
                float *inbox = sync_inbox(sync, worker);

                for (size_t j = 0; j < n; j++) {
                    inbox[j] = 1;
                }
                assert_null(spec.class->push(sync, worker, k, 1, 0));
            }
            assert_true(resident() - before < most);
            assert_true(sync_weights(sync)[n - 1] == k + 1);
        }
        sync_destroy(sync);
    }
    backend_close(backend);
}

/* A worker that pushes what it was not asked for. */
UNIT_TEST(refuses_gradients_of_another_iteration)
{
    static const char *const schemes[] = {
        "bsp", "asp", "ssp", "essp", "backup",
    };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct cluster c;
        char *error;

        cluster_init(&c, schemes[i], 2, mixed);
        error = c.spec.class->push(c.sync, 0, 1, 1, 0);
        assert_is(error, "gradient of iteration 1; expected 0");
        assert_null(c.spec.class->push(c.sync, 0, 0, 1, 0));
        error = c.spec.class->push(c.sync, 0, 0, 1, 0);
        assert_non_null(error);
        free(error);
        cluster_uninit(&c);
    }
}

UNIT_TEST(refuses_a_batch_that_is_too_small_to_divide)
{
    struct cluster c;
    char *error;

    cluster_init(&c, "lbbsp-cpu", 2, mixed);
    assert_null(c.spec.class->push(c.sync, 0, 0, 1, 0));
    error = c.spec.class->push(c.sync, 1, 0, 0, 0);
    assert_non_null(error);
    free(error);
    cluster_uninit(&c);
}

/* What another server's scheme decides, one that follows does not repeat. */
UNIT_TEST(followers_send_no_messages)
{
    struct cluster c;
    struct sync *sync;
    struct sync_message m;
    int to;

    cluster_init(&c, "lbbsp-cpu", 2, mixed);
    sync = sync_create(c.spec.class, &(struct sync_config) {
        .backend = c.b, .n_workers = 2, .n = 1,
        .optimiser = optimiser_defaults(optimiser_find("sgd"), 0.1f, 0),
        .spec = &c.spec, .follows = true,
    });
    assert_null(c.spec.class->push(sync, 0, 0, 8, 0));
    assert_null(c.spec.class->push(sync, 1, 0, 8, 0));
    assert_false(sync_take(sync, &to, &m));
    assert_true(sync_take(c.sync, &to, &m));
    sync_destroy(sync);
    cluster_uninit(&c);
}

static const struct {
    const char *text, *error;
} bad_specs[] = {
    { "psb", "\"psb\" is not a scheme" },
    { "", "\"\" is not a scheme" },
    { "bsp,staleness=1", "\"staleness\" is not a parameter of bsp" },
    { "ssp,stale", "\"stale\" is not a parameter of ssp" },
    { "ssp,", "\"\" is not a parameter of ssp" },
    { "ssp,staleness=-1",
      "staleness: \"-1\" is not an integer from 0 to 1000000" },
    { "backup,backups=x", "backups: \"x\" is not an integer from 0 to 1023" },
    { "static,ratios=1:0",
      "ratios: \"1:0\" is not up to 64 numbers from 0 to 1e6 with colons" },
    { "static,ratios=1:2:",
      "ratios: \"1:2:\" is not up to 64 numbers from 0 to 1e6 with colons" },
    { "groups,groups=3", "groups: 3 is not a power of 2" },
    { "groups,max=0", "max: \"0\" is not an integer from 1 to 512" },
    { "groups,tau=0", "tau: \"0\" is not an integer from 1 to 1000000" },
    { "lbbsp-cpu,predictor=oracle",
      "predictor: \"oracle\" is not a predictor" },
    { "prague,group=1", "group: \"1\" is not an integer from 2 to 128" },
    { "adpsgd,group=2", "\"group\" is not a parameter of adpsgd" },
    { "adpsgd", "adpsgd: a scheme of peers, which have no server" },
};

UNIT_TEST(names_what_is_wrong_with_a_scheme)
{
    struct sync_spec spec;
    char *error;

    for (size_t i = 0; i < sizeof bad_specs / sizeof bad_specs[0]; i++) {
        error = sync_spec_parse(bad_specs[i].text, &spec);
        assert_is(error, bad_specs[i].error);
    }
    assert_null(sync_spec_parse("static,ratios=1:2", &spec));
    assert_is(sync_spec_check(&spec, 3), "ratios: 2 for 3 workers");
    assert_null(sync_spec_parse("backup,backups=3", &spec));
    assert_is(sync_spec_check(&spec, 3), "backups: 3 of 3 workers");
    assert_null(sync_spec_parse("groups,groups=2,max=2", &spec));
    assert_is(sync_spec_check(&spec, 3),
              "max: not allowed with groups=2, which is exact");
    assert_null(sync_spec_parse("essp,staleness=65", &spec));
    error = sync_spec_check(&spec, 3);
    assert_is(error, "staleness: 65; expected at most 64 for "
                     "essp");
}
