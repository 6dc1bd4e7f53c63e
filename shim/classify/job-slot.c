/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/job-slot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/clock/counter.h"

#define NS_PER_MS 1000000u

_Static_assert(SLOT_TAG_SLOT == SHIM_MAX_SLOTS - 1
                   && SLOT_TAG_CONTROL == SHIM_MAX_SLOTS,
               "two rows of words");

struct job_slots {
    struct job_counters counters[SHIM_MAX_SLOTS];
    uint32_t words[2 * SHIM_MAX_SLOTS]; /* By slot and SLOT_TAG_CONTROL: a
                                         * struct treatment, 0: not in use. */
    uint64_t lease_end;                 /* Time, 0 before the first lease. */
    uint32_t default_dscp, control_dscp;
    uint64_t level_dscps;               /* Bit N: DSCP N is of a level, or
                                         * of control. */
    uint32_t n_control;                 /* Jobs with a control class: the
                                         * value of 'n_ordered'. */
    job_class classes[SHIM_MAX_SLOTS];
    uint32_t n_orders;                  /* Changes of 'classes', wrapping. */

    /* Only for the control thread. */
    struct shim_slot rows[SHIM_MAX_SLOTS];
    struct job_counters base[SHIM_MAX_SLOTS];   /* At the slot's last change
                                                 * of job. */
    uint32_t n;                         /* Slots in use. */
    uint16_t order[SHIM_MAX_SLOTS];     /* Ordered slots, by key_of(). */
    uint16_t n_ordered;                 /* Number of them. */
};

struct job_slots *
job_slots_create(void)
{
    static const uint8_t dscps[] = SHIM_LEVEL_DSCPS;
    struct job_slots *js = allocate_lines(sizeof *js);

    memset(js, 0, sizeof *js);
    for (int i = 0; i < SHIM_LEVEL_DEFAULT; i++) {
        js->level_dscps |= UINT64_C(1) << dscps[i];
    }
    js->control_dscp = SHIM_CONTROL_DSCP;
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        js->classes[i] = JOB_CLASS_LAST;
    }
    return js;
}

void
job_slots_destroy(struct job_slots *js)
{
    free(js);
}

static inline uint32_t
word_of(struct treatment t)
{
    uint32_t word;

    _Static_assert(sizeof t == sizeof word, "a treatment is one word");
    memcpy(&word, &t, sizeof word);
    return word;
}

static void
read_counters(const struct job_slots *js, uint16_t slot,
              struct job_counters *to)
{
    const struct job_counters *from = &js->counters[slot];

    to->tx_packets = counter_get(&from->tx_packets);
    to->tx_bytes = counter_get(&from->tx_bytes);
    to->rx_packets = counter_get(&from->rx_packets);
    to->rx_bytes = counter_get(&from->rx_bytes);
    to->tx_dropped = counter_get(&from->tx_dropped);
}

static bool
is_ordered(uint8_t level)
{
    return level != SHIM_LEVEL_CONTROL && level != SHIM_LEVEL_DEFAULT;
}

static uint64_t
key_of(const struct job_slots *js, uint16_t slot)
{
    return (uint64_t) js->rows[slot].rank << 8 | js->rows[slot].level;
}

