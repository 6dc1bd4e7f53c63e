/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SORT_H
#define SORT_H 1

/* Sorts stages without malloc().
 *
 * All sorts are stable.  sort_by_key() serves the published orders, most of
 * which sort by a few numbers of each stage and differ only in these numbers:
 *
 *    static struct order_key
 *    arrival_key(const struct order_stage *stage,
 *                const struct order_options *options)
 *    {
 *        return (struct order_key) { { order_stage_arrival(stage) } };
 *    }
 *
 *    sort_by_key(op, options, arrival_key, order);
 *
 * The order sorts all stages for each event, where radix_sort() costs less
 * than comparisons. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct order_options;
struct order_problem;
struct order_stage;
struct scratch;

/* Like qsort(), but stable and with the memory of 'scratch'. */
void scratch_sort(struct scratch *, void *items, size_t n, size_t size,
                  int (*compare)(const void *, const void *));

/* Sort key: the first number decides, then the next ones, then the stage's id.
 * Smaller numbers go first; NaN goes last. */
struct order_key {
    double by[4];
};

typedef struct order_key order_key_func(const struct order_stage *,
                                        const struct order_options *);

/* Fills 'order' (n_stages elements) with the stages sorted by their keys. */
void sort_by_key(const struct order_problem *, const struct order_options *,
                 order_key_func *, int *order);

/* Lets the stages of each group (struct order_traits) follow the first one of
 * them in 'order'. */
void sort_gather(const struct order_problem *, int *order);

struct radix_item {
    uint64_t key;
    int stage;
};

/* Returns a key for 'x' >= 0 that sorts larger numbers first. */
static inline uint64_t
radix_falling(double x)
{
    uint64_t key;

    memcpy(&key, &x, sizeof key);
    return ~key;
}

/* Sorts the 'n' 'items' by the lowest 'n_bytes' bytes of their keys, in
 * ascending order.  Returns the sorted array, which is 'items' or 'spare'. */
struct radix_item *radix_sort(struct radix_item *items,
                              struct radix_item *spare, size_t n, int n_bytes);

#endif /* order/problem/sort.h */
