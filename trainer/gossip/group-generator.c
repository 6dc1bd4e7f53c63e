/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/group-generator.h"

#include <string.h>

#include "trainer/data/seeded.h"
#include "trainer/schemes/shard.h"

void
group_generator_init(struct group_generator *g, int n, const int machine_of[],
                     int most, uint64_t threshold)
{
    memset(g, 0, sizeof *g);
    g->n = n;
    g->most = most;
    g->threshold = threshold;
    memcpy(g->machine_of, machine_of, n * sizeof *g->machine_of);
}

/* Whether 'i' may be in the groups of a request of 'from'. */
static bool
is_candidate(const struct group_generator *g, int i, int from,
             const bool out[])
{
    return i == from
           || (!out[i] && g->given[i] <= g->taken[i]
               && g->requests[from] < g->requests[i] + g->threshold);
}

static void
shuffle(int items[], int n, struct seeded *random)
{
    for (int i = n - 1; i > 0; i--) {
        int k = seeded_below(random, i + 1), item = items[i];

        items[i] = items[k];
        items[k] = item;
    }
}

/* Stores the candidates that are on the machine of the first one, and removes
 * them from 'candidates'.  Returns their number. */
static int
take_machine(const struct group_generator *g, int candidates[], int *n,
             int members[])
{
    int machine = g->machine_of[candidates[0]], n_members = 0, left = 0;

    for (int i = 0; i < *n; i++) {
        if (g->machine_of[candidates[i]] == machine) {
            members[n_members++] = candidates[i];
        } else {
            candidates[left++] = candidates[i];
        }
    }
    *n = left;
    return n_members;
}

/* The means of one division. */
struct division {
    int heads[PEER_NET_MAX], n_heads;
    bool crowded[PEER_NET_MAX]; /* By rank of the head: its machine has other
                                 * candidates. */
    int members[PEER_NET_MAX];  /* All candidates, machine by machine, */
    int sizes[PEER_NET_MAX];    /* and how many each machine has. */
};

static void
emit_heads(const struct group_generator *g, const struct division *d,
           group_generator_emit *emit, void *aux)
{
    int n_groups = (d->n_heads + g->most - 1) / g->most;

    for (int i = 0; i < n_groups; i++) {
        struct shard shard = shard_range(d->n_heads, i, n_groups);
        const int *heads = d->heads + shard.first;
        bool more[PEER_NET_MAX];

        for (size_t k = 0; k < shard.n; k++) {
            more[k] = d->crowded[heads[k]];
        }
        /* A head alone has the mean of its machine, unless that is empty. */
        if (shard.n > 1 || !more[0]) {
            emit(aux, heads, shard.n, more);
        }
    }
}

static void
emit_machines(const struct division *d, group_generator_emit *emit, void *aux)
{
    static const bool none[PEER_NET_MAX];
    const int *members = d->members;

    for (int i = 0; i < d->n_heads; i++) {
        if (d->sizes[i] > 1) {
            emit(aux, members, d->sizes[i], none);
        }
        members += d->sizes[i];
    }
}

static void
divide(struct group_generator *g, int from, const bool out[],
       struct seeded *random, group_generator_emit *emit, void *aux)
{
    struct division d = { .n_heads = 0 };
    int candidates[PEER_NET_MAX], n = 0, *members = d.members;

    for (int i = 0; i < g->n; i++) {
        if (is_candidate(g, i, from, out)) {
            candidates[n++] = i;
            g->given[i]++;
        }
    }
    shuffle(candidates, n, random);
    while (n) {
        int size = take_machine(g, candidates, &n, members);

        d.heads[d.n_heads] = members[0];
        d.crowded[members[0]] = size > 1;
        d.sizes[d.n_heads++] = size;
        members += size;
    }
    emit_heads(g, &d, emit, aux);
    emit_machines(&d, emit, aux);
}

void
group_generator_request(struct group_generator *g, int from,
                        uint64_t n_finished, const bool out[],
                        struct seeded *random, group_generator_emit *emit,
                        void *aux)
{
    g->requests[from]++;
    if (g->given[from] <= n_finished) {
        divide(g, from, out, random, emit, aux);
    }
    g->taken[from] = n_finished + 1;
}
