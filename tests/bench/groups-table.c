/* SPDX-License-Identifier: Apache-2.0 */

/* The scheme "groups" beside stragglers, in virtual time: eight workers train
 * an MLP.  Their gradients are real and their times are not, so nothing here
 * depends on a clock.
 *
 * Prints one JSON object.  Its baseline has, for one and four stragglers and
 * three delays, a row for each number of groups:
 *
 *    "2"        "groups=2"; workers are sorted by speed, so that stragglers
 *               share groups
 *    "2 apart"  the same without reports of times: four stragglers are in as
 *               many groups as possible
 *    "chosen"   the automatic choice
 *
 * with the time of a gradient and the time to a loss, both relative to bsp
 * without a delay, and the accuracy that is lost after the same number of
 * gradients, each the mean of some orders of the samples. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/data/dataset.h"
#include "trainer/data/seeded.h"
#include "trainer/models/model.h"
#include "trainer/schemes/groups.h"
#include "trainer/schemes/sync.h"

#define N 8                 /* Workers. */
#define SAMPLES 64          /* Of a gradient. */
#define GRADIENTS (150 * N) /* Of a run. */
#define EVALUATE (2 * N)    /* Gradients between two evaluations. */
#define JITTER 0.03         /* Of a step, which takes 1 without a delay. */
#define TARGET 1.6          /* Loss. */
#define ORDERS 3

/* Of a run, or the mean of some. */
struct outcome {
    double time;    /* Of a gradient. */
    double to_loss; /* Time to the loss. */
    double accuracy;
};

struct worker {
    float *weights;
    bool computes;
    double seconds, ends; /* Of each step, and of this one. */
    uint64_t iteration;
};

struct bench {
    struct backend *backend;
    struct dataset *data;
    struct model *model;
    struct batch *batch;
    struct outcome none; /* bsp without a delay. */

    /* Of a run. */
    struct sync_spec spec;
    struct sync *sync;
    struct worker workers[N];
    struct seeded random;
    uint64_t order; /* Seed of the order of samples. */
    double now;
};

static void
set_weights(struct bench *b, const float *weights)
{
    memcpy(b->model->weights, weights,
           b->model->n_parameters * sizeof *weights);
    model_weights_changed(b->model);
}

static void
begin_steps(struct bench *b)
{
    for (int i = 0; i < N; i++) {
        struct worker *w = &b->workers[i];
        float loss;

        if (!w->computes
            && b->spec.class->ready(b->sync, i, &w->iteration, &loss)) {
            w->computes = true;
            w->ends =
                b->now + w->seconds * (1 + JITTER * seeded_normal(&b->random));
            memcpy(w->weights, sync_weights(b->sync),
                   b->model->n_parameters * sizeof *w->weights);
        }
    }
}

/* Ends the step that ends first. */
static void
end_step(struct bench *b, bool reports)
{
    struct worker *w = NULL;
    double loss;
    int rank;

    for (int i = 0; i < N; i++) {
        if (b->workers[i].computes && (!w || b->workers[i].ends < w->ends)) {
            w = &b->workers[i];
        }
    }
    rank = w - b->workers;
    b->now = w->ends;
    w->computes = false;
    set_weights(b, w->weights);
    dataset_fill(b->data, b->order, (w->iteration * N + rank) * SAMPLES,
                 SAMPLES, b->batch);
    model_gradient(b->model, b->batch, NULL, NULL, &loss);
    memcpy(sync_inbox(b->sync, rank), b->model->gradient,
           b->model->n_parameters * sizeof *w->weights);
    if (reports) {
        struct sync_message report = { .kind = SYNC_REPORT,
                                       .n = SAMPLES,
                                       .seconds = w->seconds };

        free(b->spec.class->message(b->sync, rank, &report));
    }
    if (b->spec.class->push(b->sync, rank, w->iteration, SAMPLES,
                            loss / SAMPLES)) {
        exit(1);
    }
}

/* Trains with 'n_slow' workers, as far from each other as possible, that take
 * 'delay' longer, and adds the outcome. */
static void
train(struct bench *b, int n_slow, double delay, bool reports,
      struct outcome *sum)
{
    double loss, accuracy = 0, to_loss = INFINITY;
    struct sync_config config = {
        .backend = b->backend,
        .n_workers = N,
        .spec = &b->spec,
        .n = b->model->n_parameters,
        .optimiser = optimiser_defaults(optimiser_find("momentum"), 0.1f, 0.9f)
    };

