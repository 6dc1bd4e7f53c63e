/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/node-task.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/process/report.h"
#include "trainer/tasks/batches.h"
#include "trainer/tasks/prefetch.h"

/* Number of keys for the sums of epochs, which are used in turn; each is zero
 * again when it is reused. */
#define N_SUM_KEYS 3
#define CLOCK 64                /* Samples per clock. */
#define N_SUMS (sizeof(struct node_task_sums) / sizeof(double))

static const struct node_task_class *const classes[] = {
    &node_task_factorise,
    &node_task_knowledge,
    &node_task_skipgram,
    &node_task_linear,
};

const struct node_task_class *
node_task_find(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (!strcmp(classes[i]->name, name)) {
            return classes[i];
        }
    }
    return NULL;
}

int
node_task_ranges(const struct node_task *task,
                 struct key_range ranges[NODE_TASK_MAX_RANGES + 1])
{
    int n = task->class->ranges(task, ranges);

    ranges[n] = (struct key_range) { N_SUM_KEYS, N_SUMS };
    return n + 1;
}

/* Returns the first key after those of the task. */
static uint64_t
first_sum_key(const struct node_task *task)
{
    struct key_range ranges[NODE_TASK_MAX_RANGES];
    int n = task->class->ranges(task, ranges);
    uint64_t key = 0;

    for (int i = 0; i < n; i++) {
        key += ranges[i].n;
    }
    return key;
}

void
node_task_init(void *task_, uint64_t key, float *values)
{
    const struct node_task *task = task_;

    if (task->class->init && key < first_sum_key(task)) {
        task->class->init(task, key, values);
    }
}

void
node_task_destroy(struct node_task *task)
{
    if (task) {
        task->class->destroy(task);
    }
}

void
node_worker_begin_part(struct node_worker *worker, int n, int n_clocks)
{
    double limit = worker->task->o->epoch_limit;

    worker->until_us = INT64_MAX;
    if (limit > 0) {
        worker->until_us = clock_monotonic_us() + (int64_t) (limit / n * 1e6);
    }
    worker->clocks_left = n_clocks;
    if (worker->pace) {
        pace_step(worker->pace);
    }
}

bool
node_worker_late(const struct node_worker *worker)
{
    return worker->until_us != INT64_MAX
           && clock_monotonic_us() >= worker->until_us;
}

/* The last clock is left for the end of the part. */
char *
node_worker_clock(struct node_worker *worker)
{
    if (worker->clocks_left <= 1) {
        return NULL;
    }
    worker->clocks_left--;
    return key_clock(worker->keys);
}

/* All workers make the same number of clocks in a part, whatever they had to
 * do: otherwise a worker could wait forever for the clock of another. */
char *
node_worker_end_part(struct node_worker *worker)
{
    bool ahead = worker->variant == KEY_SSP || worker->variant == KEY_ESSP;
    char *error = NULL;

    for (; worker->clocks_left > 0 && !error; worker->clocks_left--) {
        error = key_clock(worker->keys);
    }
    return error || ahead ? error : key_barrier(worker->keys);
}

void
node_worker_pace(struct node_worker *worker, size_t n)
{
    if (worker->pace) {
        pace_wait(worker->pace, n, worker->control);
    }
}

/* What batches_train() gives to the functions of samples. */
struct feed {
    struct node_worker *worker;
    void *state;
    const struct node_samples *samples;
    struct prefetch *ahead;
    bool more;                  /* There are samples that are not in the
                                 * queue. */
    double loss;                /* Sum of losses. */
};

static bool
add_sample(void *feed_, struct gather *g, size_t places[])
{
    struct feed *feed = feed_;
    const struct node_samples *samples = feed->samples;
    const uint64_t *keys;
    uint64_t *room;

    while (feed->more && (room = prefetch_reserve(feed->ahead))) {
        feed->more = samples->next(feed->worker, feed->state, room);
        if (feed->more) {
            prefetch_add(feed->ahead, samples->n_keys, samples->n_wanted);
        }
    }
    if (!prefetch_next(feed->ahead, &keys)) {
        return false;
    }
    samples->add(feed->worker, feed->state, g, keys, places);
    return true;
}

static void
step_sample(void *feed_, struct gather *g, const size_t places[])
{
    struct feed *feed = feed_;

    feed->loss += feed->samples->step(feed->worker, feed->state, g, places);
}

char *
node_worker_train(struct node_worker *worker, void *state,
                  const struct node_samples *samples, struct prefetch *la,
                  struct batches *batches, size_t n,
                  struct node_task_sums *sums)
{
    static const struct batches_ops ops = { add_sample, step_sample };
    struct feed feed = { worker, state, samples, la, .more = true };
    size_t n_trained = 0, n_batch = 1;
    const uint64_t *keys;
    char *error = NULL;

