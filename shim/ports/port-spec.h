/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_SPEC_H
#define SHIM_PORT_SPEC_H 1

/* "af_packet:eth0": what a person writes for a port, and what DPDK makes of
 * it.  port-driver.h lists the kinds. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_MIN_MTU 576
#define PORT_MAX_MTU 9000
#define PORT_MAX_ARGS 512       /* Bytes of a device's arguments. */
#define PORT_MAX_QUEUES 16

struct port_driver;

struct port_spec {
    const struct port_driver *driver;
    char what[200];             /* After the colon, else the kind itself. */
    char iface[IFNAMSIZ];       /* 'what' if it is one of the kernel's, else
                                 * "". */
    bool keep_offload;          /* Leave the kernel's settings alone. */
    uint16_t n_queues;          /* Wanted in each direction, if the device
                                 * keeps a flow in one of them.  0 is 1. */
};

/* Returns NULL or a malloc()'d message such as
 *
 *    "eth0" is not a port, the kinds are ... */
char *port_spec_parse(const char *text, struct port_spec *);

/* Do both mean the same thing, of which there is only one? */
bool port_spec_same(const struct port_spec *, const struct port_spec *);

/* Bytes of a ring's frame, for packets of up to 'mtu' bytes of IP. */
uint32_t port_frame_size(uint32_t mtu);

/* Writes the arguments of DPDK's virtual device to 'args', which has
 * PORT_MAX_ARGS bytes. */
void port_spec_devargs(const struct port_spec *, uint32_t mtu, char *args);

#endif /* shim/ports/port-spec.h */
