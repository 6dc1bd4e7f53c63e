/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port-spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

uint32_t
port_frame_size(uint32_t mtu)
{
    /* The kernel's header of up to 66 bytes, 14 bytes of Ethernet, and two
     * tags. */
    uint32_t size = (mtu + 14 + PORT_TAGS_BYTES + 66 + 1023) / 1024 * 1024;

    return size < 2048 ? 2048 : size;
}

static void
af_packet_devargs(const struct port_spec *spec, uint32_t mtu, char *args,
                  size_t size)
{
    uint32_t frame = port_frame_size(mtu);

    /* A block must be a multiple of the page and of the frame: four frames
     * of n KiB are. */
    snprintf(args, size,
             "iface=%s,framesz=%u,blocksz=%u,framecnt=%u,qdisc_bypass=1",
             spec->iface, frame, frame == 2048 ? 65536 : frame * 4,
             frame == 2048 ? 512 : 256);
}

const struct port_driver port_drivers[] = {
    { .name = "af_packet",
      .device = "net_af_packet",
      .argument = PORT_ARG_IFACE,
      .example = "eth0",
      .flags = (PORT_KERNEL | PORT_UNFINISHED | PORT_KICK | PORT_PACKET_SOCKET
                | PORT_RESTARTS),
      .max_mtu = PORT_MAX_MTU,
      .devargs = af_packet_devargs,
      .help = "any interface of the kernel, by a ring shared with it" },

    /* The kernel accepts buffers of up to a page, including DPDK's header, of
     * which it uses a part.  With fewer buffers than this it receives
     * nothing. */
    { .name = "af_xdp",
      .device = "net_af_xdp",
      .argument = PORT_ARG_IFACE,
      .example = "eth0",
      .flags = PORT_KERNEL | PORT_UNFINISHED | PORT_RESTARTS,
      .max_mtu = 2984,
      .pool_packets = 16384,
      .buffer_bytes = 256,
      .args = "iface=",
      .help = "an interface of the kernel, by an XDP socket" },

    { .name = "tap",
      .device = "net_tap",
      .argument = PORT_ARG_IFACE,
      .example = "host0",
      .flags = PORT_MAKES_IFACE | PORT_INTERRUPT,
      .max_mtu = 1500,
      .args = "iface=",
      .help = "makes an interface of the kernel, for the host to use" },

    { .name = "virtio_user",
      .device = "net_virtio_user",
      .argument = PORT_ARG_IFACE,
      .example = "host0",
      .flags = (PORT_MAKES_IFACE | PORT_UNFINISHED | PORT_INTERRUPT
                | PORT_EVENTFD | PORT_SET_MTU),
      .max_mtu = PORT_MAX_MTU,
      .pool_packets = 2048,
      .args = "path=/dev/vhost-net,queues=1,queue_size=1024,iface=",
      .help = "makes an interface of the kernel, by /dev/vhost-net" },

    { .name = "ring",
      .device = "net_ring",
      .argument = PORT_ARG_NONE,
      .max_mtu = PORT_MAX_MTU,
      .help = "receives what it sends" },

    { .name = "pci",
      .argument = PORT_ARG_PCI,
      .example = "0000:01:00.0",
      .flags = (PORT_INTERRUPT | PORT_EVENTFD | PORT_SET_MTU | PORT_CHAINS
                | PORT_COUNTS_MISSED),
      .max_mtu = PORT_MAX_MTU,
      .pool_packets = 2048,
      .help = "a network card that the kernel has let go" },
    { .name = NULL },
};

const struct port_driver *
port_driver_find(const char *name, size_t length)
{
    for (const struct port_driver *d = port_drivers; d->name; d++) {
        if (strlen(d->name) == length && !strncmp(d->name, name, length)) {
            return d;
        }
    }
    return NULL;
}

bool
port_driver_has_rx_irq(const struct port_driver *driver)
{
    return driver->flags & (PORT_PACKET_SOCKET | PORT_INTERRUPT);
}

bool
port_driver_has_slot_tags(const struct port_driver *driver)
{
    return driver->argument == PORT_ARG_IFACE;
}

static char *
unknown_kind(const char *text)
{
    char *error = message("\"%s\" is not a port, the kinds are", text);

    for (const struct port_driver *d = port_drivers; d->name; d++) {
        char *longer = message("%s%s %s", error, d == port_drivers ? "" : ",",
                               d->name);

        free(error);
        error = longer;
    }
    return error;
}

/* Returns true for a bus address, "0000:01:00.0". */
static bool
is_pci(const char *s)
{
    static const char pattern[] = "xxxx:xx:xx.x";

    for (size_t i = 0; i < sizeof pattern - 1; i++) {
        if (pattern[i] == 'x' ? !s[i] || !strchr("0123456789abcdef", s[i])
            : s[i] != pattern[i]) {
            return false;
        }
    }
    return !s[sizeof pattern - 1];
}

/* Returns true if 's' is a valid argument of 'driver'.  A comma would start
 * another argument of the device. */
static bool
is_valid_argument(const struct port_driver *driver, const char *s)
{
    switch (driver->argument) {
    case PORT_ARG_NONE:
        return false;
    case PORT_ARG_IFACE:
        return *s && strlen(s) < IFNAMSIZ && !strpbrk(s, " \t\n,/");
    case PORT_ARG_PCI:
        return is_pci(s);
    }
    return false;
}

char *
port_spec_parse(const char *text, struct port_spec *spec)
{
    size_t length = strcspn(text, ":");
    const struct port_driver *driver = port_driver_find(text, length);
    bool bare = driver && driver->argument == PORT_ARG_NONE;
    const char *what = bare ? text : text + length + (text[length] == ':');

    if (!driver) {
        return unknown_kind(text);
    }
    if (bare ? !text[length] : is_valid_argument(driver, what)) {
        *spec = (struct port_spec) { .driver = driver };
        snprintf(spec->what, sizeof spec->what, "%s", what);
        snprintf(spec->iface, sizeof spec->iface, "%.*s", IFNAMSIZ - 1,
                 driver->argument == PORT_ARG_IFACE ? what : "");
        return NULL;
    }
    return message("\"%s\" is not a port, such as %s%s%s", text, driver->name,
                   bare ? "" : ":", bare ? "" : driver->example);
}

bool
port_spec_same(const struct port_spec *a, const struct port_spec *b)
{
    return a->iface[0] ? !strcmp(a->iface, b->iface)
           : (a->driver == b->driver && !strcmp(a->what, b->what)
              && a->driver->argument != PORT_ARG_NONE);
}

void
port_spec_devargs(const struct port_spec *spec, uint32_t mtu, char *args)
{
    const struct port_driver *driver = spec->driver;

    if (driver->devargs) {
        driver->devargs(spec, mtu, args, PORT_MAX_ARGS);
    } else {
        snprintf(args, PORT_MAX_ARGS, "%s%s", driver->args ? driver->args : "",
                 driver->args ? spec->iface : "");
    }
}
