/* SPDX-License-Identifier: Apache-2.0 */

/* Moves samples from the slowest worker, the straggler, to the fastest, the
 * leader, window by window.
 *
 *                oscillation                 gap closed, or nothing to move
 *   FAST ------------------------> FINE ---------------------> SETTLED
 *    ^ ^       gap wide again       |                             |
 *    | `----------------------------'                             |
 *    `------------------------------------------------------------'
 *                 gap out of the dead band for a while
 *
 * FAST moves the number of samples that would close the gap if times were
 * proportional to samples, between several pairs if there are many workers.
 * With overheads and communication this is too few, so exact times do not
 * overshoot.  After an overshoot, mostly by jitter, FINE halves the step each
 * time.  A gap that may be jitter makes the window longer instead.  Without
 * oscillation FAST settles as FINE does.
 *
 * A straggler that does not become faster with fewer samples is in the flat
 * part of its time: it gets them back, and no more are moved from it before
 * a restart.
 *
 * The two roles and the phases FAST and FINE are as published for LB-BSP on
 * GPUs.  Ours are several pairs at once, windows that jitter makes longer,
 * samples that are given back, and rest with restarts. */

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/balance/batch-mode.h"
#include "trainer/balance/batch-size-manager.h"

#define FIRST_WINDOW 2          /* Iterations of a window in FAST. */
#define SETTLED_WINDOW 8        /* Minimum window while settled. */
#define MAX_WINDOW 16
#define CLOSED 1.04             /* Ratio of slowest to fastest that is good
                                 * enough. */
#define DEAD_BAND 1.08          /* Ratio above which balancing restarts. */
#define N_OUTSIDE 3             /* Iterations above DEAD_BAND before a
                                 * restart. */
#define WORKERS_PER_PAIR 4      /* In FAST, workers per pair that moves
                                 * samples. */
#define FLAT 0.15               /* Part of the proportional decrease below
                                 * which a time is flat. */
#define STEEP 0.45              /* Smallest part of the proportional
                                 * decrease that overheads leave. */
#define SURE 2.0                /* Deviations beyond jitter. */
#define SURE_MORE 0.4           /* Increase of SURE with each doubling of
                                 * the workers. */

enum phase { FAST, FINE, SETTLED };

struct gpu_worker {
    double seconds[MAX_WINDOW]; /* Times of the last iterations, a ring. */
    double last;                /* Time of the last iteration. */
    double mean;                /* Mean of the window. */
    uint32_t floor;             /* Fewer samples do not make it faster. */

    /* Size, and mean time of 'base_window' iterations, before samples were
     * moved whose effect is not visible yet; 0 if none. */
    uint32_t base_size;
    double base_seconds;
    int base_window;
    bool used;                  /* Takes part in a move of this decision. */
};

/* A move of samples. */
struct move {
    int from, to;
    uint32_t n;
};

struct batch_mode {
    const struct batch_size_config *config;
    struct gpu_worker *workers;
    enum phase phase;
    uint64_t n_iterations;
    int n_since;                /* Iterations since the last change of
                                 * sizes. */
    int window;
    uint32_t step;              /* Largest move in FINE, samples. */
    double jitter;              /* Relative deviation of an iteration. */
    double sure;                /* SURE for this number of workers. */
    struct move *moves;         /* Last moves, the one with the widest gap
                                 * first. */
    int n_moves;
    double settled;             /* Ratio that could be reached. */
    int n_outside;
};

static void
begin(struct batch_mode *m)
{
    for (int i = 0; i < m->config->n_workers; i++) {
        m->workers[i].floor = 1;
        m->workers[i].base_size = 0;
    }
    m->phase = FAST;
    m->window = FIRST_WINDOW;
    m->n_moves = 0;
    m->n_outside = 0;
}

static struct batch_mode *
gpu_create(const struct batch_size_config *config)
{
    struct batch_mode *m = allocate(1, sizeof *m);

    m->config = config;
    m->workers = allocate(config->n_workers, sizeof *m->workers);
    m->moves = allocate(config->n_workers, sizeof *m->moves);
    m->sure = SURE + SURE_MORE * log2(config->n_workers);
    begin(m);
    return m;
}

static void
gpu_destroy(struct batch_mode *m)
{
    free(m->workers);
    free(m->moves);
    free(m);
}

static void
gpu_report(struct batch_mode *m, int worker, uint32_t n, double seconds,
           double cpu, double memory)
{
    if (isfinite(seconds) && seconds > 0) {
        m->workers[worker].last = seconds;
    }
}

/* Computes the mean of each worker over the last 'n' iterations, and updates
 * the jitter. */
