/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DRIVER_H
#define DRIVER_H 1

/* Interface of the drivers that apply the desired state to a switch.
 *
 * switches.h computes flows and queues for all kinds of switches; a driver
 * writes them by one protocol.  openflow.h writes flows, ovsdb-qos.h the
 * queues that the flows refer to.  Without the latter the operator of the
 * switch must configure the queues.
 *
 *    struct driver *d = openflow_create(target, admit, aux);
 *
 *    d->class->want(d, &want);                   // At any time, repeatedly.
 *    for (;;) {
 *        d->class->run(d);
 *        d->class->wait(d);
 *        poll_block();
 *    }
 *
 * want() returns at once.  If the flows or the queues that the driver uses
 * differ from those of the last call, it takes ownership of them and sets the
 * member to NULL.  run() applies the desired state: it sends only differences
 * and leaves entries of others alone.  A driver does not connect before the
 * first want(), so that a standby controller does not touch switches.  leave()
 * disconnects again.
 *
 * Strings are copied.  Main thread only. */

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
    uint64_t generation;        /* Leader's generation. */
    struct flow_table *flows;   /* For OpenFlow. */
    struct queue_plan *queues;  /* For ovsdb-qos. */
};

enum driver_state {
    DRIVER_DISCONNECTED,
    DRIVER_REFUSED,             /* By the switch or by the controller. */
    DRIVER_WRITING,             /* Differs from the desired state. */
    DRIVER_IN_SYNC,             /* Was as desired in the last dump. */
};

struct driver_status {
    enum driver_state state;
    const char *reason;         /* Problem that an operator must solve, such as
                                 * why the switch is refused; "" if none.  The
                                 * driver owns it. */
    uint64_t datapath;          /* Datapath id, 0 if unknown. */
    uint64_t newest;            /* Generation that the switch has seen, if it
                                 * refused the leader's for that; else 0. */
    size_t n_wanted;            /* Desired flows and groups, or rows. */
    size_t n_applied;           /* Part of 'n_wanted' in the switch. */
    unsigned int links;         /* Incremented when a port changes state. */
};

struct driver_class {
    const char *name;

    void (*destroy)(struct driver *);
    void (*want)(struct driver *, struct driver_want *);
    void (*leave)(struct driver *);
    void (*run)(struct driver *);
    void (*wait)(struct driver *);

    struct driver_status (*get_status)(const struct driver *);
    struct json *(*to_json)(const struct driver *);

    /* Returns true if the switch has reported 'port' as down.  Null in drivers
     * of queues. */
    bool (*is_down)(const struct driver *, uint32_t port);
};

/* Called from run(): decides about a switch with id 'datapath' and a
 * certificate for 'peer', NULL without TLS, before it is programmed.  Returns
 * NULL, or the reason for refusing it, which the driver frees. */
typedef char *driver_admit_func(const struct driver *, uint64_t datapath,
                                const char *peer, void *aux);

#endif /* controller/southbound/drivers/driver.h */
