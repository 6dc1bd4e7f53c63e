/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CONTROL_PORTS_H
#define CONTROL_PORTS_H 1

/* The ports that a job has registered for its control class.
 *
 * A flow of the job with one of them, at either end, is a control flow.  A
 * server that was started again has another port, so the oldest one is
 * replaced when there is no space.
 *
 *    added = control_ports_add(&ports, htons(7000));
 *    if (control_ports_match(&ports, &key)) {
 *        ...
 *    }
 *
 * Plain data, all zeros initially. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

#define CONTROL_PORTS_MAX 32

struct control_ports {
    uint16_t ports[CONTROL_PORTS_MAX];  /* In network byte order, 0: none. */
    uint32_t n_added;           /* Ports added so far; wraps around. */
};

static inline bool
control_ports_has(const struct control_ports *cp, uint16_t port)
{
    for (int i = 0; i < CONTROL_PORTS_MAX; i++) {
        if (port && cp->ports[i] == port) {
            return true;
        }
    }
    return false;
}

/* Returns false if 'port' was there already. */
static inline bool
control_ports_add(struct control_ports *cp, uint16_t port)
{
    if (control_ports_has(cp, port)) {
        return false;
    }
    cp->ports[cp->n_added++ % CONTROL_PORTS_MAX] = port;
    return true;
}

static inline bool
control_ports_match(const struct control_ports *cp,
                    const struct shim_flow_key *key)
{
    return (control_ports_has(cp, key->local_port)
            || control_ports_has(cp, key->remote_port));
}

#endif /* agent/identify/control-ports.h */