    b->now = 0;
    b->sync = sync_create(b->spec.class, &config);
    model_init_weights(b->model, 1, sync_weights(b->sync));
    seeded_init(&b->random, b->order, 1);
    for (int i = 0; i < N; i++) {
        b->workers[i].computes = false;
        b->workers[i].seconds = 1 + ((i + 1) * n_slow % N < n_slow) * delay;
    }
    for (int k = 1; k <= GRADIENTS; k++) {
        begin_steps(b);
        end_step(b, reports);
        if (k % EVALUATE == 0) {
            set_weights(b, sync_weights(b->sync));
            model_evaluate(b->model, b->data, &loss, &accuracy);
            to_loss = loss <= TARGET ? fmin(to_loss, b->now) : to_loss;
        }
    }
    sync_destroy(b->sync);
    sum->time += b->now / ORDERS;
    sum->to_loss += to_loss / ORDERS;
    sum->accuracy += accuracy / ORDERS;
}

static struct outcome
measure(struct bench *b, const char *scheme, int n_slow, double delay,
        bool reports)
{
    struct outcome mean = { .time = 0 };

    free(sync_spec_parse(scheme, &b->spec));
    for (b->order = 1; b->order <= ORDERS; b->order++) {
        train(b, n_slow, delay, reports, &mean);
    }
    return mean;
}

/* Prints a row, and returns it relative to no delay. */
static struct outcome
print_row(struct bench *b, const char *name, const char *scheme, int n_slow,
          double delay, bool reports)
{
    struct outcome o = measure(b, scheme, n_slow, delay, reports);

    o.time /= b->none.time;
    o.to_loss /= b->none.to_loss;
    o.accuracy = b->none.accuracy - o.accuracy;
    printf("\"%s\": {\"time\": %.3f, \"to_loss\": %.3f, "
           "\"accuracy_loss\": %.4f}",
           name, o.time, o.to_loss, o.accuracy);
    return o;
}

/* Prints the rows of 'n_slow' stragglers, and returns the one of the choice.
 * '*best' is the least time of them all. */
static struct outcome
print_rows(struct bench *b, int n_slow, double delay, double *best)
{
    static const char *const groups[] = { "1", "2", "4", "8" };
    struct outcome chosen;

    printf("\"%d slow by %.0f %%\": {", n_slow, delay * 100);
    *best = INFINITY;
    for (int k = 0; k < 4; k++) {
        char scheme[32], name[32];

        snprintf(scheme, sizeof scheme, "groups,groups=%s", groups[k]);
        *best = fmin(
            *best, print_row(b, groups[k], scheme, n_slow, delay, true).time);
        printf(", ");
        if (n_slow > 1 && (k == 1 || k == 2)) {
            snprintf(name, sizeof name, "%s apart", groups[k]);
            print_row(b, name, scheme, n_slow, delay, false);
            printf(", ");
        }
    }
    chosen = print_row(b, "chosen", "groups", n_slow, delay, true);
    printf("}");
    return chosen;
}

static void
open_bench(struct bench *b)
{
    struct model_config config = { .max_batch = SAMPLES,
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
    free(model_create(&model_mlp, &config, &b->model));
    b->data = dataset_generate(&data);
    b->batch = batch_create();
    for (int i = 0; i < N; i++) {
        b->workers[i].weights =
            allocate(b->model->n_parameters, sizeof(float));
    }
}

static void
close_bench(struct bench *b)
{
    for (int i = 0; i < N; i++) {
        free(b->workers[i].weights);
    }
    batch_destroy(b->batch);
    dataset_destroy(b->data);
    model_destroy(b->model);
    backend_close(b->backend);
}

int
main(void)
{
    static const int n_slow[] = { 1, 4 };
    static const double delays[] = { 0.5, 1, 3 };
    double worst[2] = { 0 }, lost = -1, vs_best = 0, best;
    struct bench b = { .now = 0 };
    int n_within = 0;

    open_bench(&b);
    b.none = measure(&b, "bsp", 0, 0, false);
    printf("{\"bench\": \"groups-table\", \"baseline\": {");
    for (int i = 0; i < 6; i++) {
        struct outcome chosen;

        printf("%s", i ? ", " : "");
        chosen = print_rows(&b, n_slow[i / 3], delays[i % 3], &best);
        n_within += chosen.time <= 1.2 && chosen.accuracy <= 0.025;
        worst[i / 3] = fmax(worst[i / 3], chosen.time);
        lost = fmax(lost, chosen.accuracy);
        vs_best = fmax(vs_best, chosen.time / best);
    }
    printf("}, \"figures\": {\"one_slow_time\": %.3f, "
           "\"four_slow_time\": %.3f, \"accuracy_loss\": %.4f, "
           "\"time_vs_best\": %.3f, \"within\": %d}}\n",
           worst[0], worst[1], lost, vs_best, n_within);
    close_bench(&b);
    return 0;
}
