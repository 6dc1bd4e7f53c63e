/* SPDX-License-Identifier: Apache-2.0 */

/* schemes-virtual PROFILE WORKERS BATCH RATE TARGET BATCHES SEED REPORTS
 * SCHEME...
 *
 * Trains an MLP of 32,48,10 under each scheme in virtual time: gradients,
 * updates and messages are real, and the time of each batch is that of the
 * speed profile in the file PROFILE, so nothing here depends on a clock.
 * Messages and weights take no time.  A run ends after BATCHES times BATCH
 * samples; SEED is that of the order of samples and of the profile.  REPORTS
 * is 0 if workers report no times.
 *
 * Prints one JSON object with a member for each scheme:
 *
 *    batch_s     seconds, of the run / BATCHES
 *    to_loss_s   seconds until a loss of TARGET, by interpolation, if one is
 *                reached
 *    to_loss     batches until then
 *    accuracy    at the end */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/balance/speed-profile.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/steal.h"
#include "trainer/schemes/sync.h"

#define EVALUATE 2 /* Batches between two evaluations. */

struct worker {
    struct speed_profile *speed;
    struct shard share;      /* Of each batch. */
    uint32_t role, n_pieces; /* As the scheme has sent. */
    uint64_t iteration;      /* Of the weights. */
    uint32_t owed;           /* Weights that are to come. */
    float *weights;

    /* The step. */
    bool computes, skips;
    double began, ends; /* Of the step, and of the piece. */
    struct steal steal;
    uint32_t n; /* Samples of 'sum' and 'loss'. */
    float *sum;
    double loss;
};

struct bench {
    const char *profile;
    int n_workers;
    uint64_t batch, n_batches, seed;
    double rate, target;
    bool reports;

    struct backend *backend;
    struct dataset *data;
    struct model *model;
    struct batch *samples;