static void
average(struct batch_mode *m, int n)
{
    double variance = 0;

    for (int i = 0; i < m->config->n_workers; i++) {
        struct gpu_worker *w = &m->workers[i];
        double sum = 0, squares = 0;

        for (int k = 0; k < n; k++) {
            sum += w->seconds[(m->n_iterations - 1 - k) % MAX_WINDOW];
        }
        w->mean = sum / n;
        for (int k = 0; k < n; k++) {
            double d = w->seconds[(m->n_iterations - 1 - k) % MAX_WINDOW]
                       / w->mean - 1;

            squares += d * d;
        }
        variance += squares / (n > 1 ? n - 1 : 1);
    }
    variance = sqrt(variance / m->config->n_workers);
    m->jitter = m->jitter ? 0.8 * m->jitter + 0.2 * variance : variance;
}

/* Returns the relative difference of two means, one of 'window' iterations,
 * that jitter alone explains. */
static double
noise_to(const struct batch_mode *m, int window)
{
    return m->sure * m->jitter * sqrt(1.0 / window + 1.0 / m->window);
}

static double
noise(const struct batch_mode *m)
{
    return noise_to(m, m->window);
}

/* Returns the ratio of slowest to fastest. */
static double
spread(const struct batch_mode *m)
{
    double low = INFINITY, high = 0;

    for (int i = 0; i < m->config->n_workers; i++) {
        low = fmin(low, m->workers[i].mean);
        high = fmax(high, m->workers[i].mean);
    }
    return high / low;
}

static void
settle(struct batch_mode *m)
{
    m->phase = SETTLED;
    m->settled = spread(m);
    m->window = m->window > SETTLED_WINDOW ? m->window : SETTLED_WINDOW;
    m->n_outside = 0;
}

/* Returns true if the sizes no longer fit the times. */
static bool
has_changed(struct batch_mode *m)
{
    int n = m->n_since < m->window ? m->n_since : m->window;

    average(m, n);
    if (n < m->window || spread(m) <= fmax(DEAD_BAND, m->settled * CLOSED)
                                      + noise(m)) {
        m->n_outside = 0;
        if (n == m->window) {
            m->settled = fmin(m->settled, spread(m));
        }
        return false;
    }
    return ++m->n_outside >= N_OUTSIDE;
}

/* Returns true if the worker that gave samples by 'move' has not become
 * faster.  If jitter hides the effect, it is judged together with the next
 * move. */
static bool
is_flat(struct batch_mode *m, const struct move *move, const uint32_t *sizes)
{
    struct gpu_worker *w = &m->workers[move->from];
    double expected, fall, unsure;

    if (!w->base_size) {
        return false;
    }
    unsure = noise_to(m, w->base_window);
    expected = 1 - (double) sizes[move->from] / w->base_size;
    fall = 1 - w->mean / w->base_seconds;
    if (fall > FLAT * expected + unsure || fall < -unsure) {
        w->base_size = 0; /* It has become faster, or is another machine. */
        return false;
    }
    return fall <= FLAT * expected && (STEEP - FLAT) * expected >= unsure;
}

/* Returns samples of moves without effect.  Returns true if there were any. */
static bool
undo_if_flat(struct batch_mode *m, uint32_t *sizes)
{
    bool undone = false;

    for (int i = 0; i < m->n_moves; i++) {
        const struct move *move = &m->moves[i];

        if (is_flat(m, move, sizes)) {
            sizes[move->from] += move->n;
            sizes[move->to] -= move->n;
            m->workers[move->from].floor = sizes[move->from];
            m->workers[move->from].base_size = 0;
            undone = true;
        }
    }
    if (undone) {
        m->n_moves = 0;
        m->n_since = 0;
    }
    return undone;
}

/* Finds the unused workers that can take samples soonest and that should give
 * some.  Returns false if there is no such pair. */
static bool
find_pair(const struct batch_mode *m, const uint32_t *sizes,
          int *leader, int *straggler)
{
    *leader = *straggler = -1;
    for (int i = 0; i < m->config->n_workers; i++) {
        const struct gpu_worker *w = &m->workers[i];

        if (w->used) {
            continue;
        }
        if (sizes[i] < m->config->max[i]
            && (*leader < 0 || w->mean < m->workers[*leader].mean)) {
            *leader = i;
        }
        if (*straggler < 0 || w->mean > m->workers[*straggler].mean) {
            *straggler = i;
        }
    }
    return *leader >= 0 && *straggler >= 0 && *leader != *straggler
           && sizes[*straggler] > m->workers[*straggler].floor;
}

/* Returns the relative gap between straggler and leader. */
static double
gap_of(const struct batch_mode *m, int leader, int straggler)
{
    return m->workers[straggler].mean / m->workers[leader].mean - 1;
}

