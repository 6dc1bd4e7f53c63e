/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/capture/profile-internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_BIN_NS 1000000u
#define MIN_BINS 8              /* Fewer say nothing of rise and fall. */

/* Bytes by time. */
struct curve {
    float bins[PROFILE_BINS];
};

struct grouping {
    struct profile *p;
    size_t n;                   /* Flows that are grouped: the first ones. */
    uint64_t bin_ns;
    size_t n_bins;
    struct curve *flows;        /* 'n'. */
    struct curve *groups;       /* As many at most; sums of their flows. */
    double *alike;              /* By group: sum of its flows' correlations. */
    struct burst_train *trains; /* By group. */
};

static void
see_bytes(void *g_, size_t flow, bool from_local, uint32_t bytes,
          uint64_t now)
{
    struct grouping *g = g_;
    size_t bin = (now - g->p->first) / g->bin_ns;

    (void) from_local;
    if (flow < g->n && bin < g->n_bins) {
        g->flows[flow].bins[bin] += bytes;
    }
}

/* Makes the mean 0 and the length 1.  Returns false if nothing rises. */
static bool
normalise(struct curve *c, size_t n)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        sum += c->bins[i];
    }
    for (size_t i = 0; i < n; i++) {
        c->bins[i] -= sum / n;
        squares += (double) c->bins[i] * c->bins[i];
    }
    for (size_t i = 0; i < n && squares > 0; i++) {
        c->bins[i] /= sqrt(squares);
    }
    return squares > 0;
}

/* Returns the correlation of 'flow', which is normalised, with 'group', a sum
 * of such. */
static double
correlation(const struct curve *flow, const struct curve *group, size_t n)
{
    double product = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        product += (double) flow->bins[i] * group->bins[i];
        squares += (double) group->bins[i] * group->bins[i];
    }
    return squares > 0 ? product / sqrt(squares) : 0;
}

/* Puts flow 'i' into the group that is most alike, or into one of its own. */
static void
join(struct grouping *g, size_t i)
{
    struct profile_flow *flow = &g->p->flows[i];
    size_t best = g->p->n_groups;
    double best_alike = PROFILE_JOIN;
    bool moves = normalise(&g->flows[i], g->n_bins);

    for (size_t k = 0; moves && k < g->p->n_groups; k++) {
        double alike = correlation(&g->flows[i], &g->groups[k], g->n_bins);

        if (alike > best_alike) {
            best = k;
            best_alike = alike;
        }
    }
    if (best == g->p->n_groups) {
        g->p->n_groups++;
        best_alike = 1;
    }
    for (size_t b = 0; moves && b < g->n_bins; b++) {
        g->groups[best].bins[b] += g->flows[i].bins[b];
    }
    flow->group = best;
    g->alike[best] += best_alike;
    g->p->groups[best].n_flows++;
    g->p->groups[best].bytes += flow->sent.bytes + flow->received.bytes;
}

static void
see_group(void *g_, size_t flow, bool from_local, uint32_t bytes,
          uint64_t now)
{
    struct grouping *g = g_;

    (void) from_local;
    if (flow < g->n) {
        burst_train_count(&g->trains[g->p->flows[flow].group], bytes, now);
    }
}

static void
finish_groups(struct grouping *g)
{
    for (size_t k = 0; k < g->p->n_groups; k++) {
        struct profile_group *group = &g->p->groups[k];

        burst_train_get(&g->trains[k], g->trains[k].last, &group->bursts);
        group->confidence = (group->n_flows > 1
                             ? g->alike[k] / group->n_flows
                             : group->bursts.regularity / 1e6);
    }
}

static bool
allocate(struct grouping *g)
{
    g->flows = calloc(g->n, sizeof *g->flows);
    g->groups = calloc(g->n, sizeof *g->groups);
    g->alike = calloc(g->n, sizeof *g->alike);
    g->trains = calloc(g->n, sizeof *g->trains);
    g->p->groups = calloc(g->n, sizeof *g->p->groups);
    return (g->flows && g->groups && g->alike && g->trains
            && g->p->groups);
}

/* Bins as short as they may be are no longer than the capture, or there are
 * none, and every flow is for itself. */
static void
choose_bins(struct grouping *g)
{
    uint64_t length = g->p->last - g->p->first + 1;

    g->bin_ns = length / PROFILE_BINS + 1;
    if (g->bin_ns < MIN_BIN_NS) {
        g->bin_ns = MIN_BIN_NS;
    }
    g->n_bins = (length + g->bin_ns - 1) / g->bin_ns;
    if (g->n_bins < MIN_BINS) {
        g->n_bins = 0;
    }
}

char *
profile_group_flows(const char *file, struct profile *p)
{
    struct grouping g = {
        .p = p,
        .n = p->n_flows < PROFILE_GROUPED ? p->n_flows : PROFILE_GROUPED,
    };
    char *error = NULL;

    choose_bins(&g);
    if (!allocate(&g) && asprintf(&error, "%s: no memory", file) < 0) {
        error = strdup("no memory");
    }
    error = error ? error : profile_pass(file, p, see_bytes, &g);
    for (size_t i = 0; !error && i < g.n; i++) {
        join(&g, i);
    }
    error = error ? error : profile_pass(file, p, see_group, &g);
    if (!error) {
        finish_groups(&g);
    }
    free(g.trains);
    free(g.alike);
    free(g.groups);
    free(g.flows);
    return error;
}
