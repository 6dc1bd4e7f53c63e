/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/doctor/interfaces.h"

#include <bpf/bpf.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/doctor/doctor.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/bpf/tc-program.h"
#include "shim/ports/route-socket.h"
#include "util.h"

#define MAX_PROGRAMS 64 /* Of an interface and direction. */

/* An interface. */
struct iface {
    int index;
    char name[IFNAMSIZ];
    char kind[16];
    bool has_xdp; /* A program of its driver. */
};

struct ifaces {
    struct iface *all;
    size_t n, allocated;
};

static int
see_link(const struct nlmsghdr *nlh, void *ifaces_)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(nlh);
    const struct nlattr *xdp = route_attr(nlh, IFLA_XDP);
    struct iface iface = { .index = link->ifi_index };
    struct ifaces *ifaces = ifaces_;

    ovs_strlcpy(iface.name, route_attr_string(route_attr(nlh, IFLA_IFNAME)),
                sizeof iface.name);
    ovs_strlcpy(iface.kind, route_link_kind(nlh), sizeof iface.kind);
    xdp = route_attr_in(xdp, IFLA_XDP_ATTACHED);
    iface.has_xdp = xdp && mnl_attr_get_u8(xdp) == XDP_ATTACHED_DRV;
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

/* Findings. */

/* Adds a note.  Takes ownership of 'mend'. */
OVS_PRINTF_FORMAT(3, 4)
static void
note(struct doctor *d, char *mend, const char *what, ...)
{
    va_list args;

    va_start(args, what);
    doctor_add(d, "pods", DOCTOR_NOTE, mend, xvasprintf(what, args));
    va_end(args);
}

static void
check_programs(struct doctor *d, struct route_socket *rs,
               const struct iface *iface)
{
    struct filters f = find_filters(rs, iface->index);

    if (f.cilium[0]) {
        note(d,
             xstrdup("--mark none: packets of pods then have the job of "
                     "their network namespace"),
             "%s: Cilium (%s) is there: it uses the mark, and with its "
             "bandwidth manager or netkit may pass by the agent's programs",
             iface->name, f.cilium);
    }
    if (f.first[0] && !doctor_kernel_is_from(d, 6, 6)) {
        note(d,
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
        note(d,
             xasprintf("ethtool -K %s gro off, as an agent does that does not "
                       "only observe",
                       iface->name),
             "%s: GRO is on, which loses the job of packets from a pod "
             "without TSO",
             iface->name);
    }
    if (iface->has_xdp) {
        note(
            d,
            xasprintf("ip link set %s xdp off, or a generic one", iface->name),
            "%s: an XDP program of the driver loses the job of packets; "
            "they count as the interface's job",
            iface->name);
    }
}

/* Names what is not seen. */
static void
check_unseen(struct doctor *d, const struct iface *iface)
{
    int n =
        doctor_number(d, "/sys/class/net/%s/device/sriov_numvfs", iface->name);

    if (n) {
        note(d, xstrdup("give pods an interface of the host's kernel"),
             "%s: what its %d virtual functions send is not seen", iface->name,
             n);
    }
    if (!strcmp(iface->kind, "wireguard")) {
        note(d, xstrdup("another tunnel, such as VXLAN"),
             "%s: what WireGuard encrypts has no job at the uplink",
             iface->name);
    }
}

void
doctor_check_interfaces(struct doctor *d)
{
    struct ifaces ifaces = { .n = 0 };
    struct route_socket *rs;
    size_t n_before = d->n;

    if (*d->config->root || route_socket_open(-1, &rs)) {
        return;
    }
    route_socket_list_links(rs, see_link, &ifaces);
    for (size_t i = 0; i < ifaces.n; i++) {
        check_programs(d, rs, &ifaces.all[i]);
        check_unseen(d, &ifaces.all[i]);
        if (!strcmp(ifaces.all[i].kind, "veth")) {
            check_veth(d, &ifaces.all[i]);
        }
    }
    free(ifaces.all);
    route_socket_close(rs);
    if (d->n == n_before) {
        doctor_add(d, "pods", DOCTOR_OK, NULL,
                   xstrdup("nothing keeps the kernel from their jobs"));
    }
}
