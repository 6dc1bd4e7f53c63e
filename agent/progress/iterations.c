/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/iterations.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "util.h"
#include "wire/shim-protocol.h"

/* Finds the bytes of an iteration in the traffic of a job.
 *
 * The duration of an iteration varies with the share of the link, and so does
 * the time of each part of it.  But each iteration moves the same bytes and is
 * followed by a pause for computing.  So the position of pauses among the
 * bytes is periodic, not their time.
 *
 *    bytes   0         1.3 MB        2.6 MB        3.9 MB
 *            |  .    .    |   .    .    |  .     .   |        . short pauses
 *            long         long          long         long
 *
 * The period is the number of bytes after which pauses are followed by pauses
 * of the same length.  Pauses count by the square of their length, because a
 * starved job has many short ones.  There are also pauses between the buckets
 * of one iteration, but at the distance of a bucket their lengths differ.  A
 * period with several pauses of nearly the same length consists of several
 * iterations.
 *
 * Measured: the traffic of a recorded data-parallel PyTorch job among six
 * others on the same links is counted to the iteration, and to within 2 % when
 * the job had the last rank. */

#define PAUSES_MAX 128

struct pause {
    uint64_t at;     /* Position: bytes before it. */
    uint32_t length; /* Length in bins, 2 or more. */
};

struct pauses {
    uint64_t bytes;     /* All bytes of the job. */
    double busy;        /* Mean bytes of the bins that are not silent. */
    uint32_t silent;    /* Length of the current pause, bins. */
    uint64_t silent_at; /* Position of the current pause. */

    /* By position.  If the array is full, the shortest pause is dropped, but
     * none of the latest. */
    struct pause pauses[PAUSES_MAX];
    size_t n;
    unsigned int n_new; /* New pauses since the last search. */

    double period;     /* Bytes of a period, 0 if unknown. */
    double score;      /* Similarity of what follows a period, 0 to 1. */
    double proved;     /* Highest score since the period was accepted. */
    int parts;         /* Iterations per period. */
    double phase;      /* Bytes before the first iteration. */
    uint64_t base_at;  /* If the iterations have changed: position from
                        * which they are counted. */
    double base_count; /* Number of iterations before that position. */
};

#define MIN_LENGTH 2      /* Bins; a shorter silence is no pause. */
#define NOISE 16          /* A bin below 1/NOISE of the mean is silent. */
#define MEMORY 64         /* Bins in that mean. */
#define KEEP 16           /* Latest pauses that are never dropped. */
#define MIN_PERIOD 32768  /* Bytes; a shorter one would be a few frames. */
#define NEAR 256          /* Positions within 1/NEAR of a period are equal. */
#define BESIDE 4          /* Chance is measured BESIDE/NEAR of a period off. */
#define FOLDS 32          /* Parts of a folded period. */
#define REACH 24          /* Pauses that a period may contain at most. */
#define MAX_CANDIDATES 64 /* Candidate periods. */
#define MIN_PAIRS 3       /* Pauses that a period must explain. */
#define OUTLIERS 16       /* One pause in OUTLIERS may be longer. */
#define BELIEVED 0.55     /* Score from which a period is accepted. */
#define NEARLY 0.8        /* Part of the best score that counts as equal. */
#define LATEST 4          /* The last 1/LATEST are searched separately. */
#define STAYS 2           /* Factor of the score that replaces a period. */
#define ALIKE 0.7         /* Part of the longest length that is as long. */
#define HARMONICS 8       /* Multiples that are mistaken for a period. */

/* A range of pauses, and the length up to which one counts. */
struct view {
    const struct pause *pauses;
    size_t n;
    double max;
};

/* Result of testing a period. */
struct verdict {
    double score;  /* 0 to 1. */
    double period; /* The period, refined by all pauses that it
                    * explains. */
    size_t n;      /* Pauses that are followed by a similar
                    * one. */
};

/* Candidate period and what supports it. */
struct candidate {
    double period; /* First, for compare_doubles(). */
    double weight;
};

/* Drops a pause that is short or old. */
static void
drop_one(struct pauses *p)
{
    double least = INFINITY;
    size_t worst = 0;

    for (size_t i = 0; i + KEEP < p->n; i++) {
        double worth = p->pauses[i].length / (double) (p->n - i);

        if (worth < least) {
            least = worth;
            worst = i;
        }
    }
    p->n--;
    memmove(&p->pauses[worst], &p->pauses[worst + 1],
            (p->n - worst) * sizeof p->pauses[0]);
}

