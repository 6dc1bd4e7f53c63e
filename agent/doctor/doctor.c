/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/doctor/doctor.h"

#include <bpf/bpf.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "agent/identify/bpf/identity.h"
#include "agent/identify/bpf/interfaces.h"
#include "agent/identify/process.h"
#include "shim/ports/route-socket.h"
#include "stream.h"
#include "util.h"
#include "wire/cgroup-path.h"

const char *const doctor_result_names[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_MISSING] = "missing",
};

/* Adds a finding.  Takes ownership of 'mend', which may be NULL. */
static void OVS_PRINTF_FORMAT(5, 6)
add(struct doctor *d, const char *check, enum doctor_result result,
    char *mend, const char *what, ...)
{
    va_list args;

    if (d->n >= d->allocated) {
        d->findings =
            x2nrealloc(d->findings, &d->allocated, sizeof *d->findings);
    }
    va_start(args, what);
    d->findings[d->n++] = (struct doctor_finding){
        .check = check,
        .result = result,
        .what = xvasprintf(what, args),
        .mend = mend,
    };
    va_end(args);
}

/* Returns the path of 'path' below the root; the caller frees. */
static char *
full_path(const struct doctor *d, const char *path)
{
    return xasprintf("%s%s", d->config->root, path);
}

/* Returns true if 'path' exists below the root.  'mode' is as of access(2). */
static bool
has(const struct doctor *d, const char *path, int mode)
{
    char *full = full_path(d, path);
    bool exists = !access(full, mode);

    free(full);
    return exists;
}

/* Returns the first line of 'path' below the root without its newline, or
 * NULL; the caller frees. */
static char *
read_line(const struct doctor *d, const char *path)
{
    char *full = full_path(d, path);
    char line[256];
    ssize_t n = small_file_read(full, line, sizeof line);

    free(full);
    return n > 0 ? xmemdup0(line, strcspn(line, "\n")) : NULL;
}

/* Returns the number that the file of this name below the root begins with, 0
 * without one. */
OVS_PRINTF_FORMAT(2, 3)
static int
read_number(const struct doctor *d, const char *format, ...)
{
    char *path, *text;
    va_list args;
    int n;

    va_start(args, format);
    path = xvasprintf(format, args);
    va_end(args);
    text = read_line(d, path);
    n = text ? atoi(text) : 0;
    free(text);
    free(path);
    return n;
}

/* Returns true if the host's kernel is at least 'major'.'minor', or its
 * version is unknown. */
bool
doctor_kernel_is_from(const struct doctor *d, int major, int minor)
{
    char *release = read_line(d, "/proc/sys/kernel/osrelease");
    int a, b;
    bool from = (!release || sscanf(release, "%d.%d", &a, &b) != 2
                 || a > major || (a == major && b >= minor));

    free(release);
    return from;
}

/* The kernel: features and settings. */

/* Checks that the root of the tree of jobs exists or can be created. */
static void
check_cgroup(struct doctor *d)
{
    char *mounts = full_path(d, "/proc/mounts");
    char *mount = cgroup_mount_from(mounts);

    if (!mount) {
        add(d, "cgroup", DOCTOR_MISSING,
            xstrdup("mount -t cgroup2 none /sys/fs/cgroup/unified, or boot "
                    "with systemd.unified_cgroup_hierarchy=1"),
            "no cgroup v2 file system is mounted: no job can be found");
    } else {
        char *tree = xasprintf("%s/%s", mount, d->config->cgroup);
        char *there = xstrdup(tree); /* The deepest one that exists. */

        while (*there && !has(d, there, F_OK)) {
            *strrchr(there, '/') = '\0';
        }
        if (has(d, there, W_OK | X_OK)) {
            add(d, "cgroup", DOCTOR_OK, NULL, "jobs have theirs below %s",
                tree);
        } else {
            add(d, "cgroup", DOCTOR_MISSING,
                xasprintf("as root: mkdir -p %s, and make the user of "
                          "\"stagecoach run\" its owner", tree),
                "%s cannot be written: \"stagecoach run\" can tag no job",
                there);
        }
        free(there);
        free(tree);
    }
    free(mount);
    free(mounts);
}

