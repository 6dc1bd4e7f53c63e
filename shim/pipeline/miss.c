/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/miss.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FILTER_SIZE 1024        /* A power of 2, like the ring's. */
#define RING_SIZE 512
#define REPEAT_NS 20000000      /* While it is unknown. */

struct miss {
    int fd;                     /* Event: the ring is no longer empty. */

    /* The loop's. */
    bool told;                  /* The event, of all in the ring. */
    struct {
        uint64_t hash;
        uint64_t when;          /* Last reported, 0 if never. */
    } filter[FILTER_SIZE];

    struct shim_flow_key ring[RING_SIZE];
    uint32_t head;              /* Next to take; the taker writes it. */
    uint32_t tail;              /* Next free; the reporter writes it. */
};

/* Returns NULL without memory or file descriptors. */
struct miss *
miss_create(void)
{
    struct miss *m = calloc(1, sizeof *m);

    if (m) {
        m->told = true;
        m->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (m->fd < 0) {
            free(m);
            m = NULL;
        }
    }
    return m;
}

void
miss_destroy(struct miss *m)
{
    if (m) {
        close(m->fd);
        free(m);
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

/* Reports 'key', whose flow_table_hash() is 'hash', unless it was reported
 * within the last 20 ms before 'now' (nanoseconds). */
void
miss_report(struct miss *m, const struct shim_flow_key *key, uint64_t hash,
            uint64_t now)
{
    size_t i = hash % FILTER_SIZE;

    if (m->filter[i].hash == hash && m->filter[i].when
        && now - m->filter[i].when < REPEAT_NS) {
        return;
    }
    if (push(m, key)) {
        m->filter[i].hash = hash;
        m->filter[i].when = now;
    }
}

/* Makes miss_fd() readable if there are new reports.  Once a burst, since it
 * costs a system call then.  The event cannot overflow: it is read at each
 * taking. */
void
miss_tell(struct miss *m)
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

/* Takes up to 'max' keys and returns how many.  When that is less than 'max',
 * miss_fd() is readable again only after the next report. */
uint32_t
miss_take(struct miss *m, struct shim_flow_key *keys, uint32_t max)
{
    uint64_t events;
    uint32_t tail, n = 0;

    if (read(m->fd, &events, sizeof events) < 0) {
        /* Nothing new; there may still be some of the last time. */
    }
    tail = __atomic_load_n(&m->tail, __ATOMIC_ACQUIRE);
    while (m->head + n != tail && n < max) {
        keys[n] = m->ring[(m->head + n) % RING_SIZE];
        n++;
    }
    __atomic_store_n(&m->head, m->head + n, __ATOMIC_RELEASE);
    return n;
}
