/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/ports/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "shim/ports/af-packet.h"
#include "shim/ports/route-socket.h"

/* The other end of a veth pair. */
struct peer {
    int ifindex;                /* 0: no interface. */
    int nsid;                   /* Id of its namespace; -1: this thread's. */
    int ns;                     /* File of that namespace, or -1. */
    bool tags;                  /* VLAN tags are to be in the frames. */
    bool tso;                   /* By read_tso(). */
    int error;                  /* Of the function of run_at_peer(): 0 or an
                                 * errno. */
};

static int
read_link(const struct nlmsghdr *nlh, void *peer_)
{
    struct peer *peer = peer_;

    if (!strcmp(route_link_kind(nlh), "veth")) {
        peer->ifindex = route_attr_u32(route_attr(nlh, IFLA_LINK), 0);
        peer->nsid = route_attr_u32(route_attr(nlh, IFLA_LINK_NETNSID), -1);
    }
    return MNL_CB_OK;
}

/* Returns a file of the namespace with id 'nsid', or -1.  Searches the
 * namespaces that have a name or a process. */
static int
open_namespace(struct route_socket *rs, int nsid)
{
    glob_t paths;
    int found = -1;

    glob("/run/netns/*", 0, NULL, &paths);
    glob("/proc/[0-9]*/ns/net", GLOB_APPEND, NULL, &paths);
    for (size_t i = 0; i < paths.gl_pathc && found < 0; i++) {
        int fd = open(paths.gl_pathv[i], O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && route_socket_get_nsid(rs, fd) == nsid) {
            found = fd;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    globfree(&paths);
    return found;
}

/* Executes an ethtool command, which may change 'value->data'. */
static int
ethtool(const char *iface, struct ethtool_value *value)
{
    struct ifreq ifr = { .ifr_data = (void *) value };

    return iface_ioctl(iface, SIOCETHTOOL, &ifr);
}

static int
set_off(const char *iface, uint32_t command)
{
    return ethtool(iface, &(struct ethtool_value) { .cmd = command });
}

/* Clears 'flag', one of ETH_FLAG_*, if it is set. */
static int
clear_flag(const char *iface, uint32_t flag)
{
    struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };

    if (ethtool(iface, &flags) || !(flags.data & flag)) {
        return 0;
    }
    flags.cmd = ETHTOOL_SFLAGS;
    flags.data &= ~flag;
    return ethtool(iface, &flags);
}

/* Disables GRO and LRO of 'iface'.  EOPNOTSUPP is success: the interface has
 * neither. */
static int
disable_rx_offload(const char *iface)
{
    int error = set_off(iface, ETHTOOL_SGRO);

    error = error ? error : clear_flag(iface, ETH_FLAG_LRO);
    return error == EOPNOTSUPP ? 0 : error;
}

/* Enters the namespace of the peer and stores the peer's name.  Returns false
 * after an error. */
static bool
enter(struct peer *peer, char iface[IFNAMSIZ])
{
    if ((peer->ns >= 0 && setns(peer->ns, CLONE_NEWNET))
        || !if_indextoname(peer->ifindex, iface)) {
        peer->error = errno;
    }
    return !peer->error;
}

/* Disables checksum offload of the peer, which disables segmentation offload
 * as well. */
static void *
disable_tx_offload(void *peer_)
{
    struct peer *peer = peer_;
    char iface[IFNAMSIZ];

    if (enter(peer, iface)) {
        peer->error = set_off(iface, ETHTOOL_STXCSUM);
        if (!peer->error && peer->tags) {
            peer->error = clear_flag(iface, ETH_FLAG_TXVLAN);
        }
    }
    return NULL;
}

static void *
read_tso(void *peer_)
{
    struct ethtool_value value = { .cmd = ETHTOOL_GTSO };
    struct peer *peer = peer_;
    char iface[IFNAMSIZ];

    if (enter(peer, iface)) {
        peer->error = ethtool(iface, &value);
        peer->tso = value.data;
    }
    return NULL;
}

/* Runs 'function' with '*peer', the other end of 'iface', in a thread that
 * ends, because it changes its namespace.  Does nothing if 'iface' has no
 * other end; then 'peer->ifindex' is 0.  Returns 0 or a positive errno. */
static int
run_at_peer(const char *iface, void *(*function)(void *), struct peer *peer)
{
    struct route_socket *rs = NULL;
    pthread_t thread;
    int error;

    *peer = (struct peer){ .nsid = -1, .ns = -1, .tags = peer->tags };
    error = route_socket_open(-1, &rs);
    error = error ? error : route_socket_get_link(rs, iface, read_link, peer);
    if (!error && peer->ifindex && peer->nsid >= 0) {
        peer->ns = open_namespace(rs, peer->nsid);
        error = peer->ns < 0 ? ENXIO : 0;
    }
    route_socket_close(rs);
    if (error || !peer->ifindex) {
        return error;
    }
    error = pthread_create(&thread, NULL, function, peer);
    if (!error) {
        pthread_join(thread, NULL);
        error = peer->error;
    }
    if (peer->ns >= 0) {
        close(peer->ns);
    }
    return error;
}

int
offload_switch_off(const char *iface, bool tags)
{
    int error = disable_rx_offload(iface);
    struct peer peer = { .tags = tags };

    return error ? error : run_at_peer(iface, disable_tx_offload, &peer);
}

int
offload_read_tso(const char *iface, bool *tso)
{
    struct peer peer = { .tags = false };
    int error = run_at_peer(iface, read_tso, &peer);

    if (!error && !peer.ifindex) {
        error = ENODEV;
    }
    if (!error) {
        *tso = peer.tso;
    }
    return error;
}
