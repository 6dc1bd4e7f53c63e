/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/progress/pauses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_LENGTH 2            /* Bins; a shorter silence is no pause. */
#define NOISE 16                /* A bin below 1/NOISE of the mean is
                                 * silent. */
#define MEMORY 64               /* Bins in that mean. */
#define KEEP 16                 /* Latest pauses that are never dropped. */
#define MIN_PERIOD 32768        /* Bytes; a shorter period would be a few
                                 * frames. */
#define NEAR 256                /* Positions within 1/NEAR of a period count
                                 * as equal. */
#define BESIDE 4                /* Factor of NEAR for the distance at which
                                 * chance is measured. */
#define FOLDS 32                /* Parts of a folded period. */
#define REACH 24                /* Pauses that a period may contain at most. */
#define MAX_CANDIDATES 64       /* Candidate periods. */
#define MIN_PAIRS 3             /* Pauses that a period must explain. */
#define OUTLIERS 16             /* One pause in so many may be longer than
                                 * what a period explains. */
#define BELIEVED 0.55           /* Score from which a period is accepted. */
#define NEARLY 0.8              /* Part of the best score that counts as
                                 * equally good. */
#define LATEST 4                /* The last 1/LATEST of the pauses are
                                 * searched separately. */
#define STAYS 2                 /* Factor by which the score of another
                                 * period must be higher to replace the
                                 * current one. */
#define ALIKE 0.7               /* Part of the longest length that counts as
                                 * equally long. */
#define HARMONICS 8             /* Multiples or fractions of a period that
                                 * may be mistaken for it. */

/* A range of pauses, and the length up to which one counts. */
struct view {
    const struct pause *pauses;
    size_t n;
    double max;
};

/* Result of testing a period. */
struct verdict {
    double score;               /* 0 to 1. */
    double period;              /* The period, refined by all pauses that it
                                 * explains. */
    size_t n;                   /* Pauses that are followed by a similar
                                 * one. */
};

/* Candidate period and its evidence. */
struct candidate {
    double period;
    double weight;
};

void
pauses_init(struct pauses *p)
{
    memset(p, 0, sizeof *p);
    p->parts = 1;
}

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
void
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

static int
compare_lengths(const void *a_, const void *b_)
{
    const uint32_t *a = a_, *b = b_;

    return *a < *b ? -1 : *a > *b;
}

/* Returns a view of the last 'n' pauses, MIN_PAIRS + 1 at least.  The length
 * of a pause counts up to the length that several have, because a job may load
 * data for a minute before it begins. */
static struct view
look_at(const struct pauses *p, size_t n)
{
    struct view v = { .pauses = &p->pauses[p->n - n], .n = n };
    size_t outliers = MIN_PAIRS + n / OUTLIERS;
    uint32_t lengths[PAUSES_MAX];

    for (size_t i = 0; i < n; i++) {
        lengths[i] = v.pauses[i].length;
    }
    qsort(lengths, n, sizeof lengths[0], compare_lengths);
    v.max = lengths[n > outliers ? n - outliers : 0];
    return v;
}

static double
length_of(const struct view *w, size_t i)
{
    return fmin(w->pauses[i].length, w->max);
}

/* Returns the pause within 'near' bytes of 'place' whose length is most
 * similar to that of pause 'i', searching from '*fromp' on, or SIZE_MAX.
 * 'place' must not decrease from call to call. */
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
                     + judge_at(w, v.period + beside).score) / 2;

    v.score = chance < 1 ? fmax(0, (v.score - chance) / (1 - chance)) : 0;
    return v;
}

static int
compare_periods(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;

    return a->period < b->period ? -1 : a->period > b->period;
}

static int
compare_weights(const void *a_, const void *b_)
{
    const struct candidate *a = a_, *b = b_;

    return a->weight > b->weight ? -1 : a->weight < b->weight;
}

/* Joins similar candidates of the 'n' in 'c'.  Returns their number; the ones
 * with the most evidence come first. */
static size_t
join(struct candidate *c, size_t n)
{
    size_t n_joined = 0;

    qsort(c, n, sizeof *c, compare_periods);
    for (size_t i = 0; i < n; i++) {
        struct candidate *last = n_joined ? &c[n_joined - 1] : NULL;

        if (last && c[i].period - last->period < last->period / NEAR) {
            double weight = last->weight + c[i].weight;

            last->period += (c[i].period - last->period) * c[i].weight
                            / weight;
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
    double most = (double) (w->pauses[w->n - 1].at - w->pauses[0].at)
                  / MIN_PAIRS;
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
                c[n++] = (struct candidate) {
                    .period = distance, .weight = fmin(a, b) * fmin(a, b),
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

/* Returns true if one of 'a' and 'b' is a small multiple of the other. */
static bool
are_harmonic(double a, double b)
{
    double ratio = fmax(a, b) / fmin(a, b), n = round(ratio);

    return n <= HARMONICS && fabs(ratio - n) < n / FOLDS;
}

/* Returns the position of the first of the longest pauses that are followed by
 * a similar one: the end of an iteration. */
static double
find_origin(const struct view *w, double period)
{
    size_t from = 0, best = 0;
    double most = 0;

    for (size_t i = 0; i < w->n; i++) {
        size_t j = find_near(w, i, w->pauses[i].at + period, period / NEAR,
                             &from);
        double length = (j == SIZE_MAX ? 0
                         : fmin(length_of(w, i), length_of(w, j)));

        if (length * ALIKE > most) {
            most = length;
            best = i;
        }
    }
    return w->pauses[best].at;
}

/* Accepts the result 'v' for the pauses in 'w'.  If these are all pauses, or
 * the period is a multiple or a fraction of the previous one, it holds from
 * the beginning; otherwise the job has changed its behaviour. */
static void
believe(struct pauses *p, const struct view *w, const struct verdict *v)
{
    double origin = find_origin(w, v->period);

    if (p->period > 0 && w->n < p->n && !are_harmonic(p->period, v->period)) {
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
void
pauses_look(struct pauses *p)
{
    if (!p->n_new) {
        return;
    }
    p->n_new = 0;
    for (size_t n = p->n; n > MIN_PAIRS && n >= p->n / LATEST; n /= 2) {
        struct view w = look_at(p, n);
        struct verdict v = find_period(&w), old = { .score = 0 };

        if (p->period > 0) {
            old = judge(&w, p->period);
            p->score = n == p->n ? old.score : fmax(p->score, old.score);
            p->proved = fmax(p->proved, p->score);
            if (old.score >= BELIEVED) {
                p->parts = count_parts(&w, p->period,
                                       find_origin(&w, p->period));
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

double
pauses_count(const struct pauses *p)
{
    double from = p->base_at ? p->base_at : p->phase;

    if (!(p->period > 0)) {
        return 0;
    }
    return p->base_count + fmax(0, p->bytes - from) / p->period * p->parts;
}
