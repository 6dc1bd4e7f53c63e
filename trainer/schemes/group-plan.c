/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/group-plan.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/schemes/shard.h"

#define MIN_GAIN 0.05           /* Of the time, by twice the groups. */

struct timed_worker {
    double seconds;
    int worker;
};

void
group_plan_init(struct group_plan *plan, int n_workers)
{
    plan->n_workers = n_workers;
    plan->order = allocate(4 * n_workers, sizeof *plan->order);
    plan->first = plan->order + n_workers;
    plan->n = plan->first + n_workers;
    plan->group = plan->n + n_workers;
    for (int i = 0; i < n_workers; i++) {
        plan->order[i] = i;
    }
    group_plan_divide(plan, 1);
}

void
group_plan_uninit(struct group_plan *plan)
{
    free(plan->order);
}

void
group_plan_copy(struct group_plan *plan, const struct group_plan *from)
{
    plan->n_groups = from->n_groups;
    memcpy(plan->order, from->order,
           4 * from->n_workers * sizeof *from->order);
}

static void
set_worker_groups(struct group_plan *plan)
{
    for (int g = 0; g < plan->n_groups; g++) {
        for (int i = 0; i < plan->n[g]; i++) {
            plan->group[plan->order[plan->first[g] + i]] = g;
        }
    }
}

void
group_plan_divide(struct group_plan *plan, int n_groups)
{
    plan->n_groups = n_groups;
    for (int g = 0; g < n_groups; g++) {
        struct shard part = shard_range(plan->n_workers, g, n_groups);

        plan->first[g] = part.first;
        plan->n[g] = part.n;
    }
    set_worker_groups(plan);
}

static int
compare_timed(const void *a, const void *b)
{
    const struct timed_worker *x = a, *y = b;

    return x->seconds != y->seconds ? (x->seconds < y->seconds ? -1 : 1)
                                    : x->worker - y->worker;
}

void
group_plan_sort(struct group_plan *plan, const double seconds[])
{
    struct timed_worker *timed = allocate(plan->n_workers, sizeof *timed);

    for (int i = 0; i < plan->n_workers; i++) {
        timed[i] = (struct timed_worker) { seconds[i], i };
    }
    qsort(timed, plan->n_workers, sizeof *timed, compare_timed);
    for (int i = 0; i < plan->n_workers; i++) {
        plan->order[i] = timed[i].worker;
    }
    free(timed);
    set_worker_groups(plan);
}

/* Returns after how many workers to split group 'g' of a sorted plan, or 0.
 * '*gain' is the increase in steps per second of all workers. */
static int
best_split(const struct group_plan *plan, int g, const double seconds[],
           double *gain)
{
    const int *members = &plan->order[plan->first[g]];
    double slowest = seconds[members[plan->n[g] - 1]];
    int best = 0;

    *gain = 0;
    for (int k = 1; k < plan->n[g]; k++) {
        double x = k / seconds[members[k - 1]] - k / slowest;

        if (x > *gain) {
            *gain = x;
            best = k;
        }
    }
    return best;
}

/* Splits the group for which that helps most.  Returns false if it helps for
 * none. */
static bool
split_best(struct group_plan *plan, const double seconds[])
{
    double most = 0, gain;
    int group = 0, split = 0;

    for (int g = 0; g < plan->n_groups; g++) {
        int at = best_split(plan, g, seconds, &gain);

        if (gain > most) {
            most = gain;
            group = g;
            split = at;
        }
    }
    if (!split) {
        return false;
    }
    for (int g = plan->n_groups++; g > group; g--) {
        plan->first[g] = plan->first[g - 1];
        plan->n[g] = plan->n[g - 1];
    }
    plan->first[group + 1] += split;
    plan->n[group + 1] -= split;
    plan->n[group] = split;
    return true;
}

void
group_plan_fit(struct group_plan *plan, const double seconds[], int max,
               double tolerance)
{
    struct group_plan more;
    double time;

    group_plan_divide(plan, 1);
    group_plan_sort(plan, seconds);
    group_plan_init(&more, plan->n_workers);
    group_plan_copy(&more, plan);
    time = group_plan_time(plan, seconds);
    while (2 * plan->n_groups <= max && time > 1 + tolerance) {
        double before = time;

        while (more.n_groups < 2 * plan->n_groups
               && split_best(&more, seconds)) {
            continue;
        }
        time = group_plan_time(&more, seconds);
        if (time > before - MIN_GAIN) {
            break;
        }
        set_worker_groups(&more);
        group_plan_copy(plan, &more);
    }
    group_plan_uninit(&more);
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

double
group_plan_time(const struct group_plan *plan, const double seconds[])
{
    int n = plan->n_workers;
    double *sorted = allocate(n, sizeof *sorted), median, speed = 0;

    memcpy(sorted, seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    median = sorted[n / 2];
    free(sorted);
    for (int g = 0; g < plan->n_groups; g++) {
        double slowest = 0;

        for (int i = 0; i < plan->n[g]; i++) {
            slowest = fmax(slowest,
                           seconds[plan->order[plan->first[g] + i]]);
        }
        speed += plan->n[g] / slowest;
    }
    return n / median / speed;
}
