/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <string.h>

#include "shim/classify/flow-table-internal.h"

#define AGE_STEPS 16            /* Of a time-out. */

static struct shim_flow *
flow_of(const struct flow_table *ft, const uint64_t *word)
{
    return &ft->flows[ft->numbers[word - ft->words]];
}

/* Returns the word of 'bucket' that has the print of 'hash', 0 for one that is
 * free, NULL if there is none. */
static uint64_t *
find_print(uint64_t *bucket, uint64_t print)
{
    for (int way = 0; way < N_WAYS; way++) {
        if ((LOAD(&bucket[way]) & PRINT_MASK) == print) {
            return &bucket[way];
        }
    }
    return NULL;
}

/* Returns the word of the flow of 'hash', NULL if there is none. */
static uint64_t *
find(const struct flow_table *ft, uint64_t hash)
{
    uint64_t print = print_of(hash);
    uint64_t *word = find_print(first_bucket(ft, hash), print);

    return word ? word : find_print(second_bucket(ft, hash), print);
}

static void
put(struct flow_table *ft, uint64_t *word, uint64_t value, uint32_t number)
{
    ft->numbers[word - ft->words] = number;
    RELEASE(word, value);
}

/* Moves one flow of 'bucket' for which this is the first one to its second
 * one.  Returns its word, which is free then, NULL if none can go. */
static uint64_t *
move_one(struct flow_table *ft, uint64_t *bucket)
{
    for (int way = 0; way < N_WAYS; way++) {
        uint64_t *word = &bucket[way], *free;
        uint64_t hash = flow_table_hash(ft, &flow_of(ft, word)->key);

        free = (first_bucket(ft, hash) == bucket
                ? find_print(second_bucket(ft, hash), 0) : NULL);
        if (free) {
            put(ft, free, LOAD(word), ft->numbers[word - ft->words]);
            RELEASE(word, 0);
            return word;
        }
    }
    return NULL;
}

/* Returns a word for 'hash', NULL if there is no room. */
static uint64_t *
find_room(struct flow_table *ft, uint64_t hash)
{
    uint64_t *first = first_bucket(ft, hash);
    uint64_t *second = second_bucket(ft, hash), *word = find_print(first, 0);

    word = word ? word : find_print(second, 0);
    word = word ? word : move_one(ft, first);
    return word ? word : move_one(ft, second);
}

/* Returns the number of a free flow, of which there must be one. */
static uint32_t
take_number(struct flow_table *ft)
{
    uint32_t number = ft->free;

    if (number == NOBODY) {
        return ft->n_used++;
    }
    memcpy(&ft->free, ft->flows[number].key.local, sizeof ft->free);
    return number;
}

static void
give_number(struct flow_table *ft, uint32_t number)
{
    struct shim_flow *flow = &ft->flows[number];

    flow->key.family = 0;
    memcpy(flow->key.local, &ft->free, sizeof ft->free);
    ft->free = number;
}

static int
add(struct flow_table *ft, const struct shim_flow *flow, uint64_t hash,
    uint64_t value)
{
    uint64_t *word = ft->n < ft->max ? find_room(ft, hash) : NULL;
    uint32_t number;

    if (!word) {
        return ENOSPC;
    }
    number = take_number(ft);
    ft->flows[number] = *flow;
    put(ft, word, value, number);
    STORE(&ft->n, ft->n + 1);
    return 0;
}

/* Makes 'key' belong to 'slot', whether it was there or not.  Returns 0, or
 * ENOSPC if the table is full, or if 'key' cannot be told from another flow. */
