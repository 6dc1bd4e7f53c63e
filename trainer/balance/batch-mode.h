/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BATCH_MODE_H
#define BATCH_MODE_H 1

/* Interface between the batch size manager and its two modes.
 *
 * The manager owns the sizes.  A mode receives each report and changes the
 * sizes after all workers have reported.  Both allocate at creation only. */

#include <stdint.h>

struct batch_mode;
struct batch_size_config;
struct batch_size_manager;

struct batch_mode_class {
    /* 'config' and its 'max', which is not NULL and never 0, must outlive the
     * mode. */
    struct batch_mode *(*create)(const struct batch_size_config *config);
    void (*destroy)(struct batch_mode *);
    void (*report)(struct batch_mode *, int worker, uint32_t n,
                   double seconds, double cpu, double memory);
    void (*decide)(struct batch_mode *, uint32_t *sizes);
};

extern const struct batch_mode_class batch_mode_cpu;
extern const struct batch_mode_class batch_mode_gpu;

/* Divides 'total' into whole parts in proportion to 'weights', by largest
 * remainder.  Each part is at least 1 and at most its 'max'; the other parts
 * share the difference.  'n' <= 'total' <= the sum of 'max', weights are
 * positive, and 'scratch' has 'n' elements. */
void apportion(int n, uint32_t total, const double *weights,
               const uint32_t *max, double *scratch, uint32_t *parts);

/* Sets the sizes of the next iteration in proportion to 'weights', which are
 * positive; NULL: equal ones.  The library does not export it. */
void batch_size_manager_divide(struct batch_size_manager *,
                               const uint32_t *weights);

#endif /* trainer/balance/batch-mode.h */