static uint64_t
effective_capabilities(const struct doctor *d)
{
    char *path = full_path(d, "/proc/self/status");
    char text[8192];
    const char *line;
    uint64_t set = 0;

    small_file_read(path, text, sizeof text);
    free(path);
    line = strstr(text, "CapEff:");
    if (line) {
        sscanf(line, "CapEff: %" SCNx64, &set);
    }
    return set;
}

static void
check_capabilities(struct doctor *d)
{
    const struct {
        int number;
        const char *name, *what_for;
        bool needed;
    } caps[] = {
        { CAP_NET_ADMIN, "CAP_NET_ADMIN",
          "no packet is known to be a job's, and no bypass is made", true },
        { CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
          "other network namespaces cannot be entered",
          d->config->netns || d->config->bypass },
        { CAP_NET_RAW, "CAP_NET_RAW", "a shim cannot open af_packet ports",
          d->config->n_ports > 0 },
        { CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
          "the environment of other users' processes is not read", false },
    };
    uint64_t set = effective_capabilities(d);
    bool all = true;

    for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
        if (d->config->quick && caps[i].number == CAP_NET_RAW) {
            continue;           /* An agent has given it up. */
        }
        if (!(set & (UINT64_C(1) << caps[i].number))) {
            add(d, "capabilities",
                caps[i].needed ? DOCTOR_MISSING : DOCTOR_NOTE,
                xasprintf("run as root, or AmbientCapabilities=%s in the unit",
                          caps[i].name),
                "without %s %s", caps[i].name, caps[i].what_for);
            all = false;
        }
    }
    if (all) {
        add(d, "capabilities", DOCTOR_OK, NULL, "all that agent and shim use");
    }
}

/* Checks whether the kernel can know the job of each packet. */
static void
check_identity(struct doctor *d)
{
    bool may = effective_capabilities(d) & (UINT64_C(1) << CAP_BPF);

    if (!doctor_kernel_is_from(d, 6, 1)) {
        add(d, "identity", DOCTOR_MISSING, xstrdup("Linux 6.1"),
            "the kernel cannot load the agent's programs: no packet is known "
            "to be a job's");
    } else if (!has(d, "/sys/fs/bpf", F_OK) || !may) {
        add(d, "identity", DOCTOR_MISSING,
            xstrdup("a kernel with CONFIG_BPF_SYSCALL, and "
                    "AmbientCapabilities=CAP_BPF in the unit"),
            "without %s no packet is known to be a job's",
            may ? "/sys/fs/bpf" : "CAP_BPF");
    } else {
        add(d, "identity", DOCTOR_OK, NULL,
            "the kernel can know the job of each packet, and order without a "
            "shim");
    }
}

/* A kernel feature: the symbol that is present with it, behind a space, and
 * the module that provides it, which is loaded on demand. */
struct part {
    const char *symbol, *module, *config;
    bool found;
};

/* Marks those that are in a line of the file. */
static void
find_parts(const struct doctor *d, const char *path, struct part *parts,
           size_t n)
{
    char *full = full_path(d, path);
    FILE *stream = fopen(full, "re");
    char line[4096];

    while (stream && fgets(line, sizeof line, stream)) {
        for (size_t i = 0; i < n; i++) {
            parts[i].found |=
                strstr(line, parts[i].symbol) || strstr(line, parts[i].module);
        }
    }
    if (stream) {
        fclose(stream);
    }
    free(full);
}