/* Returns the samples to move for equal times, if times are proportional to
 * samples. */
static double
samples_of_gap(const struct batch_mode *m, const uint32_t *sizes,
               int leader, int straggler)
{
    const struct gpu_worker *slow = &m->workers[straggler];
    const struct gpu_worker *fast = &m->workers[leader];

    return (slow->mean - fast->mean)
           / (slow->mean / sizes[straggler] + fast->mean / sizes[leader]);
}

/* Updates the phase by comparing the pair of the widest gap with the last
 * one. */
static void
choose_phase(struct batch_mode *m, const uint32_t *sizes,
             int leader, int straggler)
{
    const struct move *last = m->n_moves ? &m->moves[0] : NULL;

    if (last && (straggler == last->to || leader == last->from)) {
        m->phase = FINE;
        m->step = last->n > 1 ? last->n / 2 : 1;
    } else if (m->phase == FINE
               && samples_of_gap(m, sizes, leader, straggler) > 2.0 * m->step
               && gap_of(m, leader, straggler) > DEAD_BAND - 1) {
        m->phase = FAST;
    }
}

static void
move(struct batch_mode *m, uint32_t *sizes, int leader, int straggler)
{
    struct gpu_worker *w = &m->workers[straggler];
    double gap = samples_of_gap(m, sizes, leader, straggler);
    uint32_t most = sizes[straggler] - w->floor;
    uint32_t room = m->config->max[leader] - sizes[leader];
    uint32_t n = gap < 1 ? 1 : gap;

    n = m->phase == FINE && n > m->step ? m->step : n;
    n = n > most ? most : n;
    n = n > room ? room : n;
    if (!w->base_size) {
        w->base_size = sizes[straggler];
        w->base_seconds = w->mean;
        w->base_window = m->window;
    }
    m->workers[leader].base_size = 0;
    m->moves[m->n_moves++] =
        (struct move){ .from = straggler, .to = leader, .n = n };
    sizes[straggler] -= n;
    sizes[leader] += n;
    w->used = m->workers[leader].used = true;
}

/* Returns true if the last move was of one sample and this one would undo it:
 * the sizes are optimal. */
static bool
is_undoing(const struct batch_mode *m, int leader, int straggler)
{
    return m->n_moves == 1 && m->moves[0].n == 1
           && leader == m->moves[0].from && straggler == m->moves[0].to;
}

/* Moves samples within the pair, and in FAST within further pairs. */
static void
move_all(struct batch_mode *m, uint32_t *sizes, int leader, int straggler)
{
    int n_pairs = m->phase == FAST
                  ? m->config->n_workers / WORKERS_PER_PAIR : 1;

    m->n_moves = 0;
    m->n_since = 0;
    do {
        move(m, sizes, leader, straggler);
    } while (m->n_moves < n_pairs && find_pair(m, sizes, &leader, &straggler)
             && gap_of(m, leader, straggler) > fmax(CLOSED - 1, noise(m)));
}

static void
balance(struct batch_mode *m, uint32_t *sizes)
{
    int leader, straggler;
    double gap;

    for (int i = 0; i < m->config->n_workers; i++) {
        m->workers[i].used = false;
    }
    if (undo_if_flat(m, sizes)) {
        return;
    }
    if (!find_pair(m, sizes, &leader, &straggler)) {
        settle(m);
        return;
    }
    gap = gap_of(m, leader, straggler);
    if (gap <= noise(m) && m->window < MAX_WINDOW) {
        m->window *= 2;         /* It may be jitter: use a longer window. */
    } else if (gap <= fmax(CLOSED - 1, noise(m))
               || is_undoing(m, leader, straggler)) {
        settle(m);
    } else {
        choose_phase(m, sizes, leader, straggler);
        move_all(m, sizes, leader, straggler);
    }
}

static void
gpu_decide(struct batch_mode *m, uint32_t *sizes)
{
    for (int i = 0; i < m->config->n_workers; i++) {
        struct gpu_worker *w = &m->workers[i];

        if (!w->last) {
            return;             /* A worker has no times yet. */
        }
        w->seconds[m->n_iterations % MAX_WINDOW] = w->last;
    }
    m->n_iterations++;
    m->n_since++;
    if (m->phase == SETTLED) {
        if (has_changed(m)) {
            begin(m);
            average(m, FIRST_WINDOW);
            balance(m, sizes);
        }
    } else if (m->n_since >= m->window) {
        average(m, m->window);
        balance(m, sizes);
    }
}

const struct batch_mode_class batch_mode_gpu = {
    .create = gpu_create, .destroy = gpu_destroy, .report = gpu_report,
    .decide = gpu_decide
};