static void
end_pause(struct pauses *p)
{
    /* Silence before the first byte is no pause. */
    if (p->silent >= MIN_LENGTH && p->silent_at) {
        if (p->n == PAUSES_MAX) {
            drop_one(p);
        }
        p->pauses[p->n++] =
            (struct pause){ .at = p->silent_at, .length = p->silent };
        p->n_new++;
    }
    p->silent = 0;
}

/* Adds the 'bytes' of the next hundredth of a second. */
static void
pauses_add_bins(struct pauses *p, uint64_t bytes)
{
    if (bytes * NOISE <= p->busy) {
        if (!p->silent++) {
            p->silent_at = p->bytes;
        }
    } else {
        end_pause(p);
        p->busy += (bytes - p->busy) / (p->busy > 0 ? MEMORY : 1);
    }
    p->bytes += bytes;
}

/* Returns a view of the last 'n' pauses, MIN_PAIRS + 1 at least.  The length
 * of a pause counts up to the length that several have, because a job may load
 * data for a minute before it begins. */
static struct view
view_of(const struct pauses *p, size_t n)
{
    struct view v = { .pauses = &p->pauses[p->n - n], .n = n };
    size_t outliers = MIN_PAIRS + n / OUTLIERS;
    uint32_t lengths[PAUSES_MAX];

    for (size_t i = 0; i < n; i++) {
        lengths[i] = v.pauses[i].length;
    }
    qsort(lengths, n, sizeof lengths[0], compare_u32);
    v.max = lengths[n > outliers ? n - outliers : 0];
    return v;
}

static double
length_of(const struct view *w, size_t i)
{
    return fmin(w->pauses[i].length, w->max);
}

/* Returns the pause within 'near' bytes of 'place' with the length most
 * similar to pause 'i', searching from '*fromp' on, or SIZE_MAX.  'place' must
 * not decrease from call to call. */
static size_t
find_near(const struct view *w, size_t i, double place, double near,
          size_t *fromp)
{
    double length = length_of(w, i), least = INFINITY;
    size_t best = SIZE_MAX;

    while (*fromp < w->n && w->pauses[*fromp].at < place - near) {
        ++*fromp;
    }
    for (size_t j = *fromp; j < w->n && w->pauses[j].at <= place + near; j++) {
        double d = fabs(length_of(w, j) - length);

        if (d < least) {
            least = d;
            best = j;
        }
    }
    return best;
}

/* Tests 'period'. */
static struct verdict
judge_at(const struct view *w, double period)
{
    double alike = 0, all = 0, distance = 0, weight = 0;
    struct verdict v = { .period = period };
    size_t from = 0;

    for (size_t i = 0; i < w->n; i++) {
        double place = w->pauses[i].at + period;
        double a = length_of(w, i);
        size_t j;

        if (place - period / NEAR > w->pauses[w->n - 1].at) {
            break;
        }
        j = find_near(w, i, place, period / NEAR, &from);
        if (j == SIZE_MAX) {
            all += a * a;
        } else {
            double b = length_of(w, j);
            double both = fmin(a, b) * fmin(a, b);

            alike += both;
            all += fmax(a, b) * fmax(a, b);
            distance += both * (w->pauses[j].at - w->pauses[i].at);
            weight += both;
            v.n += fmin(a, b) >= w->max / 2;
        }
    }
    if (weight > 0) {
        v.score = alike / all;
        v.period = distance / weight;
    }
    return v;
}

/* Tests 'period' and subtracts what chance explains, which is the result of
 * periods beside it.  With many pauses, every period explains something. */
static struct verdict
judge(const struct view *w, double period)
{
    struct verdict v = judge_at(w, period);
    double beside = v.period * BESIDE / NEAR;
    double chance = (judge_at(w, v.period - beside).score
                     + judge_at(w, v.period + beside).score)
                    / 2;

    v.score = chance < 1 ? fmax(0, (v.score - chance) / (1 - chance)) : 0;
    return v;
}

static int
compare_weights(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;

    return a->weight > b->weight ? -1 : a->weight < b->weight;
}

/* Joins similar candidates of the 'n' in 'c'.  Returns their number; the ones
 * with the most support come first. */
static size_t
join(struct candidate *c, size_t n)
{
    size_t n_joined = 0;

    qsort(c, n, sizeof *c, compare_doubles); /* By their periods. */
    for (size_t i = 0; i < n; i++) {
        struct candidate *last = n_joined ? &c[n_joined - 1] : NULL;

        if (last && c[i].period - last->period < last->period / NEAR) {
            double weight = last->weight + c[i].weight;

            last->period +=
                (c[i].period - last->period) * c[i].weight / weight;
            last->weight = weight;
        } else {
            c[n_joined++] = c[i];
        }
    }
    qsort(c, n_joined, sizeof *c, compare_weights);
    return n_joined < MAX_CANDIDATES ? n_joined : MAX_CANDIDATES;
}