/* Checks the features that the bypass needs. */
static void
check_queueing(struct doctor *d)
{
    struct part parts[] = {
        { " ingress_init", "sch_ingress", "CONFIG_NET_SCH_INGRESS", false },
        { " u32_classify", "cls_u32", "CONFIG_NET_CLS_U32", false },
        { " tcf_mirred_init", "act_mirred", "CONFIG_NET_ACT_MIRRED", false },
    };
    char *release = read_line(d, "/proc/sys/kernel/osrelease");
    char *modules =
        xasprintf("/lib/modules/%s/modules.dep", release ? release : "");
    bool all = true;

    find_parts(d, "/proc/kallsyms", parts, ARRAY_SIZE(parts));
    find_parts(d, modules, parts, ARRAY_SIZE(parts));
    free(modules);
    free(release);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (!parts[i].found) {
            add(d, "queueing",
                d->config->bypass ? DOCTOR_MISSING : DOCTOR_NOTE,
                xasprintf("a kernel with %s, or the package with its extra "
                          "modules", parts[i].config),
                "%s is not there: when the shim dies the host is cut off",
                parts[i].module);
            all = false;
        }
    }
    if (all) {
        add(d, "queueing", DOCTOR_OK, NULL,
            "the kernel can join the shim's interfaces when it dies");
    }
}

#define LONG_RTO_MS 5000        /* A job with the lowest rank may wait so
                                 * long. */

static void
check_tcp(struct doctor *d)
{
    int ms = read_number(d, "/proc/sys/net/ipv4/tcp_rto_max_ms");

    if (!ms) {
        add(d, "tcp", DOCTOR_NOTE,
            xstrdup("keep the policy's min_share above 0, or Linux 6.15"),
            "the kernel has no tcp_rto_max_ms: a job that was starved may "
            "sleep for up to 120 s after its link is free");
    } else if (ms > LONG_RTO_MS) {
        add(d, "tcp", DOCTOR_NOTE,
            xstrdup("sysctl -w net.ipv4.tcp_rto_max_ms=1000"),
            "tcp_rto_max_ms is %d: a job that was starved may sleep for as "
            "long after its link is free", ms);
    } else {
        add(d, "tcp", DOCTOR_OK, NULL,
            "retransmissions wait for %d ms at most", ms);
    }
}

static void
check_clock(struct doctor *d)
{
    char *source = read_line(d, "/sys/devices/system/clocksource/"
                               "clocksource0/current_clocksource");
    bool slow = source && (!strcmp(source, "hpet")
                           || !strcmp(source, "acpi_pm")
                           || !strcmp(source, "jiffies"));
    struct timex t = { .modes = 0 };

    if (slow) {
        add(d, "clock", DOCTOR_NOTE,
            xstrdup("boot with clocksource=tsc, if the processor's is "
                    "constant"),
            "the clock is %s, which takes a microsecond to read", source);
    }
    if (!*d->config->root && adjtimex(&t) >= 0 && t.status & STA_UNSYNC) {
        add(d, "clock", DOCTOR_NOTE,
            xstrdup("start chrony or systemd-timesyncd"),
            "the clock follows no other: times that hosts tell cannot be "
            "compared");
    } else if (!slow) {
        add(d, "clock", DOCTOR_OK, NULL, "%s",
            source ? source : "nothing against it");
    }
    free(source);
}

/* What the ports of a shim need. */

#define HUGE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define PAGES_OF_A_SHIM 40
#define AF_XDP_MTU 2984

static void
check_memory(struct doctor *d)
{
    int n = read_number(d, HUGE_PAGES "free_hugepages");

    if (n >= PAGES_OF_A_SHIM) {
        add(d, "memory", DOCTOR_OK, NULL,
            "%d huge pages of 2 MiB are free", n);
    } else {
        add(d, "memory", DOCTOR_NOTE,
            xstrdup("echo 64 > " HUGE_PAGES "nr_hugepages, at boot: "
                    "hugepages=64"),
            "%d huge pages of 2 MiB are free, of %d for a shim: it takes "
            "ordinary ones, which cost some speed", n, PAGES_OF_A_SHIM);
    }
}

/* Checks a kernel interface for IP packets of at most 'max' bytes, 0 for any
 * size. */
static void
check_iface(struct doctor *d, const char *port, const char *iface, int max)
{
    int mtu = read_number(d, "/sys/class/net/%s/mtu", iface);

    if (!mtu) {
        add(d, "ports", DOCTOR_MISSING,
            xstrdup("ip link shows the interfaces; in the shim's namespace"),
            "%s: there is no interface %s", port, iface);
    } else if (max && mtu > max) {
        add(d, "ports", DOCTOR_MISSING,
            xasprintf("ip link set %s mtu %d", iface, max),
            "%s: the MTU is %d, at most %d is possible", port, mtu, max);
    } else if (!*d->config->root && identity_has_gro(iface)) {
        add(d, "ports", DOCTOR_NOTE, xasprintf("ethtool -K %s gro off", iface),
            "%s: the kernel puts packets together, and the shim must cut them "
            "or switch that off", port);
    } else {
        add(d, "ports", DOCTOR_OK, NULL, "%s: MTU %d", port, mtu);
    }
}

