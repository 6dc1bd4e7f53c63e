/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_SPEC_H
#define SHIM_PORT_SPEC_H 1

/* The kinds of ports: how they are written, and what each of them can do.
 *
 * DPDK's drivers have one interface and differ: one delivers frames without
 * the checksums that the sender's kernel left to the hardware, another
 * supports no jumbo frames, several report frames as sent that were not.  The
 * differences are in one table, 'port_drivers'; no other code compares a
 * driver's name. What a driver claims is checked: a driver without arriving
 * receive interrupts is detected by the frames that are present when a wait
 * ends.
 *
 *    error = port_spec_parse("af_packet:eth0", &spec);
 *    if (spec.driver->flags & PORT_KERNEL) {
 *        ...spec.iface is an interface of the kernel...
 *    }
 *
 * The table is constant. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_MIN_MTU 576
#define PORT_MAX_MTU 9000       /* Limit of the packet buffers. */
#define PORT_MAX_ARGS 512       /* Bytes of a device's arguments. */
#define PORT_TAGS_BYTES 8       /* Of a slot tag and a VLAN tag. */

struct port_spec;

/* The kind of text after "KIND:". */
enum port_argument {
    PORT_ARG_NONE,  /* Nothing, and no colon. */
    PORT_ARG_IFACE, /* An interface of the kernel. */
    PORT_ARG_PCI,   /* "0000:01:00.0". */
};

enum port_flags {
    PORT_KERNEL = 1 << 0,      /* The interface exists before the port; its
                                * MTU, state and counters are the kernel's. */
    PORT_MAKES_IFACE = 1 << 1, /* The driver makes the interface, which others
                                * then use. */
    PORT_UNFINISHED = 1 << 2,  /* Frames come as a kernel passes them to
                                * hardware: no checksums, unsegmented. */
    PORT_KICK = 1 << 3,        /* The kernel may leave frames in the driver's
                                * transmit ring. */
    PORT_PACKET_SOCKET = 1 << 4, /* A packet socket becomes readable
                                  * when a frame arrives. */
    PORT_INTERRUPT = 1 << 5,     /* The driver has a receive interrupt. */
    PORT_EVENTFD = 1 << 6,       /* That is an eventfd, which must be read. */
    PORT_SET_MTU = 1 << 7,       /* Jumbo frames must be enabled. */
    PORT_RESTARTS = 1 << 8,      /* It can be restarted if it does not send. */
    PORT_CHAINS = 1 << 9,        /* A short frame may be in several buffers. */
    PORT_COUNTS_MISSED = 1 << 10, /* The device counts frames without a
                                   * packet buffer. */
};

struct port_driver {
    const char *name;           /* "af_packet". */
    const char *device;         /* Name of DPDK's virtual device without its
                                 * number, NULL for real ones. */
    enum port_argument argument;
    const char *example;        /* An example of the argument. */
    unsigned int flags;         /* enum port_flags. */
    uint32_t max_mtu;           /* Bytes of IP. */
    uint32_t pool_packets;      /* Packet buffers in its rings. */
    uint32_t buffer_bytes;      /* Bytes of a buffer for the driver itself. */

    const char *args; /* Arguments of the device, which the
                       * interface follows; NULL: none. */

    /* Writes other arguments for packets of up to 'mtu' bytes of IP to 'args'.
     * NULL: 'args' and the interface are all. */
    void (*devargs)(const struct port_spec *, uint32_t mtu, char *args,
                    size_t size);
    const char *help;
};

/* The last row has no name. */
extern const struct port_driver port_drivers[];

/* Returns the driver with the 'length' bytes at 'name' as its name, or
 * NULL. */
const struct port_driver *port_driver_find(const char *name, size_t length);

bool port_driver_has_rx_irq(const struct port_driver *);

/* Returns true if the host's kernel sends the frames of such a host port, so
 * that they have slot tags unless an option denies it. */
bool port_driver_has_slot_tags(const struct port_driver *);

struct port_spec {
    const struct port_driver *driver;
    char what[200];             /* After the colon, else the kind. */
    char iface[IFNAMSIZ];       /* 'what' for PORT_ARG_IFACE, else "". */
    bool keep_offload;          /* Do not change the kernel's offloads. */
    bool slot_tags;             /* Received frames have slot tags, see
                                 * wire/slot-tag.h. */
};

/* Returns NULL or a malloc()'d message. */
char *port_spec_parse(const char *text, struct port_spec *);

/* Returns true if both are the same interface or device. */
bool port_spec_same(const struct port_spec *, const struct port_spec *);

/* Returns the bytes of a ring's frame for packets of up to 'mtu' bytes of
 * IP. */
uint32_t port_frame_size(uint32_t mtu);

/* Writes the arguments of DPDK's virtual device to 'args', which has
 * PORT_MAX_ARGS bytes. */
void port_spec_devargs(const struct port_spec *, uint32_t mtu, char *args);

#endif /* shim/ports/port-spec.h */