int
flow_table_set(struct flow_table *ft, const struct shim_flow_key *key,
               uint16_t slot)
{
    const struct shim_flow flow = { .key = *key, .slot = slot };
    uint64_t hash = flow_table_hash(ft, key), print = print_of(hash);
    uint64_t value = (print | (uint64_t) slot << SLOT_SHIFT
                      | (uint64_t) ft->tick << AGE_SHIFT);
    uint64_t *word = print ? find(ft, hash) : NULL;
    bool same = word && !memcmp(&flow_of(ft, word)->key, key, sizeof *key);
    int error = 0;

    /* Once before, so that who has found it knows; and once after, so that
     * who looked too soon looks again. */
    RELEASE(&ft->n_changes, ft->n_changes + 1);
    if (same) {
        flow_of(ft, word)->slot = slot;
        RELEASE(word, value);
    } else {
        error = word || !print ? ENOSPC : add(ft, &flow, hash, value);
    }
    RELEASE(&ft->n_changes, ft->n_changes + 1);
    if (error) {
        STORE(&ft->n_refused, ft->n_refused + 1);
    }
    return error;
}

static void
remove_word(struct flow_table *ft, uint64_t *word)
{
    give_number(ft, ft->numbers[word - ft->words]);
    RELEASE(word, 0);
    STORE(&ft->n, ft->n - 1);
}

/* Returns 0, or ENOENT if 'key' was not there. */
int
flow_table_delete(struct flow_table *ft, const struct shim_flow_key *key)
{
    uint64_t hash = flow_table_hash(ft, key);
    uint64_t *word = print_of(hash) ? find(ft, hash) : NULL;

    if (!word || memcmp(&flow_of(ft, word)->key, key, sizeof *key)) {
        return ENOENT;
    }
    remove_word(ft, word);
    return 0;
}

/* Copies flows to 'flows', in no order, from '*cursor' on, 0 at first, until
 * there are 'max' or no more.  Returns how many, and stores where to go on in
 * '*cursor', 0 after the last.  A flow that is there all the time is listed
 * once, whatever else changes. */
uint32_t
flow_table_list(const struct flow_table *ft, uint64_t *cursor,
                struct shim_flow *flows, uint32_t max)
{
    uint64_t at = *cursor;
    uint32_t n = 0;

    for (; at < ft->n_used; at++) {
        if (ft->flows[at].key.family) {
            if (n >= max) {
                break;
            }
            flows[n++] = ft->flows[at];
        }
    }
    *cursor = at < ft->n_used ? at : 0;
    return n;
}

static uint8_t
tick_at(const struct flow_table *ft, uint64_t now)
{
    return ft->timeout ? now / (ft->timeout / AGE_STEPS + 1) : 0;
}

/* Lets flows go that nobody sees for 'ns', 0: never.  To be called before any
 * is there. */
void
flow_table_set_timeout(struct flow_table *ft, uint64_t ns, uint64_t now)
{
    ft->timeout = ns;
    STORE(&ft->tick, tick_at(ft, now));
}

static uint64_t
n_words(const struct flow_table *ft)
{
    return ((ft->mask >> BUCKET_SHIFT) + 1) * N_WAYS;
}

static uint32_t
age_all(struct flow_table *ft)
{
    uint32_t n = 0;

    for (uint64_t i = 0; i < n_words(ft); i++) {
        uint64_t word = LOAD(&ft->words[i]);
        uint8_t age = ft->tick - (word >> AGE_SHIFT);

        /* Counted in whole steps, so one more may be missing. */
        if (word & PRINT_MASK && age > AGE_STEPS) {
            remove_word(ft, &ft->words[i]);
            n++;
        }
    }
    return n;
}

/* Deletes the flows whose time is out at 'now', nanoseconds.  To be called
 * several times in a time-out; most calls return at once.  Returns how many
 * those were. */
uint32_t
flow_table_age(struct flow_table *ft, uint64_t now)
{
    uint8_t tick = tick_at(ft, now);
    uint32_t n;

    if (tick == ft->tick) {
        return 0;
    }
    STORE(&ft->tick, tick);
    n = age_all(ft);
    STORE(&ft->n_aged, ft->n_aged + n);
    return n;
}