static void
check_device(struct doctor *d, const char *port, const char *path,
             const char *mend)
{
    if (has(d, path, R_OK | W_OK)) {
        add(d, "ports", DOCTOR_OK, NULL, "%s: %s", port, path);
    } else {
        add(d, "ports", DOCTOR_MISSING, xstrdup(mend),
            "%s: %s is not there, or not to be opened", port, path);
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
        add(d, "ports", DOCTOR_MISSING,
            xasprintf("dpdk-devbind.py --bind=vfio-pci %s", address),
            "%s: its driver is %s, vfio-pci is needed", port,
            *driver ? driver : "none");
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
    } else if (!strncmp(port, "af_packet", n)) {
        check_iface(d, port, what, 0);
    } else if (!strncmp(port, "af_xdp", n)) {
        check_iface(d, port, what, AF_XDP_MTU);
        if (!doctor_kernel_is_from(d, 5, 4)) {
            add(d, "ports", DOCTOR_MISSING, xstrdup("Linux 5.4, or af_packet"),
                "%s: the kernel is too old for AF_XDP", port);
        }
    } else if (!strncmp(port, "tap", n)) {
        check_device(d, port, "/dev/net/tun", "modprobe tun");
    } else if (!strncmp(port, "virtio_user", n)) {
        check_device(d, port, "/dev/vhost-net", "modprobe vhost_net");
    } else {
        add(d, "ports", DOCTOR_OK, NULL, "%s: needs nothing", port);
    }
}

static void
check_ports(struct doctor *d)
{
    for (size_t i = 0; i < d->config->n_ports; i++) {
        check_port(d, d->config->ports[i]);
    }
}

/* What keeps the kernel from the jobs of packets, at the interfaces of this
 * network namespace.
 *
 * The programs of the agent need the socket of a packet (identity.h), which
 * GRO and XDP at the host's end of a pod's interface prevent, and bits of
 * the mark, nearly all of which Cilium uses.  Without TCX a filter of another
 * program may run before the agent's.  What a pod or guest sends by a virtual
 * function, and what WireGuard encrypts, is not seen at all.
 *
 * A shim at the uplink sees what is inside an overlay's tunnels
 * (shim/classify/ parse.h) once it has their endpoints. */

#define MAX_PROGRAMS 64 /* Of an interface and direction. */

/* An interface. */
struct iface {
    int index;
    char name[IFNAMSIZ];
    char kind[16];
    int bridge;   /* Index of its bridge, or 0. */
    bool has_xdp; /* A program of its driver. */
    bool is_up;
    ovs_be16 tunnel_port; /* UDP port of VXLAN or Geneve, or 0. */
};

/* A kind of tunnel between nodes, as a shim sees it. */
struct overlay {
    const char *kind, *name;
    uint16_t port_attr; /* Attribute of its UDP port in the kernel's reply, 0
                         * without one. */
    int ports[2];       /* Those that a shim reads, unless another is given;
                         * -1: it reads nothing. */
};

static const struct overlay *
find_overlay(const char *kind)
{
    static const struct overlay overlays[] = {
        { "vxlan", "VXLAN", IFLA_VXLAN_PORT, { 4789, 8472 } },
        { "geneve", "Geneve", IFLA_GENEVE_PORT, { 6081 } },
        { "ipip", "IP in IP", 0, { 0 } },
        { "ip6tnl", "IP in IPv6", 0, { 0 } },
        { "sit", "IPv6 in IP", 0, { 0 } },
        { "gre", "GRE", 0, { -1 } },
        { "gretap", "GRE", 0, { -1 } },
    };

    for (size_t i = 0; i < ARRAY_SIZE(overlays); i++) {
        if (!strcmp(kind, overlays[i].kind)) {
            return &overlays[i];
        }
    }
    return NULL;
}

