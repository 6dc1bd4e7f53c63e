/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/interface-bytes.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "shim/ports/route-socket.h"
#include "util.h"

static int
take_bytes(const struct nlmsghdr *nlh, void *bytes_)
{
    struct interface_bytes *bytes = bytes_;
    const struct nlattr *attr;

    mnl_attr_for_each(attr, nlh, sizeof(struct ifinfomsg))
    {
        if (mnl_attr_get_type(attr) == IFLA_STATS64) {
            struct rtnl_link_stats64 stats = { .tx_bytes = 0 };

            /* A kernel may have fewer counters than these headers. */
            memcpy(&stats, mnl_attr_get_payload(attr),
                   MIN(sizeof stats, mnl_attr_get_payload_len(attr)));
            bytes->tx = stats.tx_bytes;
            bytes->rx = stats.rx_bytes;
        }
    }
    return MNL_CB_OK;
}

int
interface_bytes_get(struct route_socket *rs, const char *iface,
                    struct interface_bytes *bytes)
{
    struct nlmsghdr *nlh = route_socket_begin(rs, RTM_GETLINK, NLM_F_ACK);

    mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(nlh, IFLA_IFNAME, iface);
    *bytes = (struct interface_bytes){ .tx = 0 };
    return route_socket_transact(rs, nlh, take_bytes, bytes);
}
