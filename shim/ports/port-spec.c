/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/port-spec.h"

#include <stdio.h>
#include <string.h>

#define KIND "af_packet:"

char *
port_spec_parse(const char *place, const char *text, struct port_spec *spec)
{
    const char *iface = text + strlen(KIND);
    size_t length;
    char *error;

    if (!strncmp(text, KIND, strlen(KIND))) {
        length = strlen(iface);
        /* A comma would begin another of the device's arguments. */
        if (length && length < sizeof spec->iface
            && !strpbrk(iface, ",/ \t\n")) {
            memcpy(spec->iface, iface, length + 1);
            return NULL;
        }
    }
    if (asprintf(&error, "%s: \"%s\" is not a port, such as af_packet:eth0",
                 place, text) < 0) {
        return strdup("no memory");
    }
    return error;
}

uint32_t
port_frame_size(uint32_t mtu)
{
    /* The kernel puts up to 66 bytes before the frame, which has 14 bytes of
     * Ethernet and up to two VLAN tags. */
    uint32_t size = (mtu + 14 + 8 + 66 + 1023) / 1024 * 1024;

    return size < 2048 ? 2048 : size;
}

void
port_spec_devargs(const struct port_spec *spec, uint32_t mtu, char *args,
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
