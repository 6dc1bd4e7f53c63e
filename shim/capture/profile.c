/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/capture/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/capture/file.h"
#include "shim/classify/parse.h"

#define MIN_PACKETS 16          /* Packets before bursts are measured. */
#define MIN_BIN_NS 1000000u
#define MIN_BINS 8              /* Fewest intervals for a correlation. */

/* Flows by key, with open addressing.  A cell holds an index in the profile's
 * 'flows' plus 1, or 0 if it is free. */
struct index {
    uint32_t *cells;
    size_t mask;
};

static struct shim_flow_key
reversed(const struct shim_flow_key *key)
{
    struct shim_flow_key r = *key;

    r.local_port = key->remote_port;
    r.remote_port = key->local_port;
    memcpy(r.local, key->remote, sizeof r.local);
    memcpy(r.remote, key->local, sizeof r.remote);
    return r;
}

/* Returns a hash that is equal for both directions of a flow. */
static uint64_t
hash_key(const struct shim_flow_key *key)
{
    uint64_t ends[2] = { key->local_port, key->remote_port };
    uint64_t words[4];

    memcpy(words, key->local, 16);
    memcpy(words + 2, key->remote, 16);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            ends[i] = (ends[i] ^ words[i * 2 + j]) * 0x9e3779b97f4a7c15;
            ends[i] ^= ends[i] >> 29;
        }
    }
    return (ends[0] + ends[1] + key->protocol) * 0xd6e8feb86659fd93;
}

/* Returns the cell of 'key', or the free cell for it. */
static uint32_t *
find_cell(const struct index *index, const struct profile *p,
          const struct shim_flow_key *key)
{
    struct shim_flow_key other = reversed(key);
    size_t i = hash_key(key) >> 20 & index->mask;

    while (index->cells[i]) {
        const struct shim_flow_key *k = &p->flows[index->cells[i] - 1].key;

        if (!memcmp(k, key, sizeof *k) || !memcmp(k, &other, sizeof *k)) {
            break;
        }
        i = (i + 1) & index->mask;
    }
    return &index->cells[i];
}

/* Rebuilds 'index' for the flows of 'p', with space for twice as many. */
static void
index_build(struct index *index, const struct profile *p)
{
    size_t n = 1024;

    while (n < p->n_flows * 4) {
        n *= 2;
    }
    free(index->cells);
    index->cells = allocate(n, sizeof *index->cells);
    index->mask = n - 1;
    for (size_t i = 0; i < p->n_flows; i++) {
        *find_cell(index, p, &p->flows[i].key) = i + 1;
    }
}

static bool
parse_key(const struct capture_frame *frame, struct shim_flow_key *key)
{
    struct parsed parsed;
    uint8_t *whole = NULL;

    /* The parser rejects a packet that is shorter than its IP length, so pad
     * what was not captured. */
    if (frame->captured < frame->length
        && frame->length <= CAPTURE_MAX_FRAME) {
        whole = allocate(1, frame->length);
        memcpy(whole, frame->data, frame->captured);
    }
    parse_frame(whole ? whole : frame->data,
                whole ? frame->length : frame->captured, true, &parsed);
    free(whole);
    *key = parsed.key;
    return parsed.kind == PARSED_FLOW;
}

static struct profile_flow *
add_flow(struct profile *p, struct index *index, uint32_t *cell,
         const struct shim_flow_key *key, uint64_t now)
{
    if (!(p->n_flows & (p->n_flows - 1))) {     /* Full: 0, 1, 2, 4, ... */
        p->flows = reallocate(p->flows, p->n_flows ? p->n_flows * 2 : 1,
                              sizeof *p->flows);
    }
    p->flows[p->n_flows] =
        (struct profile_flow){ .key = *key, .first = now, .group = SIZE_MAX };
    *cell = ++p->n_flows;
    if (p->n_flows * 2 > index->mask) {
        index_build(index, p);
    }
    return &p->flows[p->n_flows - 1];
}

static void
count_side(struct profile_side *side, uint32_t bytes, uint64_t now)
{
    side->packets++;
    side->bytes += bytes;
    if (!side->train && side->packets >= MIN_PACKETS) {
        side->train = allocate(1, sizeof *side->train);
    }
    if (side->train) {
        burst_train_count(side->train, bytes, now);
    }
}

/* Counts a frame, for its flow if it has one. */
static void
learn_frame(struct profile *p, struct index *index,
            const struct capture_frame *frame)
{
    struct profile_flow *flow;
    struct shim_flow_key key;
    uint32_t *cell;

    p->reordered += frame->time < p->last;
    if (!p->frames++) {
        p->first = p->last = frame->time;
    }
    p->last = frame->time > p->last ? frame->time : p->last;
    p->bytes += frame->length;
    if (!parse_key(frame, &key)) {
        p->other_frames++;
        return;
    }
    cell = find_cell(index, p, &key);
    if (*cell) {
        flow = &p->flows[*cell - 1];
    } else if (p->n_flows >= PROFILE_MAX_FLOWS) {
        p->other_frames++;
        return;
    } else {
        flow = add_flow(p, index, cell, &key, p->last);
    }
    flow->last = p->last;
    count_side(memcmp(&flow->key, &key, sizeof key) ? &flow->received
               : &flow->sent, frame->length, p->last);
}

