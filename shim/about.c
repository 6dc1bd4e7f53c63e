/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/about.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>

#include "shim/options.h"
#include "shim/ports/af-packet.h"
#include "shim/ports/offload.h"

/* Returns the value of an ethtool command that has one, 0 if unknown. */
static uint32_t
ethtool_value(const char *iface, uint32_t command)
{
    struct ethtool_value value = { .cmd = command };
    struct ifreq ifr = { .ifr_data = (void *) &value };

    return iface_ioctl(iface, SIOCETHTOOL, &ifr) ? 0 : value.data;
}

static void
write_iface(const char *iface, FILE *stream)
{
    struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
    struct ifreq ifr = { .ifr_data = (void *) &info };
    bool gro = ethtool_value(iface, ETHTOOL_GGRO);
    bool lro = ethtool_value(iface, ETHTOOL_GFLAGS) & ETH_FLAG_LRO;
    int mtu = iface_mtu(iface);

    if (!iface_ioctl(iface, SIOCETHTOOL, &ifr)) {
        fprintf(stream, "driver %.*s\n", (int) sizeof info.driver,
                info.driver);
    }
    if (mtu > 0) {
        fprintf(stream, "uplink_mtu %d\n", mtu);
    }
    fprintf(stream, "merges %s%s%s\n", gro ? "gro" : "",
            gro && lro ? "," : "", lro ? "lro" : gro ? "" : "none");
}

static void
write_uplink(const struct port_spec *spec, FILE *stream)
{
    fprintf(stream, "uplink %s", spec->driver->name);
    if (spec->driver->argument != PORT_ARG_NONE) {
        fprintf(stream, ":%s", spec->what);
    }
    putc('\n', stream);
    if (spec->driver->flags & PORT_KERNEL) {
        write_iface(spec->iface, stream);
    } else if (spec->driver->argument == PORT_ARG_PCI) {
        struct rte_eth_dev_info info;
        uint16_t id;

        if (!rte_eth_dev_get_port_by_name(spec->what, &id)
            && !rte_eth_dev_info_get(id, &info)) {
            fprintf(stream, "driver %s\n", info.driver_name);
        }
    }
}

static void
write_host_port(const struct port_spec *spec, FILE *stream)
{
    bool tso;

    if (spec->driver->flags & PORT_KERNEL
        && !offload_read_tso(spec->iface, &tso)) {
        fprintf(stream, "host_tso %s\n", tso ? "on" : "off");
    }
}

void
about_write(const struct options *o, char *text, size_t size)
{
    FILE *stream;

    memset(text, 0, size);
    stream = fmemopen(text, size - 1, "w");
    if (stream) {
        fprintf(stream, "version %s\n", STAGECOACH_VERSION);
        write_uplink(&o->uplink, stream);
        write_host_port(&o->host, stream);
        fprintf(stream, "mtu %u\n", o->mtu);
        fprintf(stream, "memory %s\n",
                rte_eal_has_hugepages() ? "huge" : "ordinary");
        fprintf(stream, "cc %s\n", o->cc ? "on" : "off");
        fprintf(stream, "switch_queues %s\n",
                o->strict_switch ? "strict" : "one");
        fprintf(stream, "tag %s\n", o->no_tag ? "off" : "on");
        fprintf(stream, "host_tags %s\n", o->host.slot_tags ? "yes" : "no");
        fclose(stream);
    }
}
