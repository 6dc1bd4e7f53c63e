/* SPDX-License-Identifier: Apache-2.0 */

/* What the control thread sees of a port: is it well, what has it counted? */

#include "shim/ports/port.h"

#include <stddef.h>

#include <rte_ethdev.h>

#include "shim/clock/counter.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/port-driver.h"
#include "shim/ports/port-private.h"

#define REFUSED_NS 200000000ull         /* The driver took nothing: stuck. */
#define SILENT_NS 1000000000ull         /* The kernel sent nothing: stuck. */
#define RETRY_NS 1000000000ull          /* Between two restarts. */

/* Returns what 'counter', an offset in struct port, says of all queues. */
static uint64_t
sum(const struct port *port, size_t counter)
{
    uint64_t total = 0;

    for (unsigned int i = 0; i < port_n_queues(port); i++) {
        const char *queue = (char *) port_queue((struct port *) port, i);

        total += counter_get((const uint64_t *) (queue + counter));
    }
    return total;
}

/* The port begins anew: nothing is known against it. */
void
port_check_reset(struct port *port)
{
    for (unsigned int i = 0; i < port_n_queues(port); i++) {
        __atomic_store_n(&port_queue(port, i)->refused_since, 0,
                         __ATOMIC_RELAXED);
    }
    port->progress = 0;
}

/* Is the kernel's counter standing still while we offer frames?  What it has
 * sent is read first, and includes no frame that 'offered' does not: an
 * increase of 'offered' must show there later. */
static bool
is_silent(struct port *port, uint64_t now)
{
    uint64_t sent, offered;

    if (iface_sent(port->device.spec.iface, &sent)) {
        return false;
    }
    offered = sum(port, offsetof(struct port, offered));
    if (!port->progress || sent != port->checked_sent
        || offered == port->checked_offered) {
        port->checked_sent = sent;
        port->checked_offered = offered;
        port->progress = now;
    }
    return now - port->progress >= SILENT_NS;
}

/* Since when has the driver taken nothing of a queue?  0 if it does. */
static uint64_t
refused_since(struct port *port)
{
    uint64_t first = 0;

    for (unsigned int i = 0; i < port_n_queues(port); i++) {
        uint64_t since = counter_get(&port_queue(port, i)->refused_since);

        first = since && (!first || since < first) ? since : first;
    }
    return first;
}

/* Returns what is wrong with the port, whose interface is there, or NULL. */
static const char *
find_fault(struct port *port, uint64_t now)
{
    uint64_t refused = refused_since(port);

    if (!port->device.up) {
        return "the interface is back";
    }
    if (if_nametoindex(port->device.spec.iface) != port->ifindex) {
        return "the interface is another one";
    }
    if (!iface_is_up(port->device.spec.iface)) {
        port->progress = 0;
        return NULL;
    }
    if (port_fd(port) >= 0 && port_has(port, PORT_PACKET_SOCKET)) {
        af_packet_clear_error(port_fd(port));
    }
    if (refused && now > refused + REFUSED_NS) {
        return "the ring is full and stays so";
    }
    return is_silent(port, now) ? "the kernel sends nothing of it" : NULL;
}

/* Looks after the port.  Returns NULL if it is well, or cannot be helped now,
 * otherwise why it needs port_restart(). */
const char *
port_check(struct port *port, uint64_t now)
{
    const char *fault;
    int mtu;

    if (!port_has(port, PORT_RESTARTS)) {
        return NULL;
    }
    mtu = iface_mtu(port->device.spec.iface);
    if (mtu < 0) {
        return NULL;
    }
    port_set_max_packet(port, mtu);
    fault = find_fault(port, now);
    if (!fault || now < port->retry) {
        return NULL;
    }
    port->retry = now + RETRY_NS;
    return fault;
}

/* Returns how many frames came when the device had no packet buffer. */
static uint64_t
missed(const struct port *port)
{
    struct rte_eth_stats stats;

    return (port_has(port, PORT_COUNTS_MISSED) && port->device.up
            && !rte_eth_stats_get(port->device.id, &stats)
            ? stats.imissed + stats.rx_nombuf : 0);
}

/* Returns how many frames the port could not receive or send so far. */
uint64_t
port_dropped(struct port *port)
{
    if (port_has(port, PORT_PACKET_SOCKET) && port_fd(port) >= 0) {
        port->ring_dropped += af_packet_dropped(port_fd(port));
    }
    return (port->ring_dropped + missed(port)
            + sum(port, offsetof(struct port, too_long))
            + port_refused(port));
}

/* Returns how many frames were too long when they came: a part of
 * port_dropped(). */
uint64_t
port_refused(const struct port *port)
{
    return sum(port, offsetof(struct port, refused));
}

/* Returns how many checksums the port had to complete. */
uint64_t
port_completed(const struct port *port)
{
    return sum(port, offsetof(struct port, completed));
}

/* Returns 0, or why frames may still come unfinished from the kernel. */
int
port_unfinished(const struct port *port)
{
    return port->device.unfinished;
}

uint64_t
port_late_bytes(const struct port *port)
{
    return sum(port, offsetof(struct port, late_bytes));
}

/* Returns true once if the port says that it can tell of frames and does
 * not. */
bool
port_turned_deaf(struct port *port)
{
    return __atomic_exchange_n(&port->device.deaf, false, __ATOMIC_RELAXED);
}