struct ifaces {
    struct iface *all;
    size_t n, allocated;
};

static int
see_link(const struct nlmsghdr *nlh, void *ifaces_)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *xdp = route_attr(nlh, IFLA_XDP);
    const struct overlay *overlay = find_overlay(route_link_kind(nlh));
    struct iface iface = { .index = link->ifi_index,
                           .bridge =
                               route_attr_u32(route_attr(nlh, IFLA_MASTER), 0),
                           .is_up = link->ifi_flags & IFF_UP };
    struct ifaces *ifaces = ifaces_;

    ovs_strlcpy(iface.name, route_attr_string(route_attr(nlh, IFLA_IFNAME)),
                sizeof iface.name);
    ovs_strlcpy(iface.kind, route_link_kind(nlh), sizeof iface.kind);
    xdp = route_attr_in(xdp, IFLA_XDP_ATTACHED);
    iface.has_xdp = xdp && mnl_attr_get_u8(xdp) == XDP_ATTACHED_DRV;
    if (overlay && overlay->port_attr) {
        route_attr_copy(
            route_attr_in(
                route_attr_in(route_attr(nlh, IFLA_LINKINFO), IFLA_INFO_DATA),
                overlay->port_attr),
            &iface.tunnel_port, sizeof iface.tunnel_port);
    }
    if (ifaces->n >= ifaces->allocated) {
        ifaces->all =
            x2nrealloc(ifaces->all, &ifaces->allocated, sizeof *ifaces->all);
    }
    ifaces->all[ifaces->n++] = iface;
    return MNL_CB_OK;
}

/* Programs of others. */

struct filters {
    char first[32];  /* Name of one that runs where ours does, or "". */
    char cilium[32]; /* Name of one of Cilium, or "". */
};

static void
see_name(struct filters *f, const char *name)
{
    if (!strncmp(name, "cil_", 4)) {
        ovs_strlcpy(f->cilium, name, sizeof f->cilium);
    }
}

static int
see_filter(const struct nlmsghdr *nlh, void *filters_)
{
    const struct tcmsg *tc = mnl_nlmsg_get_payload(nlh);
    const char *name = route_attr_string(
        route_attr_in(route_attr(nlh, TCA_OPTIONS), TCA_BPF_NAME));
    struct filters *f = filters_;

    if (!*name) {
        name = route_attr_string(route_attr(nlh, TCA_KIND));
    }
    see_name(f, name);
    if (tc->tcm_handle && tc->tcm_handle != TC_PROGRAM_HANDLE
        && tc->tcm_info >> 16 <= TC_PROGRAM_PRIORITY) {
        ovs_strlcpy(f->first, name, sizeof f->first);
    }
    return MNL_CB_OK;
}

/* Notes the programs of TCX at an interface. */
static void
see_programs(int ifindex, enum tc_program_place place, struct filters *f)
{
    uint32_t ids[MAX_PROGRAMS],
        n = tc_program_list(ifindex, place, ids, MAX_PROGRAMS);

    for (uint32_t i = 0; i < n; i++) {
        struct bpf_prog_info info = { .type = 0 };
        uint32_t size = sizeof info;
        int fd = bpf_prog_get_fd_by_id(ids[i]);

        if (!bpf_obj_get_info_by_fd(fd, &info, &size)) {
            see_name(f, info.name);
        }
        close(fd);
    }
}

static struct filters
find_filters(struct route_socket *rs, int ifindex)
{
    static const uint32_t parents[] = { TC_H_MIN_INGRESS, TC_H_MIN_EGRESS };
    struct filters f = { .first = "" };

    for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
        route_socket_list_tc(rs, RTM_GETTFILTER, ifindex,
                             TC_H_MAKE(TC_H_CLSACT, parents[i]), see_filter,
                             &f);
    }
    see_programs(ifindex, TC_PROGRAM_INGRESS, &f);
    see_programs(ifindex, TC_PROGRAM_EGRESS, &f);
    return f;
}

