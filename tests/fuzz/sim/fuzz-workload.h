/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FUZZ_WORKLOAD_H
#define FUZZ_WORKLOAD_H 1

/* What readers of the file "f" must return: a workload, or a message of one
 * line. */

#include "sim/workload/workload.h"
#include "tests/fuzz/must.h"

/* Checks that the transfers of 'job' are between different hosts. */
static inline void
must_have_hosts(const struct workload *w, const struct workload_job *job)
{
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        must(t->src >= 0 && t->src < w->fabric->n_hosts);
        must(t->dst >= 0 && t->dst < w->fabric->n_hosts);
        must(t->src != t->dst && t->bytes > 0);
    }
}

/* Checks 'w', with each of its cojobs, or 'error', and frees both. */
static inline void
must_be_workload(struct workload *w, char *error,
                 void (*check)(const struct workload *,
                               const struct workload_cojob *))
{
    must(!error == !!w);
    if (w) {
        must(w->n_cojobs >= 1 && w->n_stages >= w->n_cojobs);
        for (size_t i = 0; i < w->n_cojobs; i++) {
            check(w, &w->cojobs[i]);
        }
    } else {
        must_be_message(error, "f:");
    }
    workload_destroy(w);
    free(error);
}

#endif /* tests/fuzz/sim/fuzz-workload.h */
