/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PERMUTE_H
#define PERMUTE_H 1

/* What a problem keeps of permute() from call to call: its memory, and how the
 * last order came about. */

struct order_problem;
struct permuter;

struct permuter *permuter_create(void);
void permuter_destroy(struct permuter *);

/* As permute() for 'kappa' > 0, but for roundings, and faster: up to the first
 * stage that ends late alone the order is that for kappa 0, which must have
 * been the last that permute() found, and for the same problem. */
double permute_again(const struct order_problem *, double kappa, int *order);

#endif /* order/permute.h */