static void
check_programs(struct doctor *d, struct route_socket *rs,
               const struct iface *iface)
{
    struct filters f = find_filters(rs, iface->index);

    if (f.cilium[0]) {
        add(d, "pods", DOCTOR_NOTE,
            xstrdup("--mark none: packets of pods then have the job of "
                    "their network namespace"),
            "%s: Cilium (%s) is there: it uses the mark, and with its "
            "bandwidth manager or netkit may pass by the agent's programs",
            iface->name, f.cilium);
    }
    if (f.first[0] && !doctor_kernel_is_from(d, 6, 6)) {
        add(d, "pods", DOCTOR_NOTE,
            xasprintf("give it a preference above %d, or Linux 6.6",
                      TC_PROGRAM_PRIORITY),
            "%s: the filter %s may run before the agent's program, and hide "
            "it",
            iface->name, f.first);
    }
}

/* Checks what the host's end of a pod's interface does with sockets. */
static void
check_veth(struct doctor *d, const struct iface *iface)
{
    if (identity_has_gro(iface->name)) {
        add(d, "pods", DOCTOR_NOTE,
            xasprintf("ethtool -K %s gro off, as an agent does that does not "
                      "only observe",
                      iface->name),
            "%s: GRO is on, which loses the job of packets from a pod "
            "without TSO",
            iface->name);
    }
    if (iface->has_xdp) {
        add(d, "pods", DOCTOR_NOTE,
            xasprintf("ip link set %s xdp off, or a generic one", iface->name),
            "%s: an XDP program of the driver loses the job of packets; "
            "they count as the interface's job",
            iface->name);
    }
}

/* Returns true if a pod behind 'iface' can send with the address of another: a
 * bridge does not check source addresses, and no check of the reverse path
 * applies. */
static bool
may_spoof(const struct doctor *d, const struct iface *iface)
{
    return iface->bridge
           || MAX(read_number(d, "/proc/sys/net/ipv4/conf/all/rp_filter"),
                  read_number(d, "/proc/sys/net/ipv4/conf/%s/rp_filter",
                              iface->name))
                  != 1;
}

static void
check_sources(struct doctor *d, const struct ifaces *ifaces)
{
    const struct iface *one = NULL;
    size_t n = 0;

    for (size_t i = 0; i < ifaces->n; i++) {
        const struct iface *iface = &ifaces->all[i];

        if ((!strcmp(iface->kind, "veth") || !strcmp(iface->kind, "netkit"))
            && may_spoof(d, iface)) {
            one = iface;
            n++;
        }
    }
    if (n) {
        add(d, "pods", DOCTOR_NOTE,
            xstrdup("sysctl -w net.ipv4.conf.all.rp_filter=1 and 1 for each "
                    "interface; at a bridge, a CNI plug-in that checks "
                    "addresses"),
            "%s%s: rp_filter is not strict, or there is a bridge: pods with "
            "CAP_NET_RAW can send segments of the connections of others",
            one->name, n > 1 ? " and others" : "");
    }
}

/* Names what is not seen. */
static void
check_unseen(struct doctor *d, const struct iface *iface)
{
    int n =
        read_number(d, "/sys/class/net/%s/device/sriov_numvfs", iface->name);

    if (n) {
        add(d, "pods", DOCTOR_NOTE,
            xstrdup("give pods an interface of the host's kernel"),
            "%s: what its %d virtual functions send is not seen", iface->name,
            n);
    }
    if (!strcmp(iface->kind, "wireguard")) {
        add(d, "pods", DOCTOR_NOTE, xstrdup("another tunnel, such as VXLAN"),
            "%s: what WireGuard encrypts cannot be seen: it has no job at the "
            "uplink",
            iface->name);
    }
}

/* Names an overlay of the host, how it is configured, and what lets a shim
 * know the flows inside. */
