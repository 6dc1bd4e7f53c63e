/* SPDX-License-Identifier: Apache-2.0 */

/* schemes-virtual PROFILE WORKERS BATCH RATE TARGET BATCHES SEED REPORTS
 * SCHEME...
 *
 * Trains an MLP of 32,48,10 under each scheme in virtual time: gradients,
 * updates and messages are real, and the time of each batch is that of the
 * speed profile in the file PROFILE (sync-cluster.h).  A run ends after
 * BATCHES times BATCH samples; SEED is that of the order of samples and of the
 * profile.  REPORTS is 0 if workers report no times.
 *
 * Prints one JSON object with a member for each scheme:
 *
 *    step_s      seconds, of the run / the mean number of steps of a worker
 *    to_loss_s   seconds until a loss of TARGET, by interpolation, if one is
 *                reached
 *    to_loss     batches until then
 *    accuracy    at the end */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trainer/schemes/sync-cluster.h"
#include "trainer/backend/backend.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/balance/speed-profile.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

#define EVALUATE 2 /* Batches between two evaluations. */

struct bench {
    uint64_t n_batches, seed;
    double target;
    struct backend *backend;
    struct dataset *data;
    struct model *model;
    struct batch *samples;
    struct speed_profile_set *profile;
    struct speed_profile *speeds[CLUSTER_MAX];
};

static void
check(char *error)
{
    if (error) {
        fprintf(stderr, "schemes-virtual: %s\n", error);
        exit(1);
    }
}

static void
set_weights(struct model *model, const float *weights)
{
    memcpy(model->weights, weights, model->n_parameters * sizeof *weights);
    model_weights_changed(model);
}

static void
add_gradient(struct cluster *c, const float *weights, uint64_t first,
             uint32_t n, float *sum, double *loss)
{
    struct bench *b = c->job->aux;
    double more;

    set_weights(b->model, weights);
    dataset_fill(b->data, b->seed, first, n, b->samples);
    model_gradient(b->model, b->samples, NULL, NULL, &more);
    batch_size_aggregate(b->model->n_parameters, n, b->model->gradient, sum);
    *loss += more;
}

static double
get_seconds(struct cluster *c, int worker, uint32_t n)
{
    struct bench *b = c->job->aux;

    return speed_profile_seconds(b->speeds[worker], n, c->now);
}

static void
complete_report(struct cluster *c, int worker, struct sync_message *m)
{
    struct bench *b = c->job->aux;
    double cpu, memory;

    speed_profile_use(b->speeds[worker], c->began_at[worker], c->now, &cpu,
                      &memory);
    m->cpu = cpu;
    m->memory = memory;
    m->total = speed_profile_max_batch(b->speeds[worker]);
}

struct evaluation {
    double now, batches, loss, accuracy;
};

static struct evaluation
evaluate(struct cluster *c)
{
    struct bench *b = c->job->aux;
    struct evaluation e = { c->now, (double) c->n_samples / c->job->batch };

    set_weights(b->model, sync_weights(c->sync));
    model_evaluate(b->model, b->data, &e.loss, &e.accuracy);
    return e;
}

static void
train(struct bench *b, const struct cluster_job *job, const char *scheme,
      int n_workers)
{
    double to_loss_s = INFINITY, to_loss = INFINITY;
    struct evaluation last;
    struct cluster c;

    for (int i = 0; i < n_workers; i++) {
        b->speeds[i] = speed_profile_create(b->profile, i, b->seed);
    }
    cluster_init_job(&c, job, scheme, n_workers);
    model_init_weights(b->model, 1, sync_weights(c.sync));
    last = evaluate(&c);
    while (c.n_samples < b->n_batches * job->batch) {
        cluster_start(&c);
        cluster_step(&c);
        if (c.n_samples >= (last.batches + EVALUATE) * job->batch) {
            struct evaluation e = evaluate(&c);
            double part = (last.loss - b->target) / (last.loss - e.loss);

            if (e.loss <= b->target && isinf(to_loss)) {
                to_loss_s = last.now + part * (e.now - last.now);
                to_loss = last.batches + part * (e.batches - last.batches);
            }
            last = e;
        }
    }
    printf("\"%s\": {\"step_s\": %.6g, ", scheme,
           c.now * n_workers / c.n_pushed);
    if (isfinite(to_loss)) {
        printf("\"to_loss_s\": %.6g, \"to_loss\": %.6g, ", to_loss_s, to_loss);
    }
    printf("\"accuracy\": %.4f}", last.accuracy);
    cluster_uninit(&c);
    for (int i = 0; i < n_workers; i++) {
        speed_profile_destroy(b->speeds[i]);
    }
}

static void
open_bench(struct bench *b)
{
    struct model_config config = { .max_batch = 256,
                                   .n_inputs = 32,
                                   .n_classes = 10,
                                   .shape = { .n = 3,
                                              .width = { 32, 48, 10 } } };
    struct dataset_config data = { .n_inputs = 32,
                                   .n_classes = 10,
                                   .n_train = 8192,
                                   .n_held = 2048,
                                   .seed = 1 };

    if (backend_open(&backend_cpu, 0, 1, &b->backend)) {
        exit(1);
    }
    config.backend = b->backend;
    check(model_create(&model_mlp, &config, &b->model));
    b->data = dataset_generate(&data);
    b->samples = batch_create();
}

int
main(int argc, char *argv[])
{
    struct bench b = { 0 };
    struct cluster_job job = { .optimiser = "momentum",
                               .momentum = 0.9f,
                               .aux = &b,
                               .gradient = add_gradient,
                               .seconds = get_seconds,
                               .report = complete_report };

    if (argc < 10) {
        fputs("usage: schemes-virtual PROFILE WORKERS BATCH RATE TARGET "
              "BATCHES SEED REPORTS SCHEME...\n",
              stderr);
        return 2;
    }
    check(speed_profile_set_from_file(argv[1], &b.profile));
    job.batch = atoi(argv[3]);
    job.rate = atof(argv[4]);
    b.target = atof(argv[5]);
    b.n_batches = atoi(argv[6]);
    b.seed = atoi(argv[7]);
    job.silent = !atoi(argv[8]);
    open_bench(&b);
    job.n_parameters = b.model->n_parameters;
    for (int i = 9; i < argc; i++) {
        printf("%s", i > 9 ? ", " : "{");
        train(&b, &job, argv[i], atoi(argv[2]));
    }
    printf("}\n");
    batch_destroy(b.samples);
    dataset_destroy(b.data);
    model_destroy(b.model);
    backend_close(b.backend);
    speed_profile_set_destroy(b.profile);
    return 0;
}