/* Fills 'c' (PAUSES_MAX * REACH elements) with the distances between long
 * pauses that occur several times.  Returns their number. */
static size_t
find_candidates(const struct view *w, struct candidate *c)
{
    double most =
        (double) (w->pauses[w->n - 1].at - w->pauses[0].at) / MIN_PAIRS;
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        double a = length_of(w, i);

        if (a < w->max / 2) {
            continue;
        }
        for (size_t j = i + 1; j < w->n && j <= i + REACH; j++) {
            double b = length_of(w, j);
            double distance = w->pauses[j].at - w->pauses[i].at;

            if (b >= w->max / 2 && distance >= MIN_PERIOD
                && distance <= most) {
                c[n++] = (struct candidate){
                    .period = distance,
                    .weight = fmin(a, b) * fmin(a, b),
                };
            }
        }
    }
    return join(c, n);
}

/* Returns the shortest of the periods that are nearly as good as the best. */
static struct verdict
find_period(const struct view *w)
{
    static struct candidate c[PAUSES_MAX * REACH];
    struct verdict v[MAX_CANDIDATES], found = { .score = 0 };
    size_t n = find_candidates(w, c);
    double best = 0;

    for (size_t i = 0; i < n; i++) {
        v[i] = judge(w, c[i].period);
        if (v[i].n >= MIN_PAIRS) {
            best = fmax(best, v[i].score);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (v[i].n >= MIN_PAIRS && v[i].score >= NEARLY * best
            && v[i].score >= BELIEVED
            && (!(found.score > 0) || v[i].period < found.period)) {
            found = v[i];
        }
    }
    return found;
}

/* Returns the number of pauses of nearly the same length in each period.
 * 'origin' is the position of one of the longest. */
static int
count_parts(const struct view *w, double period, double origin)
{
    double sums[FOLDS] = { 0 }, most = 0;
    int parts = 0;

    for (size_t i = 0; i < w->n; i++) {
        double x = (w->pauses[i].at - origin) / period + 0.5 / FOLDS;

        sums[(int) ((x - floor(x)) * FOLDS) % FOLDS] += length_of(w, i);
    }
    for (int i = 0; i < FOLDS; i++) {
        most = fmax(most, sums[i]);
    }
    for (int i = 0; i < FOLDS; i++) {
        parts += sums[i] >= ALIKE * most && sums[i] >= sums[(i + 1) % FOLDS]
                 && sums[i] > sums[(i + FOLDS - 1) % FOLDS];
    }
    return parts ? parts : 1;
}

/* Returns the position of the first of the longest pauses that are followed by
 * a similar one: the end of an iteration. */
static double
find_origin(const struct view *w, double period)
{
    size_t from = 0, best = 0;
    double most = 0;

    for (size_t i = 0; i < w->n; i++) {
        size_t j =
            find_near(w, i, w->pauses[i].at + period, period / NEAR, &from);
        double length =
            (j == SIZE_MAX ? 0 : fmin(length_of(w, i), length_of(w, j)));

        if (length * ALIKE > most) {
            most = length;
            best = i;
        }
    }
    return w->pauses[best].at;
}

/* Returns the number of iterations, with a fraction; 0 if unknown. */
static double
pauses_count(const struct pauses *p)
{
    double from = p->base_at ? p->base_at : p->phase;

    if (!(p->period > 0)) {
        return 0;
    }
    return p->base_count + fmax(0, p->bytes - from) / p->period * p->parts;
}

/* Accepts the result 'v' for the pauses in 'w'.  If these are all pauses, or
 * the period is a multiple or a fraction of the previous one, it holds from
 * the beginning; otherwise the job has changed its behaviour. */
static void
believe(struct pauses *p, const struct view *w, const struct verdict *v)
{
    double origin = find_origin(w, v->period);
    double ratio = fmax(p->period, v->period) / fmin(p->period, v->period);
    double multiple = round(ratio);

    if (p->period > 0 && w->n < p->n
        && (multiple > HARMONICS
            || fabs(ratio - multiple) >= multiple / FOLDS)) {
        p->base_count = pauses_count(p);
        p->base_at = p->bytes;
    }
    p->score = p->proved = v->score;
    p->period = v->period;
    p->parts = count_parts(w, v->period, origin);
    p->phase = fmod(origin, v->period);
}

/* Searches the period again if there are new pauses: in all pauses or, without
 * a result, in the latest.  A period that explains half of what the best one
 * does is kept, unless the best one is shorter. */
static void
pauses_scan(struct pauses *p)
{
    if (!p->n_new) {
        return;
    }
    p->n_new = 0;
    for (size_t n = p->n; n > MIN_PAIRS && n >= p->n / LATEST; n /= 2) {
        struct view w = view_of(p, n);
        struct verdict v = find_period(&w), old = { .score = 0 };

        if (p->period > 0) {
            old = judge(&w, p->period);
            p->score = n == p->n ? old.score : fmax(p->score, old.score);
            p->proved = fmax(p->proved, p->score);
            if (old.score >= BELIEVED) {
                p->parts =
                    count_parts(&w, p->period, find_origin(&w, p->period));
            }
        }
        if (v.score > old.score * STAYS
            || (v.score >= NEARLY * old.score && v.score > 0
                && v.period < p->period * (1 - 1.0 / FOLDS))) {
            believe(p, &w, &v);
        }
        if (p->score >= BELIEVED) {
            break;
        }
    }
}

#define SCAN_MS 1000            /* Time between searches for a period. */
#define PROVED_MS 3000          /* The same, once a period is well proved. */
#define PROVED 0.7              /* Score from which a period is well proved. */
#define MAX_MISSING 6000        /* Largest gap in the bins, as a number;
                                 * after a longer one the silence of the job
                                 * has an unknown length. */
#define WELL 0.6                /* Part of the best score from which a
                                 * series counts as proved. */
#define ROUND 0.05              /* Part of an iteration that is rounded up. */

enum { SENT, RECEIVED, BOTH, N_SERIES };

struct iterations {
    uint64_t next;              /* Number of the next bin, 0 before the
                                 * first. */
    long long next_scan;
    struct pauses series[N_SERIES];
};

struct iterations *
iterations_create(void)
{
    struct iterations *it = xzalloc(sizeof *it);

    for (int i = 0; i < N_SERIES; i++) {
        it->series[i].parts = 1;
    }
    return it;
}

void
iterations_destroy(struct iterations *it)
{
    free(it);
}

static void
take_bin(struct iterations *it, uint64_t sent, uint64_t received)
{
    pauses_add_bins(&it->series[SENT], sent);
    pauses_add_bins(&it->series[RECEIVED], received);
    pauses_add_bins(&it->series[BOTH], sent + received);
    it->next++;
}

void
iterations_add_bins(struct iterations *it, uint64_t first,
                    const struct shim_bin *bins, size_t n, long long now)
{
    if (!it->next || first < it->next - MIN(it->next, MAX_MISSING)
        || first > it->next + MAX_MISSING) {
        it->next = first;       /* A number in the past means that the shim
                                 * has restarted. */
    }
    while (it->next < first) {
        take_bin(it, 0, 0);
    }
    for (size_t i = MIN(n, it->next - first); i < n; i++) {
        take_bin(it, bins[i].tx, bins[i].rx);
    }
    if (now >= it->next_scan) {
        double best = 0;

        for (int i = 0; i < N_SERIES; i++) {
            pauses_scan(&it->series[i]);
            best = fmax(best, it->series[i].score);
        }
        it->next_scan = now + (best >= PROVED ? PROVED_MS : SCAN_MS);
    }
}

int64_t
iterations_count(const struct iterations *it)
{
    double best = 0, least = INFINITY;

    for (int i = 0; i < N_SERIES; i++) {
        if (it->series[i].period > 0) {
            best = fmax(best, it->series[i].proved);
        }
    }
    for (int i = 0; i < N_SERIES; i++) {
        const struct pauses *p = &it->series[i];

        if (p->period > 0 && p->proved >= WELL * best) {
            least = fmin(least, pauses_count(p));
        }
    }
    return isfinite(least) ? (int64_t) (least + ROUND) : -1;
}

/* Waiting. */

#define BIN_S (SHIM_BIN_MS / 1000.)

static void
end_burst(struct waiting *w, uint64_t rate_bps)
{
    double busy = (w->last - w->first) * BIN_S;

    w->busy += busy;
    w->waited += MAX(0, busy - w->bytes * 8 / rate_bps);
    w->bytes = 0;
}

void
waiting_add_bins(struct waiting *w, uint64_t first,
                 const struct shim_bin bins[], size_t n, uint64_t rate_bps)
{
    double least = rate_bps / 8. * BIN_S * WAITING_LEAST;

    for (size_t i = 0; i < n && rate_bps; i++) {
        uint32_t bytes = MAX(bins[i].tx, bins[i].rx);

        if (w->bytes && first + i - w->last > WAITING_GAP) {
            end_burst(w, rate_bps);
        }
        if (bytes && bytes >= least) {
            w->first = w->bytes ? w->first : first + i;
            w->last = first + i;
            w->bytes += bytes;
        }
    }
}
