/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PERMUTE_H
#define PERMUTE_H 1

/* Memory for permute(), which a problem keeps from call to call. */

struct permuter;

struct permuter *permuter_create(void);
void permuter_destroy(struct permuter *);

#endif /* controller/order/permute.h */
