/* SPDX-License-Identifier: Apache-2.0 */

/* Checks of what the ports of a shim need. */

#include <config.h>

#include <inttypes.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/doctor/checks.h"
#include "util.h"

#define HUGE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define PAGES_OF_A_SHIM 40
#define AF_XDP_MTU 2984
#define TAP_MTU 1500

void
doctor_check_memory(struct doctor *d)
{
    char *text = doctor_read(d, HUGE_PAGES "free_hugepages");
    int n = text ? atoi(text) : 0;

    if (n >= PAGES_OF_A_SHIM) {
        doctor_add(d, "memory", DOCTOR_OK, NULL, "%d huge pages of 2 MiB are "
                   "free", n);
    } else {
        doctor_add(d, "memory", DOCTOR_NOTE,
                   "echo 64 > " HUGE_PAGES "nr_hugepages, at boot: "
                   "hugepages=64",
                   "%d huge pages of 2 MiB are free, of %d for a shim: it "
                   "takes ordinary ones, which cost some speed", n,
                   PAGES_OF_A_SHIM);
    }
    free(text);
}

/* Returns the MTU of 'iface', 0 if there is no such interface. */
static int
mtu_of(const struct doctor *d, const char *iface)
{
    char *path = xasprintf("/sys/class/net/%s/mtu", iface);
    char *text = doctor_read(d, path);
    int mtu = text ? atoi(text) : 0;

    free(text);
    free(path);
    return mtu;
}

/* Returns true if the kernel merges packets for 'iface'. */
static bool
is_offloaded(const char *iface)
{
    struct ethtool_value value = { .cmd = ETHTOOL_GGRO };
    struct ifreq ifr = { .ifr_data = (void *) &value };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool offloaded;

    ovs_strzcpy(ifr.ifr_name, iface, sizeof ifr.ifr_name);
    offloaded = fd >= 0 && !ioctl(fd, SIOCETHTOOL, &ifr) && value.data;
    if (fd >= 0) {
        close(fd);
    }
    return offloaded;
}

/* Checks a kernel interface for IP packets of at most 'max' bytes, 0 for any
 * size. */
static void
check_iface(struct doctor *d, const char *port, const char *iface, int max)
{
    int mtu = mtu_of(d, iface);

    if (!mtu) {
        doctor_add(d, "ports", DOCTOR_MISSING,
                   "ip link shows the interfaces; in the shim's namespace",
                   "%s: there is no interface %s", port, iface);
    } else if (max && mtu > max) {
        char *mend = xasprintf("ip link set %s mtu %d", iface, max);

        doctor_add(d, "ports", DOCTOR_MISSING, mend,
                   "%s: the MTU is %d, at most %d is possible", port, mtu,
                   max);
        free(mend);
    } else if (!*d->config->root && is_offloaded(iface)) {
        char *mend = xasprintf("ethtool -K %s gro off", iface);

        doctor_add(d, "ports", DOCTOR_NOTE, mend, "%s: the kernel puts "
                   "packets together, and the shim must cut them or switch "
                   "that off", port);
        free(mend);
    } else {
        doctor_add(d, "ports", DOCTOR_OK, NULL, "%s: MTU %d", port, mtu);
    }
}

static void
check_device(struct doctor *d, const char *port, const char *path,
             const char *mend)
{
    if (doctor_has(d, path, R_OK | W_OK)) {
        doctor_add(d, "ports", DOCTOR_OK, NULL, "%s: %s", port, path);
    } else {
        doctor_add(d, "ports", DOCTOR_MISSING, mend, "%s: %s is not there, or "
                   "not to be opened", port, path);
    }
}

static void
check_pci(struct doctor *d, const char *port, const char *address)
{
    char *link = xasprintf("%s/sys/bus/pci/devices/%s/driver",
                           d->config->root, address);
    char target[PATH_MAX];
    ssize_t n = readlink(link, target, sizeof target - 1);
    const char *driver;

    target[MAX(0, n)] = '\0';
    driver = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
    if (!strcmp(driver, "mlx5_core")) { /* Kernel and DPDK share the card. */
        check_device(d, port, "/dev/infiniband", "modprobe ib_uverbs mlx5_ib");
    } else if (!strcmp(driver, "vfio-pci")) {
        check_device(d, port, "/dev/vfio/vfio", "modprobe vfio-pci, with the "
                     "IOMMU switched on");
    } else {
        char *mend = xasprintf("dpdk-devbind.py --bind=vfio-pci %s", address);

        doctor_add(d, "ports", DOCTOR_MISSING, mend, "%s: its driver is %s, "
                   "vfio-pci is needed", port, *driver ? driver : "none");
        free(mend);
    }
    free(link);
}

static void
check_port(struct doctor *d, const char *port)
{
    const char *what = strchr(port, ':');
    size_t n = what ? (size_t) (what - port) : strlen(port);

    what = what ? what + 1 : "";
    if (!strncmp(port, "pci", n)) {
        check_pci(d, port, what);
    } else if (!strncmp(port, "af_packet", n) || !strncmp(port, "pcap", n)) {
        check_iface(d, port, what, 0);
    } else if (!strncmp(port, "af_xdp", n)) {
        check_iface(d, port, what, AF_XDP_MTU);
        if (!doctor_kernel_from(d, 5, 4)) {
            doctor_add(d, "ports", DOCTOR_MISSING, "Linux 5.4, or af_packet",
                       "%s: the kernel is too old for AF_XDP", port);
        }
    } else if (!strncmp(port, "tap", n)) {
        check_device(d, port, "/dev/net/tun", "modprobe tun");
    } else if (!strncmp(port, "virtio_user", n)) {
        check_device(d, port, "/dev/vhost-net", "modprobe vhost_net");
    } else {
        doctor_add(d, "ports", DOCTOR_OK, NULL, "%s: needs nothing", port);
    }
}

void
doctor_check_ports(struct doctor *d)
{
    for (size_t i = 0; i < d->config->n_ports; i++) {
        check_port(d, d->config->ports[i]);
    }
}
