/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DRIVER_H
#define DRIVER_H 1

/* What makes the wanted state true in a switch.
 *
 *
 * Motivation
 * ==========
 *
 * Which traffic goes where and in which queue is decided in one place; how a
 * switch is told differs between kinds of switches.  So what decides
 * (switches.h) is written against this interface.  openflow.h has the flows,
 * ovsdb-qos.h the queues that they name; where nobody says how these are made,
 * whoever runs the switch makes them.
 *
 *
 * Usage
 * =====
 *
 *    struct driver *d = openflow_create(target, &events, aux);
 *
 *    d->class->want(d, &want);                   // As often as one likes.
 *    for (;;) {
 *        d->class->run(d);
 *        d->class->wait(d);
 *        poll_block();
 *    }
 *
 * A driver says what is wanted and returns at once; it carries it out when it
 * can, from its own memory, sends only what differs and touches nothing that
 * is not ours.  Until the first want() it does not connect: a controller that
 * stands by leaves switches alone.  leave() brings that state back.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Arguments are copied.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow_table;
struct json;
struct queue_plan;

struct driver {
    const struct driver_class *class;
};

struct driver_want {
    uint64_t generation;        /* Of the leader that wants it. */
    const struct flow_table *flows;     /* For OpenFlow, */
    const struct queue_plan *queues;    /* for what makes queues. */
};

enum driver_state {
    DRIVER_AWAY,                /* Not connected, or not known yet. */
    DRIVER_REFUSED,             /* By the switch, or by us. */
    DRIVER_WRITING,
    DRIVER_IN_SYNC,             /* The last look at it was as wanted. */
};

struct driver_status {
    enum driver_state state;
    uint64_t datapath;          /* Its datapath id, 0 if it told none. */
    size_t n_wanted;            /* Flows and groups, or rows ... */
    size_t n_applied;           /* ... and how many of them are there. */
    unsigned int links;         /* Grows when a port goes up or down. */
};

struct driver_class {
    const char *name;

    void (*destroy)(struct driver *);
    void (*want)(struct driver *, const struct driver_want *);
    void (*leave)(struct driver *);
    void (*run)(struct driver *);
    void (*wait)(struct driver *);

    void (*get_status)(const struct driver *, struct driver_status *);
    struct json *(*to_json)(const struct driver *);

    /* Has the switch said that nothing gets through 'port'?  Null in a driver
     * of queues, which knows no port's state. */
    bool (*is_down)(const struct driver *, uint32_t port);

    /* Sends 'packet' out of 'port'.  False if the switch has not all that is
     * wanted.  Null as is_down() is. */
    bool (*send)(struct driver *, uint32_t port, const void *packet,
                 size_t size);
};

/* What a driver tells who created it, from run() only. */
struct driver_events {
    /* A switch says that it is 'datapath', with a certificate for 'peer', NULL
     * without TLS, and nothing has been asked of it yet.  Why it is refused,
     * which the driver frees, or NULL. */
    char *(*admit)(const struct driver *, uint64_t datapath, const char *peer,
                   void *aux);

    /* A flow of ours has sent a packet, which came in at 'port', to the
     * controller.  Null: there is no such flow. */
    void (*packet)(const struct driver *, uint32_t port, const void *packet,
                   size_t size, void *aux);
};

#endif /* controller/southbound/drivers/driver.h */