static void
check_overlay(struct doctor *d, const struct iface *iface)
{
    const struct overlay *o = find_overlay(iface->kind);
    int port = ntohs(iface->tunnel_port);
    bool usual = o && (port == o->ports[0] || port == o->ports[1]);
    char *what;

    if (!o || (!iface->is_up && !o->port_attr)) {
        return; /* Each kind of IP in IP has an interface of the kernel. */
    }
    what =
        (port ? xasprintf("%s: %s on UDP port %d", iface->name, o->name, port)
              : xasprintf("%s: %s", iface->name, o->name));
    if (o->ports[0] < 0) {
        add(d, "overlay", DOCTOR_NOTE, xstrdup("VXLAN, Geneve, or IP in IP"),
            "%s cannot be seen: a shim does not know the flows inside", what);
    } else {
        add(d, "overlay", DOCTOR_OK, NULL,
            "%s: a shim knows the flows inside with --vxlan and the addresses "
            "of the nodes%s%s%s",
            what, usual ? "" : ", and --", usual ? "" : o->kind,
            usual ? "" : "-port");
    }
    free(what);
}

void
doctor_check_interfaces(struct doctor *d)
{
    struct ifaces ifaces = { .n = 0 };
    struct route_socket *rs;
    size_t n_before;

    if (*d->config->root || route_socket_open(-1, &rs)) {
        return;
    }
    route_socket_list_links(rs, see_link, &ifaces);
    for (size_t i = 0; i < ifaces.n; i++) {
        check_overlay(d, &ifaces.all[i]);
    }
    n_before = d->n;
    for (size_t i = 0; i < ifaces.n; i++) {
        check_programs(d, rs, &ifaces.all[i]);
        check_unseen(d, &ifaces.all[i]);
        if (!strcmp(ifaces.all[i].kind, "veth")) {
            check_veth(d, &ifaces.all[i]);
        }
    }
    check_sources(d, &ifaces);
    free(ifaces.all);
    route_socket_close(rs);
    if (d->n == n_before) {
        add(d, "pods", DOCTOR_OK, NULL,
            "nothing keeps the kernel from their jobs");
    }
}

/* The daemons to which an agent connects. */

#define REPLY_MS 2000

static void
check_remote(struct doctor *d, const char *what, const char *option,
             const char *remote)
{
    struct stream *stream;
    int error =
        stream_open_block(stream_open(remote, &stream, 0), REPLY_MS, &stream);

    stream_close(stream);
    if (error) {
        add(d, "daemons", DOCTOR_MISSING,
            xasprintf("start it, or name another with %s", option),
            "%s: %s does not reply (%s)", remote, what, ovs_strerror(error));
    } else {
        add(d, "daemons", DOCTOR_OK, NULL, "%s: %s replies", remote, what);
    }
}

static void
check_daemons(struct doctor *d)
{
    const struct doctor_config *c = d->config;

    if (*c->root) {
        return;
    }
    if (c->db) {
        check_remote(d, "the hosts database", "--db", c->db);
    }
    if (c->controller) {
        check_remote(d, "the controller", "--controller", c->controller);
    }
    if (c->shim) {
        char *remote = xasprintf("unix:%s", c->shim);

        check_remote(d, "the shim", "--shim", remote);
        free(remote);
    }
}

static const struct {
    void (*run)(struct doctor *);
    bool quick;
} checks[] = {
    { check_cgroup, true },
    { check_capabilities, true },
    { check_identity, true },
    { check_memory, false }, /* The shim knows better. */
    { check_ports, false },
    { doctor_check_interfaces, false },
    { check_queueing, false },
    { check_tcp, true },
    { check_daemons, false },
    { check_clock, true },
};

/* 'config' must outlive the doctor. */
struct doctor *
doctor_examine(const struct doctor_config *config)
{
    struct doctor *d = xzalloc(sizeof *d);

    d->config = config;
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        if (checks[i].quick || !config->quick) {
            checks[i].run(d);
        }
    }
    return d;
}

void
doctor_destroy(struct doctor *d)
{
    if (d) {
        for (size_t i = 0; i < d->n; i++) {
            free(d->findings[i].what);
            free(d->findings[i].mend);
        }
        free(d->findings);
        free(d);
    }
}

bool
doctor_is_well(const struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->findings[i].result == DOCTOR_MISSING) {
            return false;
        }
    }
    return true;
}
