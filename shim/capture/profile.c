/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/capture/profile-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/capture/file.h"
#include "shim/classify/parse.h"

#define MIN_PACKETS 16          /* Before a side's bursts are looked at. */

/* Flows by key: open addressing, numbers of flows + 1. */
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

/* The same for both directions. */
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

/* Returns the cell of 'key' or the free one where it belongs. */
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

/* Makes an index of 'p' with room for as many flows again. */
static bool
index_build(struct index *index, const struct profile *p)
{
    size_t n = 1024;

    while (n < p->n_flows * 4) {
        n *= 2;
    }
    free(index->cells);
    index->cells = calloc(n, sizeof *index->cells);
    index->mask = n - 1;
    for (size_t i = 0; index->cells && i < p->n_flows; i++) {
        *find_cell(index, p, &p->flows[i].key) = i + 1;
    }
    return index->cells != NULL;
}

static bool
parse_key(const struct capture_frame *frame, struct shim_flow_key *key)
{
    struct parsed parsed;
    uint8_t *whole = NULL;

    /* The parser wants the packet to be all there. */
    if (frame->captured < frame->length
        && frame->length <= CAPTURE_MAX_FRAME) {
        whole = calloc(1, frame->length);
        if (whole) {
            memcpy(whole, frame->data, frame->captured);
        }
    }
    parse_frame(whole ? whole : frame->data,
                whole ? frame->length : frame->captured, true, &parsed);
    free(whole);
    *key = parsed.key;
    return parsed.kind == PARSED_FLOW;
}

static char *
no_memory(const char *file)
{
    char *s;

    return asprintf(&s, "%s: no memory", file) < 0 ? NULL : s;
}

static struct profile_flow *
add_flow(struct profile *p, struct index *index, uint32_t *cell,
         const struct shim_flow_key *key, uint64_t now)
{
    if (!(p->n_flows & (p->n_flows - 1))) {     /* Full: 0, 1, 2, 4, ... */
        size_t n = p->n_flows ? p->n_flows * 2 : 1;
        struct profile_flow *flows = realloc(p->flows, n * sizeof *flows);

        if (!flows) {
            return NULL;
        }
        p->flows = flows;
    }
    p->flows[p->n_flows] = (struct profile_flow) {
        .key = *key,
        .first = now,
        .group = SIZE_MAX,
    };
    *cell = ++p->n_flows;
    if (p->n_flows * 2 > index->mask && !index_build(index, p)) {
        return NULL;
    }
    return &p->flows[p->n_flows - 1];
}

static void
count_side(struct profile_side *side, uint32_t bytes, uint64_t now)
{
    side->packets++;
    side->bytes += bytes;
    if (!side->train && side->packets >= MIN_PACKETS) {
        side->train = calloc(1, sizeof *side->train);
    }
    if (side->train) {
        burst_train_count(side->train, bytes, now);
    }
}

/* Takes a frame into account.  Returns false without memory. */
static bool
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
        return true;
    }
    cell = find_cell(index, p, &key);
    if (*cell) {
        flow = &p->flows[*cell - 1];
    } else if (p->n_flows >= PROFILE_MAX_FLOWS) {
        p->other_frames++;
        return true;
    } else {
        flow = add_flow(p, index, cell, &key, p->last);
    }
    if (flow) {
        flow->last = p->last;
        count_side(memcmp(&flow->key, &key, sizeof key) ? &flow->received
                   : &flow->sent, frame->length, p->last);
    }
    return flow != NULL;
}

static char *
learn_flows(const char *file, struct profile *p)
{
    struct index index = { .cells = NULL };
    struct capture_reader *reader;
    struct capture_frame frame;
    char *error = capture_open(file, &reader);

    if (!error && !index_build(&index, p)) {
        error = no_memory(file);
    }
    while (!error && !(error = capture_next(reader, &frame)) && frame.data) {
        if (!learn_frame(p, &index, &frame)) {
            error = no_memory(file);
        }
    }
    capture_close(reader);
    free(index.cells);
    return error;
}

char *
profile_pass(const char *file, const struct profile *p,
             profile_see_func *see, void *aux)
{
    struct index index = { .cells = NULL };
    struct capture_reader *reader;
    struct capture_frame frame;
    uint64_t now = 0;
    char *error = capture_open(file, &reader);

    if (!error && !index_build(&index, p)) {
        error = no_memory(file);
    }
    while (!error && !(error = capture_next(reader, &frame)) && frame.data) {
        struct shim_flow_key key;
        uint32_t flow;

        now = frame.time > now ? frame.time : now;
        flow = parse_key(&frame, &key) ? *find_cell(&index, p, &key) : 0;
        if (flow) {
            see(aux, flow - 1, !memcmp(&p->flows[flow - 1].key, &key,
                                       sizeof key), frame.length, now);
        }
    }
    capture_close(reader);
    free(index.cells);
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
    struct profile *p = calloc(1, sizeof *p);
    char *error;

    *pp = NULL;
    if (!p) {
        return no_memory(file);
    }
    error = learn_flows(file, p);
    for (size_t i = 0; i < p->n_flows; i++) {
        finish_side(&p->flows[i].sent);
        finish_side(&p->flows[i].received);
    }
    if (!error && p->n_flows) {
        qsort(p->flows, p->n_flows, sizeof *p->flows, compare_flows);
        error = profile_group_flows(file, p);
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
