/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/miss.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FILTER_SETS 256         /* A power of 2, like the ring's size. */
#define FILTER_WAYS 4           /* Flows of one set that are remembered. */
#define RING_SIZE 512
#define REPEAT_NS 20000000u     /* While it is unknown, at first... */
#define MAX_REPEAT_NS (16 * REPEAT_NS)
#define FORGET_NS 1000000000u   /* ...and after so long without a packet. */

/* What was reported of the flows of one hash. */
struct filter {
    uint64_t hash;
    uint64_t when;              /* The last time, 0 if never. */
    uint32_t wait;              /* Not again before 'when' + this. */
    uint32_t listeners;         /* As in struct miss, at that time. */
};

struct miss {
    int fd;                     /* Event: the ring is no longer empty. */

    /* The loop's. */
    bool told;                  /* The event, of all in the ring. */
    struct filter filter[FILTER_SETS][FILTER_WAYS];

    struct shim_flow_key ring[RING_SIZE];
    uint32_t head;              /* Next to take; the taker writes it. */
    uint32_t tail;              /* Next free; the reporter writes it. */

    uint32_t listeners;         /* That there have been; the taker writes it,
                                 * the reporter reads it. */
    struct miss *next;          /* Of another thread, with the same 'fd'. */
};

static struct miss *
create(int fd)
{
    struct miss *m = calloc(1, sizeof *m);

    if (m) {
        m->told = true;
        m->fd = fd;
    }
    return m;
}

/* Returns NULL without memory or file descriptors. */
struct miss *
miss_create(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct miss *m = fd < 0 ? NULL : create(fd);

    if (!m && fd >= 0) {
        close(fd);
    }
    return m;
}

/* Returns what another thread reports to, NULL without memory.  'm' is one of
 * miss_create() and takes its keys. */
struct miss *
miss_add(struct miss *m)
{
    struct miss *other = create(m->fd);

    if (other) {
        other->next = m->next;
        m->next = other;
    }
    return other;
}

void
miss_destroy(struct miss *m)
{
    if (m) {
        close(m->fd);
    }
    while (m) {
        struct miss *next = m->next;

        free(m);
        m = next;
    }
}

static bool
push(struct miss *m, const struct shim_flow_key *key)
{
    uint32_t head = __atomic_load_n(&m->head, __ATOMIC_ACQUIRE);

    if (m->tail - head >= RING_SIZE) {
        return false;
    }
    m->ring[m->tail % RING_SIZE] = *key;
    __atomic_store_n(&m->tail, m->tail + 1, __ATOMIC_RELEASE);
    m->told = false;
    return true;
}

/* Returns what is remembered of 'hash', or else what may be forgotten. */
static struct filter *
find(struct miss *m, uint64_t hash)
{
    struct filter *set = m->filter[hash % FILTER_SETS], *oldest = set;

    for (int i = 0; i < FILTER_WAYS; i++) {
        if (set[i].hash == hash) {
            return &set[i];
        }
        oldest = set[i].when < oldest->when ? &set[i] : oldest;
    }
    return oldest;
}

/* Reports 'key', whose flow_table_hash() is 'hash', at 'now' (nanoseconds),
 * unless it is too soon to say so again. */
void
miss_report(struct miss *m, const struct shim_flow_key *key, uint64_t hash,
            uint64_t now)
{
    struct filter *f = find(m, hash);
    uint32_t listeners = __atomic_load_n(&m->listeners, __ATOMIC_RELAXED);
    bool again = (f->hash == hash && f->when && f->listeners == listeners
                  && now - f->when < FORGET_NS);

    if (again && now - f->when < f->wait) {
        return;
    }
    if (push(m, key)) {
        f->hash = hash;
        f->when = now;
        f->wait = (!again ? REPEAT_NS
                   : f->wait < MAX_REPEAT_NS ? 2 * f->wait : MAX_REPEAT_NS);
        f->listeners = listeners;
    }
}

/* Makes miss_fd() readable if there are new reports.  Once a burst, since it
 * costs a system call then.  The event cannot overflow: it is read at each
 * taking. */
void
miss_notify(struct miss *m)
{
    uint64_t one = 1;

    if (!m->told) {
        m->told = write(m->fd, &one, sizeof one) == sizeof one;
    }
}

int
miss_fd(const struct miss *m)
{
    return m->fd;
}

/* Somebody begins to listen, and has not heard what was reported before: all
 * that is unknown is reported with its next packet. */
void
miss_repeat(struct miss *m)
{
    for (; m; m = m->next) {
        __atomic_fetch_add(&m->listeners, 1, __ATOMIC_RELAXED);
    }
}

/* Of one thread. */
static uint32_t
take(struct miss *m, struct shim_flow_key *keys, uint32_t max)
{
    uint32_t tail = __atomic_load_n(&m->tail, __ATOMIC_ACQUIRE), n = 0;

    while (m->head + n != tail && n < max) {
        keys[n] = m->ring[(m->head + n) % RING_SIZE];
        n++;
    }
    __atomic_store_n(&m->head, m->head + n, __ATOMIC_RELEASE);
    return n;
}

/* Takes up to 'max' keys and returns how many.  When that is less than 'max',
 * miss_fd() is readable again only after the next report. */
uint32_t
miss_take(struct miss *m, struct shim_flow_key *keys, uint32_t max)
{
    uint64_t events;
    uint32_t n = 0;

    if (read(m->fd, &events, sizeof events) < 0) {
        /* Nothing new; there may still be some of the last time. */
    }
    for (; m && n < max; m = m->next) {
        n += take(m, keys + n, max - n);
    }
    return n;
}