    node_worker_begin_part(worker, 1, n / worker->n / CLOCK + 1);
    while (!error && n_batch && !node_worker_late(worker)) {
        size_t clock = n_trained / CLOCK;

        error = batches_train(batches, &ops, &feed, &n_batch);
        n_trained += n_batch;
        if (n_trained / CLOCK > clock && !error) {
            node_worker_pace(worker, n_trained);
            error = node_worker_clock(worker);
        }
    }
    batches_drop(batches);
    while (prefetch_next(la, &keys)) {
        continue;               /* Out of time. */
    }
    node_worker_pace(worker, n_trained);
    sums->updates += n_trained;
    sums->loss += feed.loss;
    return error ? error : node_worker_end_part(worker);
}

bool
node_worker_redraws(const struct node_worker *worker, uint64_t key,
                    int64_t *n_draws)
{
    return key_variant_moves(worker->variant)
           && ++*n_draws < worker->task->o->draws
           && !key_is_here(worker->keys, key);
}

/* Replaces 'sums' by the sums over all workers. */
static char *
add_up(struct node_worker *worker, struct node_task_sums *sums)
{
    uint64_t key = first_sum_key(worker->task) + worker->epoch % N_SUM_KEYS;
    double *of_sums = (double *) sums;
    float values[N_SUMS];
    char *error;

    for (size_t i = 0; i < N_SUMS; i++) {
        values[i] = of_sums[i];
    }
    error = key_wait(worker->keys, key_push(worker->keys, &key, 1, values));
    error = error ? error : key_barrier(worker->keys);
    error = error ? error : key_wait(worker->keys,
                                     key_pull(worker->keys, &key, 1, values));
    error = error ? error : key_barrier(worker->keys);
    for (size_t i = 0; i < N_SUMS && !error; i++) {
        of_sums[i] = values[i];
        values[i] = -values[i];
    }
    if (!error && !worker->index) {
        error = key_wait(worker->keys,
                         key_push(worker->keys, &key, 1, values));
    }
    return error;
}

void
node_task_report(const struct node_task_class *class, struct report_epoch *e,
                 struct reporter *report)
{
    struct report_progress progress = {
        .iteration = e->epoch, .loss = e->loss, .accuracy = NAN,
        .batch_loss = e->loss, .step_s = e->seconds,
    };

    memcpy(e->names, class->qualities, sizeof e->names);
    reporter_progress(report, &progress, true);
    report_epoch(e);
}

bool
node_task_is_judged(const struct options *o, uint64_t epoch)
{
    return (epoch + 1) % o->eval_every == 0
           || epoch + 1 == (uint64_t) o->target;
}

static char *
make_epoch(struct node_worker *worker, void *state)
{
    const struct node_task_class *class = worker->task->class;
    struct report_epoch e = { .epoch = worker->epoch + 1 };
    struct node_task_sums sums = { .updates = 0 };
    double cpu_s = clock_cpu_s();
    int64_t began_us = clock_monotonic_us();
    char *error = class->epoch(worker, state, &sums);

    error = error ? error : key_barrier(worker->keys);
    if (error) {
        return error;
    }
    sums.cpu_s = worker->first_of_node ? clock_cpu_s() - cpu_s : 0;
    e.seconds = (clock_monotonic_us() - began_us) * 1e-6;
    if (node_task_is_judged(worker->task->o, worker->epoch)) {
        error = class->judge(worker, state, &sums);
    }
    error = error ? error : add_up(worker, &sums);
    if (error) {
        return error;
    }
    e.updates = sums.updates;
    e.cpu_s = sums.cpu_s;
    e.loss = worker->loss = sums.loss / sums.updates;
    for (int i = 0; i < 2; i++) {
        e.qualities[i] = sums.quality[i] / sums.n_judged;
    }
    if (class->conclude) {
        class->conclude(state, &e);
    }
    if (worker->report) {
        node_task_report(class, &e, worker->report);
    }
    return key_barrier(worker->keys);
}

char *
node_task_train(struct node_worker *worker)
{
    const struct node_task *task = worker->task;
    void *state = NULL;
    char *error;

    worker->until_us = INT64_MAX;
    error = task->class->begin(worker, &state);
    error = error ? error : key_barrier(worker->keys);
    while (!error && worker->epoch < (uint64_t) task->o->target) {
        error = make_epoch(worker, state);
        worker->epoch++;
    }
    error = error ? error : key_finish(worker->keys);
    task->class->end(state);
    return error;
}
