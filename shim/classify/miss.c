/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/miss.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"

#define FILTER_SETS 256         /* A power of 2, like the ring's size. */
#define FILTER_WAYS 4           /* Flows of a set. */
#define RING_SIZE 512
#define REPEAT_NS 20000000u     /* Until the second report of a flow. */
#define MAX_REPEAT_NS (16 * REPEAT_NS)  /* Between later reports. */
#define FORGET_NS 1000000000u   /* A flow without reports for this long is
                                 * reported like a new one. */

/* The last report of a flow. */
struct filter {
    uint64_t hash;
    uint64_t when;              /* Time of the report, 0: none. */
    uint32_t wait;              /* Until the next report, nanoseconds. */
    uint32_t listeners;         /* 'listeners' of struct miss at 'when'. */
};

struct miss {
    int fd;                     /* Event: there are new reports. */

    /* Only for the loop. */
    bool notified;              /* 'fd' was written for all in the ring. */
    struct filter filter[FILTER_SETS][FILTER_WAYS];

    struct shim_flow_key ring[RING_SIZE];
    uint32_t head;              /* Next to take; written by the taker. */
    uint32_t tail;              /* Next free; written by the reporter. */

    uint32_t listeners;         /* Clients so far; written by the taker, read
                                 * by the reporter. */
    struct miss *next;          /* Another reporting thread's, same 'fd'. */
};

static struct miss *
create_with_fd(int fd)
{
    struct miss *m = allocate(1, sizeof *m);

    m->notified = true;
    m->fd = fd;
    return m;
}

/* Returns NULL without file descriptors. */
struct miss *
miss_create(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    return fd < 0 ? NULL : create_with_fd(fd);
}

/* Returns a struct for another reporting thread. */
struct miss *
miss_add(struct miss *m)
{
    struct miss *other = create_with_fd(m->fd);

    other->next = m->next;
    m->next = other;
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
push_key(struct miss *m, const struct shim_flow_key *key)
{
    uint32_t head = __atomic_load_n(&m->head, __ATOMIC_ACQUIRE);

    if (m->tail - head >= RING_SIZE) {
        return false;
    }
    m->ring[m->tail % RING_SIZE] = *key;
    __atomic_store_n(&m->tail, m->tail + 1, __ATOMIC_RELEASE);
    m->notified = false;
    return true;
}

/* Returns the entry of 'hash', or else the oldest entry of its set. */
static struct filter *
find_entry(struct miss *m, uint64_t hash)
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

/* Reports 'key', with the flow_table_hash() 'hash', unless the last report is
 * too recent. */
void
miss_report(struct miss *m, const struct shim_flow_key *key, uint64_t hash,
            uint64_t now)
{
    struct filter *f = find_entry(m, hash);
    uint32_t listeners = __atomic_load_n(&m->listeners, __ATOMIC_RELAXED);
    bool again = (f->hash == hash && f->when && f->listeners == listeners
                  && now - f->when < FORGET_NS);

    if (again && now - f->when < f->wait) {
        return;
    }
    if (push_key(m, key)) {
        f->hash = hash;
        f->when = now;
        f->wait = (!again ? REPEAT_NS
                   : f->wait < MAX_REPEAT_NS ? 2 * f->wait : MAX_REPEAT_NS);
        f->listeners = listeners;
    }
}

/* Makes miss_fd() readable if there are new reports.  Called once a burst, as
 * it costs a system call. */
void
miss_notify(struct miss *m)
{
    uint64_t one = 1;

    if (!m->notified) {
        m->notified = write(m->fd, &one, sizeof one) == sizeof one;
    }
}

int
miss_fd(const struct miss *m)
{
    return m->fd;
}

/* Makes the next packet of each unknown flow a report, for a new client. */
void
miss_repeat(struct miss *m)
{
    for (; m; m = m->next) {
        __atomic_fetch_add(&m->listeners, 1, __ATOMIC_RELAXED);
    }
}

static uint32_t
take_from_ring(struct miss *m, struct shim_flow_key *keys, uint32_t max)
{
    uint32_t tail = __atomic_load_n(&m->tail, __ATOMIC_ACQUIRE), n = 0;

    while (m->head + n != tail && n < max) {
        keys[n] = m->ring[(m->head + n) % RING_SIZE];
        n++;
    }
    __atomic_store_n(&m->head, m->head + n, __ATOMIC_RELEASE);
    return n;
}

/* Takes up to 'max' keys and returns their number.  If that is less than
 * 'max', miss_fd() becomes readable with the next report. */
uint32_t
miss_take(struct miss *m, struct shim_flow_key *keys, uint32_t max)
{
    uint64_t events;
    uint32_t n = 0;

    if (read(m->fd, &events, sizeof events) < 0) {
        /* No event; keys of the last call may be left. */
    }
    for (; m && n < max; m = m->next) {
        n += take_from_ring(m, keys + n, max - n);
    }
    return n;
}