/* Returns the index in 'order' after all slots with 'key' or less. */
static uint16_t
find_key(const struct job_slots *js, uint64_t key)
{
    uint16_t lo = 0, hi = js->n_ordered;

    while (lo < hi) {
        uint16_t mid = (lo + hi) / 2;

        if (key_of(js, js->order[mid]) <= key) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Removes 'slot', with its old row, from the order. */
static void
leave_order(struct job_slots *js, uint16_t slot)
{
    uint16_t i = find_key(js, key_of(js, slot));

    while (js->order[--i] != slot) {
        continue;
    }
    js->n_ordered--;
    memmove(&js->order[i], &js->order[i + 1],
            (js->n_ordered - i) * sizeof *js->order);
    __atomic_store_n(&js->classes[slot], JOB_CLASS_LAST, __ATOMIC_RELAXED);
}

static void
join_order(struct job_slots *js, uint16_t slot)
{
    uint16_t i = find_key(js, key_of(js, slot));

    memmove(&js->order[i + 1], &js->order[i],
            (js->n_ordered - i) * sizeof *js->order);
    js->order[i] = slot;
    js->n_ordered++;
}

static void
publish_classes(struct job_slots *js)
{
    uint16_t number = 0;

    for (uint16_t i = 0; i < js->n_ordered; i++) {
        uint16_t slot = js->order[i];

        if (i && key_of(js, slot) != key_of(js, js->order[i - 1])) {
            number++;
        }
        __atomic_store_n(&js->classes[slot],
                         JOB_CLASS(number, js->rows[slot].level),
                         __ATOMIC_RELAXED);
    }
    __atomic_store_n(&js->n_control, js->n_ordered, __ATOMIC_RELAXED);
    __atomic_store_n(&js->n_orders, js->n_orders + 1, __ATOMIC_RELEASE);
}

/* Sets the row of 'slot', NULL for none, and updates the order. */
static void
set_row(struct job_slots *js, uint16_t slot, const struct shim_slot *row)
{
    struct shim_slot *old = &js->rows[slot];
    bool was = js->words[slot] && is_ordered(old->level);
    bool is = row && is_ordered(row->level);

    if (was && is && row->rank == old->rank && row->level == old->level) {
        *old = *row;
        return;
    }
    if (was) {
        leave_order(js, slot);
    }
    if (row) {
        *old = *row;
    }
    if (is) {
        join_order(js, slot);
    }
    if (was || is) {
        publish_classes(js);
    }
}

/* Sets both treatments of 'slot' by 'word', 0 for no treatment.  The row of
 * the slot must be set. */
static void
set_words(struct job_slots *js, uint16_t slot, uint32_t word)
{
    uint32_t control = word_of((struct treatment) {
        .level = SHIM_LEVEL_CONTROL, .dscp = js->control_dscp, .in_use = true,
    });
    bool has_control = word && is_ordered(js->rows[slot].level);

    __atomic_store_n(&js->words[slot], word, __ATOMIC_RELAXED);
    __atomic_store_n(&js->words[slot | SLOT_TAG_CONTROL],
                     has_control ? control : word, __ATOMIC_RELAXED);
}

/* Assigns 'row->slot' to the job of 'row', or changes its treatment.  Counters
 * start from 0 if the slot was not in use.  Returns 0 or EINVAL. */
int
job_slots_set(struct job_slots *js, const struct shim_slot *row)
{
    uint32_t word = word_of((struct treatment){
        .level = row->level, .dscp = row->dscp, .in_use = true });

    if (!row->slot || row->slot >= SHIM_MAX_SLOTS
        || row->level >= SHIM_N_LEVELS || row->dscp > 63) {
        return EINVAL;
    }
    if (!js->words[row->slot]) {
        read_counters(js, row->slot, &js->base[row->slot]);
        js->n++;
    }
    set_row(js, row->slot, row);
    set_words(js, row->slot, word);
    return 0;
}

/* Returns 0, also if the slot was not in use, or EINVAL. */
int
job_slots_clear(struct job_slots *js, uint16_t slot)
{
    if (!slot || slot >= SHIM_MAX_SLOTS) {
        return EINVAL;
    }
    if (js->words[slot]) {
        set_row(js, slot, NULL);
        js->n--;
    }
    set_words(js, slot, 0);
    return 0;
}

/* Sets the DSCP of all control classes, 1 .. 63, and those of all levels, a
 * bit for each. */
void
job_slots_set_control(struct job_slots *js, uint8_t dscp, uint64_t levels)
{
    __atomic_store_n(&js->level_dscps, levels | UINT64_C(1) << dscp,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&js->control_dscp, dscp, __ATOMIC_RELAXED);
    for (uint16_t i = 1; i < SHIM_MAX_SLOTS; i++) {
        set_words(js, i, js->words[i]);
    }
}

uint8_t
job_slots_control_dscp(const struct job_slots *js)
{
    return __atomic_load_n(&js->control_dscp, __ATOMIC_RELAXED);
}

/* Returns a bit for each DSCP that packets of no job must not have. */
uint64_t
job_slots_level_dscps(const struct job_slots *js)
{
    return __atomic_load_n(&js->level_dscps, __ATOMIC_RELAXED);
}

/* Returns the number of jobs that have a control class. */
uint32_t
job_slots_count_control(const struct job_slots *js)
{
    return __atomic_load_n(&js->n_control, __ATOMIC_RELAXED);
}

/* Makes the slots valid for 'ms' from 'now' on; 0 ends the lease. */
void
job_slots_lease(struct job_slots *js, uint64_t now, uint32_t ms,
                uint8_t default_dscp)
{
    __atomic_store_n(&js->default_dscp, default_dscp, __ATOMIC_RELAXED);
    __atomic_store_n(&js->lease_end, now + (uint64_t) ms * NS_PER_MS,
                     __ATOMIC_RELAXED);
}

uint32_t
job_slots_count(const struct job_slots *js)
{
    return js->n;
}

/* Copies the row of 'slot' to '*row' if it is in use. */
bool
job_slots_get(const struct job_slots *js, uint16_t slot, struct shim_slot *row)
{
    if (js->words[slot]) {
        *row = js->rows[slot];
    }
    return js->words[slot] != 0;
}

/* Stores the counters of 'slot' for its job, and its treatment, in '*stats' if
 * the slot is in use. */
bool
job_slots_stats(const struct job_slots *js, uint16_t slot, uint64_t now,
                struct shim_slot_stats *stats)
{
    const struct job_counters *base = &js->base[slot];
    struct treatment t;
    struct job_counters c;

    if (!js->words[slot]) {
        return false;
    }
    t = job_slots_treatment(js, slot, job_slots_leased(js, now));
    read_counters(js, slot, &c);
    *stats = (struct shim_slot_stats) {
        .slot = slot, .level = t.level, .dscp = t.dscp,
        .tx_packets = c.tx_packets - base->tx_packets,
        .tx_bytes = c.tx_bytes - base->tx_bytes,
        .rx_packets = c.rx_packets - base->rx_packets,
        .rx_bytes = c.rx_bytes - base->rx_bytes,
        .tx_dropped = c.tx_dropped - base->tx_dropped
    };
    return true;
}

uint32_t
job_slots_lease_left_ms(const struct job_slots *js, uint64_t now)
{
    uint64_t end = __atomic_load_n(&js->lease_end, __ATOMIC_RELAXED);

    return end > now ? (end - now + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* Returns true if any lease has been set, even one that has ended. */
bool
job_slots_had_lease(const struct job_slots *js)
{
    return __atomic_load_n(&js->lease_end, __ATOMIC_RELAXED) != 0;
}

bool
job_slots_leased(const struct job_slots *js, uint64_t now)
{
    return __atomic_load_n(&js->lease_end, __ATOMIC_RELAXED) > now;
}

static uint32_t
default_word(const struct job_slots *js)
{
    return word_of((struct treatment) {
        .level = SHIM_LEVEL_DEFAULT,
        .dscp = __atomic_load_n(&js->default_dscp, __ATOMIC_RELAXED),
        .is_default = true });
}

struct job_treatments
job_slots_treatments(const struct job_slots *js, bool leased)
{
    return (struct job_treatments){ .words = js->words,
                                    .mask = leased ? UINT32_MAX : 0,
                                    .by_default = default_word(js) };
}

/* Returns the treatment of 'slot', below SHIM_MAX_SLOTS. */
struct treatment
job_slots_treatment(const struct job_slots *js, uint16_t slot, bool leased)
{
    struct job_treatments jt = job_slots_treatments(js, leased);

    return job_treatment(&jt, slot);
}

/* Copies the classes of all slots to 'classes' and returns true if they have
 * changed since '*seen', which is updated and initially UINT32_MAX.  During a
 * change the copy may be inconsistent; then the next call copies again. */
bool
job_slots_classes(const struct job_slots *js, uint32_t *seen,
                  job_class classes[SHIM_MAX_SLOTS])
{
    uint32_t n = __atomic_load_n(&js->n_orders, __ATOMIC_ACQUIRE);

    if (n == *seen) {
        return false;
    }
    *seen = n;
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        classes[i] = __atomic_load_n(&js->classes[i], __ATOMIC_RELAXED);
    }
    return true;
}

/* Returns the number of the class of 'slot', 0 being served first, or
 * UINT32_MAX if the slot is not in use or not leased. */
uint32_t
job_slots_rank(const struct job_slots *js, uint16_t slot, bool leased)
{
    uint32_t word = __atomic_load_n(&js->words[slot], __ATOMIC_RELAXED);

    return (leased && word ? JOB_CLASS_NUMBER(
                __atomic_load_n(&js->classes[slot], __ATOMIC_RELAXED))
                           : UINT32_MAX);
}

struct job_counters *
job_slots_counters(struct job_slots *js, uint16_t slot)
{
    return &js->counters[slot];
}

static inline void
count_frames(struct job_counters *job, bool tx, uint64_t packets,
             uint64_t bytes)
{
    counter_add(tx ? &job->tx_packets : &job->rx_packets, packets);
    counter_add(tx ? &job->tx_bytes : &job->rx_bytes, bytes);
}

/* Counts the first run of frames of one slot.  Returns its length. */
static uint32_t __attribute__((noinline))
count_run(struct job_counters *job, bool tx, const uint16_t *slots,
          const uint32_t *lengths, uint32_t n)
{
    uint64_t bytes = 0;
    uint32_t i = 0;

    do {
        bytes += lengths[i++];
    } while (i < n && slots[i] == slots[0]);
    count_frames(job, tx, i, bytes);
    return i;
}

/* Counts 'n' frames.  A run of frames of one slot is added up first, because
 * each addition to a counter would wait for the one before. */
static inline void
count_burst(struct job_counters *counters, bool tx, const uint16_t *slots,
            const uint32_t *lengths, uint32_t n)
{
    const uint16_t *last = slots + (n ? n - 1 : 0);

    for (; slots < last; slots++, lengths++) {
        struct job_counters *job = &counters[slots[0]];

        if (slots[0] == slots[1]) {
            uint32_t more = count_run(job, tx, slots, lengths,
                                      last + 1 - slots) - 1;

            slots += more;
            lengths += more;
        } else {
            count_frames(job, tx, 1, lengths[0]);
        }
    }
    if (n && slots == last) {
        count_frames(&counters[slots[0]], tx, 1, lengths[0]);
    }
}

void
job_slots_count_tx(struct job_slots *js, const uint16_t *slots,
                   const uint32_t *lengths, uint32_t n)
{
    count_burst(js->counters, true, slots, lengths, n);
}

void
job_slots_count_rx(struct job_slots *js, const uint16_t *slots,
                   const uint32_t *lengths, uint32_t n)
{
    count_burst(js->counters, false, slots, lengths, n);
}
