/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PORT_SPEC_H
#define SHIM_PORT_SPEC_H 1

/* "af_packet:eth0": what a person writes for a port, and what DPDK makes of
 * it.
 *
 * There is one kind so far, af_packet: any network interface of the kernel
 * through a pair of rings shared with it.  Of what DPDK offers it alone works
 * on veth with jumbo frames and without special kernel modules. */

#include <net/if.h>
#include <stdint.h>

#define PORT_MIN_MTU 576
#define PORT_MAX_MTU 9000

struct port_spec {
    char iface[IFNAMSIZ];
};

/* Returns NULL, or a malloc()'d message that starts with 'place'. */
char *port_spec_parse(const char *place, const char *text,
                      struct port_spec *);

/* Bytes of a ring's frame, for packets of up to 'mtu' bytes of IP. */
uint32_t port_frame_size(uint32_t mtu);

/* Writes the arguments of DPDK's virtual device to the 'size' bytes at 'args'.
 * They always fit into 128. */
void port_spec_devargs(const struct port_spec *, uint32_t mtu, char *args,
                       size_t size);

#endif /* shim/ports/port-spec.h */
