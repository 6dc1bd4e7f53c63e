/* SPDX-License-Identifier: Apache-2.0 */

#ifndef EVENT_QUEUE_H
#define EVENT_QUEUE_H 1

/* What is known to happen at a known time.
 *
 * The simulator goes from event to event.  Arrivals and ends of computations
 * are known in advance and wait here.  Ends of flows are not, since events
 * change rates; how they are found is a matter of the rate allocation.
 *
 * A binary heap that does not own what its events point to.  One thread. */

#include <stddef.h>
#include <stdint.h>

struct event {
    double time;                /* Seconds from the simulation's begin. */
    uint64_t seq;               /* Equal times keep the order of pushes. */
    void (*run)(void *aux, void *arg);
    void *arg;
};

struct event_queue {
    size_t n, allocated;
    struct event *heap;
    uint64_t seq;
};

void event_queue_init(struct event_queue *);
void event_queue_uninit(struct event_queue *);
void event_queue_push(struct event_queue *, double time,
                      void (*run)(void *aux, void *arg), void *arg);

/* Time of the next event, INFINITY if there is none. */
double event_queue_next(const struct event_queue *);
struct event event_queue_pop(struct event_queue *);

#endif /* sim/run/event-queue.h */
