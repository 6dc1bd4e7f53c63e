/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_DRIVER_H
#define SHIM_PORT_DRIVER_H 1

/* The kinds of ports that a shim can have, and what each of them can do.
 *
 *
 * Motivation
 * ==========
 *
 * DPDK's drivers look alike and are not: one has no checksums where the
 * sender's kernel left them to the hardware, another takes no jumbo frames,
 * several say "sent" when nothing was.  What differs is written down once,
 * here, as a row of a table; port.c and options.c look at the row and never at
 * the driver's name.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Constant data. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port_spec;

/* What a person writes after "KIND:". */
enum port_argument {
    PORT_ARG_NONE,              /* Nothing, and no colon. */
    PORT_ARG_IFACE,             /* An interface of the kernel. */
    PORT_ARG_PATH,              /* A file or socket. */
    PORT_ARG_TWO_PATHS,         /* "FILE,FILE". */
    PORT_ARG_PCI,               /* "0000:01:00.0". */
};

enum port_flags {
    /* The interface is there before the port, and its MTU, state and counters
     * are the kernel's. */
    PORT_KERNEL = 1 << 0,
    /* The driver makes the interface, which others then use. */
    PORT_MAKES_IFACE = 1 << 1,
    /* Frames come as a kernel passes them on: checksums that a network card
     * was to fill in, and packets that it was to cut. */
    PORT_UNFINISHED = 1 << 2,
    /* The driver has a transmit ring that the kernel may leave half sent. */
    PORT_KICK = 1 << 3,
    /* A packet socket that says when there is a frame. */
    PORT_PACKET_SOCKET = 1 << 4,
    /* The driver's receive interrupt does. */
    PORT_INTERRUPT = 1 << 5,
    /* ...an eventfd, which must be read. */
    PORT_EVENTFD = 1 << 6,
    /* Jumbo frames must be asked for. */
    PORT_SET_MTU = 1 << 7,
    /* A port that no longer sends can be made anew. */
    PORT_RESTARTS = 1 << 8,
    /* Where the device says that it can, it spreads frames over several
     * queues and keeps each flow in one of them. */
    PORT_SPREADS = 1 << 9,
    /* A frame may come in several packet buffers, although it has room in
     * one. */
    PORT_CHAINS = 1 << 10,
    /* The device counts the frames for which it had no packet buffer. */
    PORT_COUNTS_MISSED = 1 << 11,
};

struct port_driver {
    const char *name;           /* "af_packet". */
    const char *device;         /* DPDK's virtual device without its number,
                                 * NULL for real ones. */
    enum port_argument argument;
    const char *example;        /* Of the argument. */
    unsigned int flags;         /* enum port_flags. */
    uint32_t max_mtu;           /* Bytes of IP. */
    uint32_t pool_packets;      /* Packet buffers that its rings hold, those
                                 * of one queue in each direction. */
    uint32_t buffer_bytes;      /* Of each buffer, for the driver itself. */

    /* Writes the device's arguments for packets of up to 'mtu' bytes of IP,
     * what fits of them into 'size'.  NULL if it has none. */
    void (*devargs)(const struct port_spec *, uint32_t mtu, char *args,
                    size_t size);
    const char *help;
};

/* Ends with a row without a name. */
extern const struct port_driver port_drivers[];

/* Returns the driver whose name is the first 'length' bytes of 'name', or
 * NULL. */
const struct port_driver *port_driver_find(const char *name, size_t length);

/* Can a port of the driver tell when there is a frame? */
bool port_driver_has_rx_irq(const struct port_driver *);

#endif /* shim/ports/port-driver.h */
