/* SPDX-License-Identifier: Apache-2.0 */

/* Samples go from the straggler to the leader, window by window.
 *
 *                oscillation                 gap closed, or nothing to move
 *   FAST ------------------------> FINE ---------------------> SETTLED
 *    ^ ^       gap wide again       |                             |
 *    | `----------------------------'                             |
 *    `------------------------------------------------------------'
 *                 gap out of the dead band for a while
 *
 * FAST moves as many samples as close the gap if a worker's time is in
 * proportion to its samples, between several pairs if there are many workers.
 * Overheads and communication only make that too few, so exact times do not
 * overshoot.  When one does, by jitter mostly, FINE halves the step each time.
 * A gap that may be jitter makes the window longer instead.  FAST settles as
 * FINE does if there is no oscillation at all.
 *
 * A straggler whose time does not fall with its samples is in the flat part
 * of its time: it gets them back and no more are taken from it until a
 * restart. */

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "trainer/balance/batch-mode.h"
#include "trainer/balance/batch-size-manager.h"
#include "base/memory.h"

#define FIRST_WINDOW 2          /* Iterations of a window in FAST. */
#define SETTLED_WINDOW 8        /* At least, when watching for a change. */
#define MAX_WINDOW 16
#define CLOSED 1.04             /* Slowest / fastest that is good enough, */
#define DEAD_BAND 1.08          /* and that makes it begin again, if for */
#define N_OUTSIDE 3             /* so many iterations. */
#define WORKERS_PER_PAIR 4      /* In FAST, when several pairs move. */
#define FLAT 0.15               /* Of the fall if times were in proportion, */
#define STEEP 0.45              /* and what overheads leave of it at least. */
#define SURE 2.0                /* Deviations that are not taken for jitter, */
#define SURE_MORE 0.4           /* more with each doubling of the workers. */

enum phase { FAST, FINE, SETTLED };

struct gpu_worker {
    double seconds[MAX_WINDOW]; /* Of the last iterations, a ring. */
    double last;                /* Of the last one. */
    double mean;                /* Of the window. */
    uint32_t floor;             /* No fewer samples are of use. */

    /* Before samples were taken of it that have not been seen to make it
     * faster.  0: none were. */
    uint32_t base_size;
    double base_seconds;
    bool used;                  /* In this decision's moves already. */
};

/* Samples that have been moved. */
struct move {
    int from, to;
    uint32_t n;
};

struct batch_mode {
    const struct batch_size_config *config;
    struct gpu_worker *workers;
    enum phase phase;
    uint64_t n_iterations;
    int n_since;                /* Iterations with the sizes as they are. */
    int window;
    uint32_t step;              /* At most so many move in FINE. */
    double jitter;              /* Relative deviation of an iteration. */
    double sure;                /* SURE for so many workers. */
    struct move *moves;         /* The last ones, the widest gap's first. */
    int n_moves;
    double settled;             /* Slowest / fastest that could be had. */
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

/* Takes each worker's mean of the last 'n' iterations, and what they teach of
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

/* The part by which the means of two workers may differ by jitter alone. */
static double
noise(const struct batch_mode *m)
{
    return m->sure * m->jitter * sqrt(2.0 / m->window);
}

/* Slowest over fastest. */
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

/* True if the sizes no longer suit the times. */
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

/* True if the worker that gave samples by 'move' is no faster for it.  Where
 * jitter hides what they did, they count with those that it gives next. */
static bool
is_flat(struct batch_mode *m, const struct move *move, const uint32_t *sizes)
{
    struct gpu_worker *w = &m->workers[move->from];
    double expected, fall;

    if (!w->base_size) {
        return false;
    }
    expected = 1 - (double) sizes[move->from] / w->base_size;
    fall = 1 - w->mean / w->base_seconds;
    if (fall > FLAT * expected + noise(m)) {
        w->base_size = 0;       /* It is faster. */
        return false;
    }
    return fall <= FLAT * expected && (STEEP - FLAT) * expected >= noise(m);
}

/* Gives back what was taken in vain.  Returns true if there was any. */
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

/* Finds, among those not used yet, who can take samples soonest and who
 * should give some.  Returns false if there are no such two. */
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

/* By how much the straggler is slower, as a part. */
static double
gap_of(const struct batch_mode *m, int leader, int straggler)
{
    return m->workers[straggler].mean / m->workers[leader].mean - 1;
}

/* The samples that make both as fast as each other, if times are in
 * proportion to samples. */
static double
samples_of_gap(const struct batch_mode *m, const uint32_t *sizes,
               int leader, int straggler)
{
    const struct gpu_worker *slow = &m->workers[straggler];
    const struct gpu_worker *fast = &m->workers[leader];

    return (slow->mean - fast->mean)
           / (slow->mean / sizes[straggler] + fast->mean / sizes[leader]);
}

/* Changes the phase by how the widest gap's pair compares with the last
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
    }
    m->workers[leader].base_size = 0;
    m->moves[m->n_moves++] = (struct move) {
        .from = straggler, .to = leader, .n = n,
    };
    sizes[straggler] -= n;
    sizes[leader] += n;
    w->used = m->workers[leader].used = true;
}

/* True if the last move was of one sample and this would undo it: the sizes
 * are as good as they can be. */
static bool
is_undoing(const struct batch_mode *m, int leader, int straggler)
{
    return m->n_moves == 1 && m->moves[0].n == 1
           && leader == m->moves[0].from && straggler == m->moves[0].to;
}

/* Moves samples between the pair, and in FAST between further ones. */
static void
move_all(struct batch_mode *m, uint32_t *sizes, int leader, int straggler)
{
    int n_pairs = m->phase == FAST
                  ? m->config->n_workers / WORKERS_PER_PAIR : 1;

    m->n_moves = 0;
    m->n_since = 0;
    do {
        move(m, sizes, leader, straggler);
    } while (m->n_moves < n_pairs
             && find_pair(m, sizes, &leader, &straggler)
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
        m->window *= 2;         /* Perhaps only jitter: look for longer. */
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
            return;             /* Nothing is known of this worker yet. */
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
    .create = gpu_create,
    .destroy = gpu_destroy,
    .report = gpu_report,
    .decide = gpu_decide,
};