static char *
learn_flows(const char *file, struct profile *p)
{
    struct index index = { .cells = NULL };
    struct capture_reader *reader;
    struct capture_frame frame;
    char *error = capture_open(file, &reader);

    index_build(&index, p);
    while (!error && !(error = capture_next(reader, &frame)) && frame.data) {
        learn_frame(p, &index, &frame);
    }
    capture_close(reader);
    free(index.cells);
    return error;
}

/* Handles one frame of flow 'flow', an index in the profile's 'flows'.  'now'
 * never decreases. */
typedef void frame_func(void *aux, size_t flow, uint32_t bytes, uint64_t now);

/* Calls 'handle' for each frame of 'file' that belongs to a flow of 'p'. */
static char *
for_each_frame(const char *file, const struct profile *p, frame_func *handle,
               void *aux)
{
    struct index index = { .cells = NULL };
    struct capture_reader *reader;
    struct capture_frame frame;
    uint64_t now = 0;
    char *error = capture_open(file, &reader);

    index_build(&index, p);
    while (!error && !(error = capture_next(reader, &frame)) && frame.data) {
        struct shim_flow_key key;
        uint32_t flow;

        now = frame.time > now ? frame.time : now;
        flow = parse_key(&frame, &key) ? *find_cell(&index, p, &key) : 0;
        if (flow) {
            handle(aux, flow - 1, frame.length, now);
        }
    }
    capture_close(reader);
    free(index.cells);
    return error;
}

/* Bytes of a flow in each interval of the capture. */
struct curve {
    float bins[PROFILE_BINS];
};

struct grouping {
    struct profile *p;
    size_t n;                   /* Flows to group: the first of p->flows. */
    uint64_t bin_ns;            /* Length of an interval. */
    size_t n_bins;              /* Intervals in use, at most PROFILE_BINS. */
    struct curve *flows;        /* Curve of each flow, 'n' elements. */
    struct curve *groups;       /* Sum of the curves of each group's flows. */
    double *alike;              /* Sum of each group's correlations. */
    struct burst_train *trains; /* Bursts of each group. */
};

static void
add_to_curve(void *g_, size_t flow, uint32_t bytes, uint64_t now)
{
    struct grouping *g = g_;
    size_t bin = (now - g->p->first) / g->bin_ns;

    if (flow < g->n && bin < g->n_bins) {
        g->flows[flow].bins[bin] += bytes;
    }
}

/* Scales 'c' to mean 0 and length 1.  Returns false if it is constant. */
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

/* Returns the correlation of the normalised curve 'flow' with 'group', a sum
 * of normalised curves. */
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

/* Adds flow 'i' to the group with the highest correlation, or to a new one. */
static void
join_group(struct grouping *g, size_t i)
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
add_to_group(void *g_, size_t flow, uint32_t bytes, uint64_t now)
{
    struct grouping *g = g_;

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

/* Chooses the intervals.  A capture that is too short has none, and each flow
 * is a group of its own. */
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

static char *
group_flows(const char *file, struct profile *p)
{
    struct grouping g = {
        .p = p,
        .n = p->n_flows < PROFILE_GROUPED ? p->n_flows : PROFILE_GROUPED,
    };
    char *error;

    choose_bins(&g);
    g.flows = allocate(g.n, sizeof *g.flows);
    g.groups = allocate(g.n, sizeof *g.groups);
    g.alike = allocate(g.n, sizeof *g.alike);
    g.trains = allocate(g.n, sizeof *g.trains);
    p->groups = allocate(g.n, sizeof *p->groups);
    error = for_each_frame(file, p, add_to_curve, &g);
    for (size_t i = 0; !error && i < g.n; i++) {
        join_group(&g, i);
    }
    error = error ? error : for_each_frame(file, p, add_to_group, &g);
    if (!error) {
        finish_groups(&g);
    }
    free(g.trains);
    free(g.alike);
    free(g.groups);
    free(g.flows);
    return error;
}

static void
finish_side(struct profile_side *side)
{
    if (side->train) {
        burst_train_get(side->train, side->train->last, &side->bursts);
        free(side->train);
        side->train = NULL;
    }
}

static int
compare_flows(const void *a_, const void *b_)
{
    const struct profile_flow *a = a_, *b = b_;
    uint64_t a_bytes = a->sent.bytes + a->received.bytes;
    uint64_t b_bytes = b->sent.bytes + b->received.bytes;

    return (a_bytes != b_bytes ? (a_bytes < b_bytes ? 1 : -1)
            : a->first != b->first ? (a->first < b->first ? -1 : 1)
            : memcmp(&a->key, &b->key, sizeof a->key));
}

char *
profile_read(const char *file, struct profile **pp)
{
    struct profile *p = allocate(1, sizeof *p);
    char *error = learn_flows(file, p);

    *pp = NULL;
    for (size_t i = 0; i < p->n_flows; i++) {
        finish_side(&p->flows[i].sent);
        finish_side(&p->flows[i].received);
    }
    if (!error && p->n_flows) {
        qsort(p->flows, p->n_flows, sizeof *p->flows, compare_flows);
        error = group_flows(file, p);
    }
    if (error) {
        profile_destroy(p);
    } else {
        *pp = p;
    }
    return error;
}

void
profile_destroy(struct profile *p)
{
    if (p) {
        free(p->flows);
        free(p->groups);
        free(p);
    }
}