    /* Of a run. */
    struct sync_spec spec;
    struct sync *sync;
    struct worker *workers;
    uint64_t n_done; /* Samples. */
    double now;
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
set_weights(struct bench *b, const float *weights)
{
    memcpy(b->model->weights, weights,
           b->model->n_parameters * sizeof *weights);
    model_weights_changed(b->model);
}

static void
take_message(struct bench *b, struct worker *w, const struct sync_message *m)
{
    if (m->kind == SYNC_ROLE) {
        w->role = m->n;
        w->n_pieces = m->n & (SYNC_ROLE_STEALS | SYNC_ROLE_SKIPS) && m->total
                          ? m->total
                          : 1;
    } else if (m->kind == SYNC_ASSIGN) {
        check(sync_assigned_shard(m, b->batch, &w->share));
    } else if (m->kind == SYNC_SKIP) {
        w->skips = w->computes;
        w->ends = w->skips ? b->now : w->ends;
    } else {
        steal_take(&w->steal, m);
    }
}

/* Delivers all messages. */
static void
deliver(struct bench *b)
{
    struct sync_message m;
    int to = 0;

    while (to >= 0) {
        while (sync_take(b->sync, &to, &m)) {
            take_message(b, &b->workers[to], &m);
        }
        to = -1;
        for (int i = 0; i < b->n_workers; i++) {
            while (steal_post(&b->workers[i].steal, &m)) {
                check(b->spec.class->message(b->sync, i, &m));
                to = i;
            }
        }
    }
}

/* The iteration of the next gradient. */
static uint64_t
iteration_of(const struct worker *w)
{
    return w->iteration + w->owed;
}

static void
begin_piece(struct bench *b, struct worker *w, uint32_t first, uint32_t n)
{
    double loss;

    set_weights(b, w->weights);
    dataset_fill(b->data, b->seed, iteration_of(w) * b->batch + first, n,
                 b->samples);
    model_gradient(b->model, b->samples, NULL, NULL, &loss);
    batch_size_aggregate(b->model->n_parameters, n, b->model->gradient,
                         w->sum);
    w->n += n;
    w->loss += loss;
    w->ends = b->now + speed_profile_seconds(w->speed, n, b->now);
}

static void
push(struct bench *b, struct worker *w)
{
    const struct sync_class *class = b->spec.class;
    int rank = w - b->workers;
    uint32_t n = w->skips ? 0 : w->n;
    float *inbox = sync_inbox(b->sync, rank);

    if (b->reports && w->role & SYNC_ROLE_REPORTS) {
        struct sync_message m = { .kind = SYNC_REPORT,
                                  .n = n,
                                  .total = speed_profile_max_batch(w->speed),
                                  .seconds = b->now - w->began };
        double cpu, memory;

        speed_profile_use(w->speed, w->began, b->now, &cpu, &memory);
        m.cpu = cpu;
        m.memory = memory;
        check(class->message(b->sync, rank, &m));
    }
    memset(inbox, 0, b->model->n_parameters * sizeof *inbox);
    if (n) {
        batch_size_aggregate(b->model->n_parameters, 1. / n, w->sum, inbox);
    }
    w->computes = w->skips = false;
    check(class->push(b->sync, rank, iteration_of(w), n, n ? w->loss / n : 0));
    w->owed++;
    b->n_done += n;
}

/* Begins the next piece of the step, or ends it. */
static void
go_on(struct bench *b, struct worker *w)
{
    uint32_t piece = (w->share.n + w->n_pieces - 1) / w->n_pieces, first, n;

    while (!w->skips) {
        if (steal_next(&w->steal, piece, &first, &n)) {
            begin_piece(b, w, first, n);
            return;
        }
        if (steal_idle(&w->steal)) {
            break;
        }
        deliver(b);
    }
    push(b, w);
    deliver(b);
}

/* Begins a step if the worker may. */
static void
begin_step(struct bench *b, struct worker *w)
{
    const struct sync_class *class = b->spec.class;
    int rank = w - b->workers;
    size_t bytes = b->model->n_parameters * sizeof *w->weights;
    uint64_t iteration;
    float loss;

    while (!w->computes && w->owed
           && class->ready(b->sync, rank, &iteration, &loss)) {
        memcpy(w->weights, sync_weights(b->sync), bytes);
        w->iteration = iteration;
        w->owed--;
        if (class->sent) {
            class->sent(b->sync, rank);
        }
    }
    if (w->computes
        || w->owed
               > (class->max_in_flight ? class->max_in_flight(b->sync) : 0)) {
        return;
    }
    memset(w->sum, 0, bytes);
    w->n = w->loss = 0;
    w->computes = true;
    w->began = b->now;
    steal_begin(&w->steal, rank, w->role & SYNC_ROLE_STEALS ? b->n_workers : 1,
                iteration_of(w), w->share.first, w->share.n);
    go_on(b, w);
}

static struct worker *
find_next(struct bench *b)
{
    struct worker *next = NULL;

    for (int i = 0; i < b->n_workers; i++) {
        struct worker *w = &b->workers[i];

        if (w->computes && (!next || w->ends < next->ends)) {
            next = w;
        }
    }
    return next;
}

static void
begin_run(struct bench *b, const char *scheme)
{
    struct sync_config config = { .backend = b->backend,
                                  .n_workers = b->n_workers,
                                  .spec = &b->spec,
                                  .n = b->model->n_parameters,
                                  .optimiser = optimiser_defaults(
                                      optimiser_find("momentum"), b->rate,
                                      0.9f) };
    struct speed_profile_set *set;

    check(sync_spec_parse(scheme, &b->spec));
    check(sync_spec_check(&b->spec, b->n_workers));
    check(speed_profile_set_from_file(b->profile, &set));
    b->sync = sync_create(b->spec.class, &config);
    model_init_weights(b->model, 1, sync_weights(b->sync));
    b->workers = allocate(b->n_workers, sizeof *b->workers);
    b->n_done = b->now = 0;
    for (int i = 0; i < b->n_workers; i++) {
        b->workers[i] = (struct worker){
            .speed = speed_profile_create(set, i, b->seed),
            .share = shard_range(b->batch, i, b->n_workers),
            .n_pieces = 1,
            .owed = 1,
            .weights = allocate(config.n, sizeof(float)),
            .sum = allocate(config.n, sizeof(float)),
        };
    }
    speed_profile_set_destroy(set);
    deliver(b);
}

static void
end_run(struct bench *b)
{
    for (int i = 0; i < b->n_workers; i++) {
        speed_profile_destroy(b->workers[i].speed);
        free(b->workers[i].weights);
        free(b->workers[i].sum);
    }
    free(b->workers);
    sync_destroy(b->sync);
}

struct evaluation {
    double now, batches, loss, accuracy;
};

static struct evaluation
evaluate(struct bench *b)
{
    struct evaluation e = { b->now, (double) b->n_done / b->batch };

    set_weights(b, sync_weights(b->sync));
    model_evaluate(b->model, b->data, &e.loss, &e.accuracy);
    return e;
}

static void
train(struct bench *b, const char *scheme)
{
    double to_loss_s = INFINITY, to_loss = INFINITY;
    struct evaluation last;

    begin_run(b, scheme);
    last = evaluate(b);
    while (b->n_done < b->n_batches * b->batch) {
        struct worker *w;

        for (int i = 0; i < b->n_workers; i++) {
            begin_step(b, &b->workers[i]);
        }
        w = find_next(b);
        b->now = w->ends;
        go_on(b, w);
        if (b->n_done >= (last.batches + EVALUATE) * b->batch) {
            struct evaluation e = evaluate(b);
            double part = (last.loss - b->target) / (last.loss - e.loss);

            if (e.loss <= b->target && isinf(to_loss)) {
                to_loss_s = last.now + part * (e.now - last.now);
                to_loss = last.batches + part * (e.batches - last.batches);
            }
            last = e;
        }
    }
    printf("\"%s\": {\"batch_s\": %.6g, ", scheme, b->now / b->n_batches);
    if (isfinite(to_loss)) {
        printf("\"to_loss_s\": %.6g, \"to_loss\": %.6g, ", to_loss_s, to_loss);
    }
    printf("\"accuracy\": %.4f}", last.accuracy);
    end_run(b);
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
    struct bench b = { .profile = argv[1] };

    if (argc < 10) {
        fputs("usage: schemes-virtual PROFILE WORKERS BATCH RATE TARGET "
              "BATCHES SEED REPORTS SCHEME...\n",
              stderr);
        return 2;
    }
    b.n_workers = atoi(argv[2]);
    b.batch = atoi(argv[3]);
    b.rate = atof(argv[4]);
    b.target = atof(argv[5]);
    b.n_batches = atoi(argv[6]);
    b.seed = atoi(argv[7]);
    b.reports = atoi(argv[8]);
    open_bench(&b);
    for (int i = 9; i < argc; i++) {
        printf("%s", i > 9 ? ", " : "{");
        train(&b, argv[i]);
    }
    printf("}\n");
    batch_destroy(b.samples);
    dataset_destroy(b.data);
    model_destroy(b.model);
    backend_close(b.backend);
    return 0;
}
